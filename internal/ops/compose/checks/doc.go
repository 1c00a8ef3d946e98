// Package checks has Compose and Kubernetes read what package compose writes, by the
// loader of Compose and by the types of Kubernetes. It is a module of its own, so that
// neither of them is in the module graph of mcpd and of programs that embed it.
package checks
