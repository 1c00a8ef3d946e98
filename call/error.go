package call

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Error is the error that a failed call returns to its caller. Message contains no path, no source
// position, no secret and no argument value.
type Error struct {
	// Code is one of the five codes.
	Code Code `json:"code"`
	// Message is for people and models. Programs use Code and [Error.DetailsJSON].
	Message string `json:"message"`
	// Violations lists every schema violation in the arguments. It is set for [InvalidInput] only.
	Violations []Violation `json:"-"`
	// Schema is the current input schema, so that a caller with an old list can recover. It is set
	// for [InvalidInput] only.
	Schema json.RawMessage `json:"-"`
	// Nearest is the most similar name, URI or URI template that the caller may see. It is set for
	// [ToolNotFound] only, and often empty.
	Nearest string `json:"-"`
	// RemovedIn is the revision that removed the item, if the caller could see it before. It is set
	// for [ToolNotFound] only, and often empty.
	RemovedIn string `json:"-"`
	// Details is the JSON value that a script passed to ToolError, or nil.
	Details json.RawMessage `json:"-"`
	// Required lists the capabilities that the call needs and its client lacks, in the notation of
	// MCP; nil otherwise.
	Required json.RawMessage `json:"-"`
	// RPC is the protocol error that a script raised with RpcError; nil otherwise.
	RPC *RPCError `json:"-"`
	// RetryAfter is the time to wait before a retry; 0 means that waiting does not help.
	RetryAfter time.Duration `json:"-"`
	// Limited reports that a rate limit rejected the call. It is set for [PolicyDenied] only.
	Limited bool `json:"-"`
	// Trace is the source position where a script failed or timed out, in the format of mcpd call.
	// It is set only if the operator exposes traces.
	Trace string `json:"-"`
	// Overloaded reports that the server lacks capacity for the call, or is shutting down.
	Overloaded bool `json:"-"`

	// DeniedBy names the policy or limit that denied the call. Names in parentheses stand for other
	// causes: "(default)" if no policy allowed it, "(go)" for the policies of the embedding
	// program, "(from)" if the server could not compute an input, "(result)" if no policy could
	// read the result, "(approval)" if a user declined after a reload had removed the policy, and
	// "(plan)" if the plan of a program was not approved. Cause is logged for the operator. Callers
	// see neither.
	DeniedBy string `json:"-"`
	Cause    error  `json:"-"`
}

// Violation is one schema violation in the arguments.
type Violation struct {
	// Path is a JSON pointer (RFC 6901) to the wrong or missing value; empty for the root.
	Path string `json:"path"`
	// Message states the expected value, such as "must be at least 1".
	Message string `json:"message"`
}

// RPCError is a JSON-RPC 2.0 error object (section 5.1). A script raises one with RpcError, and a
// client may respond to a request with one. Data is any JSON, or nil.
type RPCError struct {
	Code    int
	Message string
	Data    json.RawMessage
}

// Error returns the message.
func (e *RPCError) Error() string { return e.Message }

// Error returns the code and the message.
func (e *Error) Error() string { return fmt.Sprintf("%s: %s", e.Code, e.Message) }

// Unwrap returns Cause, which callers never see.
func (e *Error) Unwrap() error { return e.Cause }

// DetailsJSON returns the details that callers receive: Violations as a JSON array of
// {"path","message"} if there are any, else Details, which may be nil.
func (e *Error) DetailsJSON() json.RawMessage {
	if e.Violations == nil {
		return e.Details
	}
	// Two strings always encode.
	details, _ := json.Marshal(e.Violations)
	return details
}

// forCaller returns a copy without Cause, which only the operator may see.
func (e *Error) forCaller() *Error {
	c := *e
	c.Violations, c.Schema, c.Details, c.Required = slices.Clone(e.Violations), bytes.Clone(e.Schema), bytes.Clone(e.Details), bytes.Clone(e.Required)
	if e.RPC != nil {
		rpc := *e.RPC
		c.RPC = &rpc
	}
	c.Cause = nil
	return &c
}

// Code is one of the five reserved error codes of RFC-0001 (section 14).
type Code string

const (
	// InvalidInput means that the arguments violate the tool's input schema.
	InvalidInput Code = "INVALID_INPUT"
	// ToolNotFound means that the tool does not exist, or that the caller may not see it.
	ToolNotFound Code = "TOOL_NOT_FOUND"
	// PolicyDenied means that a policy or a limit forbids the call.
	PolicyDenied Code = "POLICY_DENIED"
	// ExecutionError means that the tool failed, or that its result violates its output schema.
	ExecutionError Code = "EXECUTION_ERROR"
	// Timeout means that the tool did not finish within its timeout.
	Timeout Code = "TIMEOUT"
)
