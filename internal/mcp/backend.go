package mcp

import (
	"context"
	"encoding/json"
	"time"

	"github.com/mcpd/mcpd/identity"
)

// Backend is what answers behind the protocol. All methods are called from
// many goroutines at once; each reads one consistent state of the tools.
type Backend interface {
	// Info returns what the server says of itself. It may change at a reload.
	Info() Info
	// List returns what the caller may see, in the order to show it.
	List(ctx context.Context, c identity.Caller) List
	// Call runs a tool to its end. When ctx ends, the call ends soon after.
	Call(ctx context.Context, r Request) Response
	// Watch calls fn after each published state of the tools, until stop is
	// called. fn must not block.
	Watch(fn func()) (stop func())
}

// Info is what a server says of itself.
type Info struct {
	Name, Title, Version, Description string
	// Instructions tell a model how to use the server; they may be empty.
	Instructions string
	// Revision is the content hash of the published tools.
	Revision string
}

// List is the tools that one caller may see.
type List struct {
	// Revision is the content hash of the published tools.
	Revision string
	// Hash is the content hash of the visible entries: two lists with the
	// same hash hold the same tools in the same order.
	Hash string
	// Private says that other callers may see other lists.
	Private bool
	Tools   []*Tool
}

// Request is one call of a tool.
type Request struct {
	Tool string
	// Arguments have passed the JSON gate, and may be any JSON value; nil when
	// the caller sent none, or null.
	Arguments json.RawMessage
	Caller    identity.Caller
	// Emit receives what the tool tells while it runs; nil drops it.
	Emit Emitter
}

// Emitter receives what a tool tells before its result. Its methods may be
// called from any goroutine until the call returns, and never wait for the client.
type Emitter interface {
	// Progress tells that done of total is done; total is nil when not known.
	Progress(done float64, total *float64, message string)
	// Log passes on a log record. level is one of [LogLevels]; fields is a
	// JSON object, or nil.
	Log(level, message string, fields json.RawMessage)
}

// Response is the outcome of a call: a success, or Err.
type Response struct {
	// Value is what the tool returned, "null" when nothing: the result on REST.
	Value json.RawMessage
	// Content is a JSON array of MCP content blocks. It is set on every success.
	Content json.RawMessage
	// Rich says that the tool itself made the content blocks, so that Value
	// alone does not tell all.
	Rich bool
	// Structured is the value for structuredContent; nil when there is none.
	Structured json.RawMessage
	// Err is nil on success.
	Err *CallError
	// Revision is the state of the tools that answered.
	Revision string
	// CallID is the server's own name of the call.
	CallID string
}

// Code is one of the RFC's five error codes.
type Code string

// The error codes are a stable contract (RFC section 9).
const (
	InvalidInput   Code = "INVALID_INPUT"
	ToolNotFound   Code = "TOOL_NOT_FOUND"
	PolicyDenied   Code = "POLICY_DENIED"
	ExecutionError Code = "EXECUTION_ERROR"
	Timeout        Code = "TIMEOUT"
)

// CallError says why a call has no result. Message is for the caller: it
// holds no path, position or secret.
type CallError struct {
	Code    Code
	Message string
	// Details is a JSON array of {"path","message"} for [InvalidInput], and
	// what a script's ToolError carries for [ExecutionError]; nil for none.
	Details json.RawMessage
	// Schema is the current input schema for [InvalidInput]; nil otherwise.
	Schema json.RawMessage
	// RetryAfter is how long to wait before another try; 0 when not known.
	RetryAfter time.Duration
	// Limited says that a rate limit refused the call.
	Limited bool
	// Overloaded says that the server had no room for the call.
	Overloaded bool
	// RPC is a script's own JSON-RPC error; it is nil otherwise.
	RPC *RPCError
}

// Error returns the code and the message.
func (e *CallError) Error() string { return string(e.Code) + ": " + e.Message }

// RPCError is a JSON-RPC 2.0 error object (section 5.1).
type RPCError struct {
	Code    int
	Message string
	// Data is any JSON; nil when there is none.
	Data json.RawMessage
}

// Error returns the message.
func (e *RPCError) Error() string { return e.Message }
