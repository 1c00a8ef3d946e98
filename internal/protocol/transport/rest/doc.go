// Package rest serves the RFC's own wire (section 13): GET /mcp/capabilities
// lists the tools, POST /mcp/execute calls one.
//
// A [New] handler turns a request into what an [mcp.Backend] takes and its
// answer back into JSON. Every answer carries its X-Request-Id. The shapes and
// the five error codes are a stable contract, which the files in
// testdata/contract pin.
//
// The package decides nothing about a call, tells nothing of one before its
// result, and does not check where a request comes from: the gate in front of
// it does.
package rest
