// Package serve joins an engine to its fronts: MCP over Streamable HTTP,
// WebSocket and stdio, the RFC's REST wire, health checks, and the pages to which
// users come back who let the server have tokens of theirs. [New] makes a
// [Front]; [Front.Run] binds the transport that the engine's options name,
// [Front.Handler] fits into any mux, and [Front.Stdio] speaks over a pair of
// streams. The package decides nothing about a call: the engine does.
package serve
