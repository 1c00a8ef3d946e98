package engine

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/mcpd/mcpd/internal/schema"
)

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

// CallError is why a call failed, told to its caller. Message holds no path,
// no position, no secret and no argument value.
type CallError struct {
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

	// deniedBy names the policy or the limit that denied.
	deniedBy string
	// cause is what the operator's log says beside the message.
	cause error
}

// Violation is one way in which a value breaks its schema: Path is a JSON
// pointer, empty for the whole value.
type Violation = schema.Violation

// RPCError is a JSON-RPC error that a script raised with RpcError.
type RPCError struct {
	Code    int
	Message string
	Data    json.RawMessage
}

// Error returns the code and the message.
func (e *CallError) Error() string { return fmt.Sprintf("%s: %s", e.Code, e.Message) }

// Unwrap returns the operator's side of the error, which callers never see.
func (e *CallError) Unwrap() error { return e.cause }

func failed(code Code, cause error, format string, args ...any) *CallError {
	return &CallError{Code: code, Message: fmt.Sprintf(format, args...), cause: cause}
}
