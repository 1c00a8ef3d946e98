// Package websocket carries MCP over WebSocket (RFC 6455), subprotocol "mcp":
// one message a text frame, both ways, both eras.
//
// A connection ends with the code that says why (RFC 6455 section 7.4.1): what
// is no text, or no UTF-8, or too long, or comes too slowly, or finds no room
// beside the messages of other clients. A client that answers no pings, or does
// not take what is written to it, would not take a farewell either: the log has
// the reason. Nothing is compressed.
//
// The package decides nothing about a message, and judges neither Host nor
// Origin: a gate must stand before the handler. It is the only one that knows
// the WebSocket library.
package websocket
