// Package upstream is the client of other MCP servers: those whose tools, resources and
// prompts this server offers as its own.
//
// A [Place] says where a server is, and a [Link] is a connection to it: [Dial] starts the
// program or reaches the host, agrees on a revision of the protocol, and [Link.List]
// reads all that the server offers, as a [Listing]. [Link.Begin] makes a call, of which
// the [Call] tells what comes of it: that it has ended, or what the server asks its
// client in the midst of it.
//
// The go-sdk knows the protocol: both eras, their transports and their handshakes. It
// stands behind a wire that every byte of the server passes first. The wire refuses what
// package jsongate does, keeps to itself what answers no question, and takes results as
// they are: nothing of a result is decoded and written anew on its way to the caller.
//
// What a server sends is believed nothing. It cannot name a call of somebody else: what
// it asks, tells and logs goes to the call on whose stream it came, and where streams are
// shared, to the only one that runs, or to nobody.
package upstream
