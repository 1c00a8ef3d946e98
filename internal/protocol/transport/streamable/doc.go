// Package streamable carries MCP over HTTP: the Streamable HTTP transport of
// the revisions 2025-03-26 to 2026-07-28, on one endpoint.
//
// A POST brings one message. Its answer is JSON, unless something is to be
// sent before the result: then the response becomes a stream of server-sent
// events that ends with the result. A GET opens the stream on which a legacy
// session is told what changes, a DELETE ends that session.
//
// A modern client that goes away cancels what it asked for. The streams of a
// legacy session outlive their connections: a GET with the id of
// the last event goes on where the client was, as long as the events are kept.
//
// The package decides nothing about a message, and judges neither Host nor
// Origin: a gate must stand before the handler.
package streamable
