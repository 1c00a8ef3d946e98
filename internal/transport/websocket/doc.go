// Package websocket carries MCP over WebSocket (RFC 6455), subprotocol "mcp":
// one message a text frame, both ways, both eras.
//
// The client is pinged, and gone when it does not answer, does not take what
// is written to it, or sends a message that is too long. Nothing is compressed.
//
// The package decides nothing about a message, and judges neither Host nor
// Origin: a gate must stand before the handler. It is the only one that knows
// the WebSocket library.
package websocket
