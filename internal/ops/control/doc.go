// Package control lets the user who runs a server ask it how it is and whose tokens
// it has, and have it read its files again or drop such tokens.
//
// A [Server] listens on a Unix socket; [Ask] is the other end. A connection
// carries one [Request] and its answer, a line of JSON each, which name the
// [Version] of the protocol:
//
//	{"control":1,"do":"status"}
//	{"control":1,"result":{…}}
//
// What the result holds is a matter of those who answer and ask. A request that
// cannot be carried out is answered with {"control":1,"error":"…"}.
//
// The socket is for one user: its mode is 0600, it stands in a folder in which
// nobody else can write, and where the system tells who connects, all but that
// user and root are turned away without a word. Requests, answers, the time that
// they may take and the connections at once are bounded.
//
// There is no request that stops a server, and none that changes what it serves
// otherwise than its files do; what a user let it have can be dropped, and not be
// had. Nothing here listens on a network.
package control
