// Package stdio carries MCP over a pair of byte streams: one message a line,
// as the stdio transport of all revisions has it.
//
// [Serve] reads lines until the input ends, the client asks for shutdown or the
// server drains; then the calls under way come to their end. A line that cannot
// be read gets an error, and the stream goes on. Nothing but protocol is
// written to the output.
//
// The package decides nothing about a message, and does not touch the
// process's own standard streams: they are handed to it.
package stdio
