package mcp

import (
	"encoding/json"
	"time"
)

// Response is the outcome of a call: a success, Ask, Task or Err.
type Response struct {
	// Value is what a tool returned, "null" when nothing: the result on REST.
	Value json.RawMessage
	// Content is a JSON array of MCP content blocks. It is set on every
	// success of a tool.
	Content json.RawMessage
	// Rich says that the tool itself made the content blocks, so that Value
	// alone does not tell all.
	Rich bool
	// Left says that [Request.Late] has received the response, and this is none.
	Left bool
	// Structured is the value for structuredContent; nil when there is none.
	Structured json.RawMessage
	// Result is the success of what is no tool, as a JSON object:
	// {"contents"} of a resource, {"description", "messages"} of a prompt,
	// {"completion"} with at most 100 values.
	Result json.RawMessage
	// TTL is how long clients may keep the contents of a resource.
	TTL time.Duration
	// Public says that every caller would be given the same contents.
	Public bool
	// Ask says that the call waits for its client; nil when it has ended.
	Ask *Ask
	// Task says that the call goes on as a task, for a client that can have
	// one; nil otherwise. The call has ended for the backend.
	Task *Task
	// Err is nil on success.
	Err *CallError
	// Revision is the published state that answered.
	Revision string
	// CallID is the server's own name of the call.
	CallID string
}

// Code is one of the RFC's five error codes.
type Code string

// The error codes are a stable contract (RFC section 9). [ToolNotFound] stands
// for every kind of item that is not there.
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
	// RemovedIn is the revision that removed what was called, for
	// [ToolNotFound]; often empty.
	RemovedIn string
	// RetryAfter is how long to wait before another try; 0 when not known.
	RetryAfter time.Duration
	// Limited says that a rate limit refused the call.
	Limited bool
	// Trace tells where in the files of tools a body failed, for development; it
	// is empty unless the operator wants callers to know.
	Trace string
	// Overloaded says that the server had no room for the call.
	Overloaded bool
	// Required is the capabilities that the call needs and its client does
	// not have, as a JSON object such as {"sampling":{}}; nil otherwise.
	Required json.RawMessage
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
