package call

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Error is why a call failed, told to its caller. Message holds no path,
// no position, no secret and no argument value.
type Error struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
	// Violations are every way in which the arguments break the schema; set
	// for [InvalidInput] alone.
	Violations []Violation `json:"-"`
	// Schema is the current input schema, so that a caller with an old list
	// recovers; set for [InvalidInput] alone.
	Schema json.RawMessage `json:"-"`
	// Nearest is the name, the URI or the template of a URI that the caller may
	// see and may have meant; set for [ToolNotFound] alone, and often empty.
	Nearest string `json:"-"`
	// RemovedIn is the revision that removed what was called, when the caller
	// could see it before; set for [ToolNotFound] alone, and often empty.
	RemovedIn string `json:"-"`
	// Details are what a script passed to ToolError, as JSON; nil when none.
	Details json.RawMessage `json:"-"`
	// Required are the capabilities that the call needs of its client and that
	// the client lacks, as MCP names them; nil otherwise.
	Required json.RawMessage `json:"-"`
	// RPC is the protocol error that a script asked for by name; nil otherwise.
	RPC *RPCError `json:"-"`
	// RetryAfter is how long to wait before trying again; 0 means that waiting does not help.
	RetryAfter time.Duration `json:"-"`
	// Limited says that a limit is against the call for now; set for [PolicyDenied] alone.
	Limited bool `json:"-"`
	// Trace tells where in the files a body failed, or was when its time was over, as
	// mcpd call shows it; set only where the operator exposes traces.
	Trace string `json:"-"`
	// Overloaded says that the server had no room for the call, or is shutting down.
	Overloaded bool `json:"-"`

	// DeniedBy names the policy or the limit that denied: "(default)" where none
	// allowed the call, "(go)" for the policies of the embedding program, "(from)" where
	// an input could not be told, "(result)" where a result could not be judged,
	// "(approval)" where a user declined what no policy asks for any more, "(plan)" where
	// the plan of a program was not approved. Cause is what
	// the operator's log says beside the message. Neither is for callers.
	DeniedBy string `json:"-"`
	Cause    error  `json:"-"`
}

// Violation is one way in which arguments break their schema.
type Violation struct {
	// Path is a JSON pointer (RFC 6901) to what is wrong or missing; empty for the whole.
	Path string `json:"path"`
	// Message says what is expected there, such as "must be at least 1".
	Message string `json:"message"`
}

// RPCError is a JSON-RPC 2.0 error object (section 5.1): one that a script raised with
// RpcError, or with which a client answered a request. Data is any JSON, nil for none.
type RPCError struct {
	Code    int
	Message string
	Data    json.RawMessage
}

// Error returns the message.
func (e *RPCError) Error() string { return e.Message }

// Error returns the code and the message.
func (e *Error) Error() string { return fmt.Sprintf("%s: %s", e.Code, e.Message) }

// Unwrap returns Cause: the operator's side of the error, which callers never see.
func (e *Error) Unwrap() error { return e.Cause }

// DetailsJSON returns what callers get as the details of the error: Violations as a JSON
// array of {"path","message"}, or else Details. It is nil if the error has neither.
func (e *Error) DetailsJSON() json.RawMessage {
	if e.Violations == nil {
		return e.Details
	}
	// Two strings each always encode.
	details, _ := json.Marshal(e.Violations)
	return details
}

// public returns a copy without what only the operator may see.
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

// Code is one of the five reserved error codes of the RFC (section 14).
type Code string

const (
	// InvalidInput says that the arguments break the tool's input schema.
	InvalidInput Code = "INVALID_INPUT"
	// ToolNotFound says that there is no such tool, or none that this caller may know of.
	ToolNotFound Code = "TOOL_NOT_FOUND"
	// PolicyDenied says that a policy or a limit forbids the call.
	PolicyDenied Code = "POLICY_DENIED"
	// ExecutionError says that the tool failed, or that its result broke its output schema.
	ExecutionError Code = "EXECUTION_ERROR"
	// Timeout says that the tool did not end within its timeout.
	Timeout Code = "TIMEOUT"
)
