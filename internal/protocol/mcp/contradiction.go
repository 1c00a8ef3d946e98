package mcp

import (
	"github.com/mcpd/mcpd/call"
)

import "github.com/mcpd/mcpd/identity"

// Contradiction is a request whose caller claims to be another agent than the one that
// its credential is bound to. It is refused.
type Contradiction struct {
	// Caller is who sends it. Its agent is the one that is claimed.
	Caller identity.Caller
	// Method is that of MCP, and Name what the request is about, in the words of its
	// caller; "" where it is about nothing, or was refused before that was read, and of a
	// URI, which may hold arguments.
	Method, Name string
	Trace        call.Trace
}
