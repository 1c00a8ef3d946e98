// Package compose writes the files with which mcpd is deployed beside the MCP
// servers that it federates.
//
// A [Deployment] says what is to run: mcpd, and [Upstream] servers in
// containers. [Files] makes of it, byte for byte the same each time, a
// docker-compose.yml, a Dockerfile, the manifests of Kubernetes and a unit of
// systemd. [Drift] tells how files on a disk differ from those.
//
// What runs has no more than it needs: a user that is not root, a file system
// that it cannot write, no capabilities, bounded memory, processors and
// processes, and a network on which it meets mcpd and nobody else. Upstreams
// are reached through mcpd alone, where calls are judged and written down.
//
// The package reads and writes no disk, starts nothing, and knows no values of
// secrets: files name them, and whoever deploys provides them. It refuses a
// deployment that these files cannot express, rather than to express something
// near it.
package compose
