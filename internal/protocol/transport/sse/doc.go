// Package sse carries MCP over the HTTP+SSE transport of the revision
// 2024-11-05, which later ones have deprecated and old clients still speak.
//
// A GET opens a stream of server-sent events. Its first event says where the
// client is to POST its messages; everything that the server says, answers too,
// comes on the stream. The stream is the connection: when it ends, so does the
// session, with all that is under way.
//
// A client that does not take what is sent to it is dropped. The package
// decides nothing about a message, and judges neither Host nor Origin: a gate
// must stand before the handlers.
package sse
