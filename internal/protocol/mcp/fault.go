package mcp

import (
	"github.com/mcpd/mcpd/call"
)

// The codes of JSON-RPC 2.0 (section 5.1) and of MCP (2026-07-28 basic/index,
// Error Codes) that the server itself answers with.
const (
	codeParse              = -32700
	codeInvalidRequest     = -32600
	codeMethodNotFound     = -32601
	codeInvalidParams      = -32602
	codeInternal           = -32603
	codeResourceNotFound   = -32002 // of legacy revisions alone
	codeHeaderMismatch     = -32020
	codeMissingCapability  = -32021
	codeUnsupportedVersion = -32022
)

// isReserved reports whether modern revisions define the code, keep it for
// themselves, or forbid it.
func isReserved(code int) bool {
	return code == codeResourceNotFound || -32099 <= code && code <= codeHeaderMismatch
}

// Refusal says why the protocol turned a message away before it was served, so
// that a transport with a status of its own can tell. Errors that arise while
// a request is served, and results, are [Served].
type Refusal uint8

const (
	// Served is the answer to a message that was understood.
	Served Refusal = iota
	// Malformed: the message, or its metadata, is not what the protocol asks for.
	Malformed
	// TooLarge: the message is longer than the limit.
	TooLarge
	// UnknownMethod: no such method in the client's revision.
	UnknownMethod
	// UnknownSession: there is no such session, or it belongs to another principal.
	UnknownSession
	// Forbidden: the credential of the client is bound to another agent than it claims to be.
	Forbidden
	// Unavailable: the server is shutting down, or has no room; another try may succeed.
	Unavailable
)

// fault is an error of the protocol, before and beside the outcome of a call.
type fault struct {
	call.RPCError
	refusal Refusal
}

func newFault(code int, refusal Refusal, message string) *fault {
	return &fault{call.RPCError{Code: code, Message: message}, refusal}
}

// with adds data, which is JSON.
func (f *fault) with(data []byte) *fault {
	f.Data = data
	return f
}

// invalidParams is the fault of a request whose params are not what its method takes.
func invalidParams(message string) *fault { return newFault(codeInvalidParams, Served, message) }

// malformed is the fault of a message that is no valid JSON-RPC.
func malformed(message string) *fault { return newFault(codeInvalidRequest, Malformed, message) }
