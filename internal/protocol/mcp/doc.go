// Package mcp is the server side of the Model Context Protocol, in all of its
// revisions, over one [Backend].
//
// A [Server] knows two eras. Legacy revisions begin with initialize and have
// sessions; modern ones carry everything in each request. A transport hands
// over a text together with a [Peer], either as an [Exchange], which is
// answered where it came in, or on a [Conn], which carries messages both ways.
// From there on all transports are one: the text passes the JSON gate, becomes
// messages, each message is held to the rules of its era, and its method is
// looked up in one table, which the features fill. What goes back is a [Frame].
//
// A [Kind] tells what is listed and called: tools, resources, templates and
// prompts. Calls of all kinds, and completions, are one [Request] to the
// backend. A call that needs to know something from its client ends with an
// [Ask] and is made again with what was answered, on either era. What there is
// to tell a client unasked waits in its feed until a stream takes it.
//
// The package decides nothing about a call, knows nothing of HCL, JavaScript
// or CEL, and does not know which transport carries a message: where a
// transport has headers that mirror the message, they are held to it.
package mcp
