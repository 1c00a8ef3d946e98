package scripting

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mcpd/mcpd/diag"
)

// Outcome is how a call ended: exactly one of Result, Failure and Suspended is set.
type Outcome struct {
	Result  *Result
	Failure *Failure
	// Suspended are the asks without whose answers the body cannot go on, in the
	// order of asking. Everything else that the body started has ended, and the
	// journal of the call holds it. [Journal.Answer] takes the answers; a Run
	// with that journal goes on from there.
	Suspended []Ask
	// Stdout is what code has printed in this run and those before it, however the
	// call ended: lines that end with a newline, within [Limits.Stdout]. Others print
	// nothing.
	Stdout string
}

// ResultKind tells the results that callers treat differently apart.
type ResultKind int

const (
	// Nothing is undefined: the body returned no value.
	Nothing ResultKind = iota
	// Text is a string.
	Text
	// Value is any other JSON value.
	Value
	// Content is rich content, with or without a structured value.
	Content
)

// Result is what a body returned.
type Result struct {
	Kind ResultKind
	// JSON is the value: a JSON string for Text, any other JSON for Value, the
	// structured value or nil for Content, nil for Nothing.
	JSON []byte
	// Content is a JSON array of MCP content blocks; only for Content.
	Content []byte
	// TTL is how long whoever made the result says that it stays so; 0 where nobody does.
	// Bodies in JavaScript do not.
	TTL time.Duration
}

// FailureKind says why a call has no result.
type FailureKind int

const (
	// Thrown is an exception that the body did not catch.
	Thrown FailureKind = iota
	// ToolError is an uncaught ToolError; Details may be set.
	ToolError
	// RPCError is an uncaught RpcError; RPCCode is set and Details may be.
	RPCError
	// Timeout is a deadline that passed.
	Timeout
	// Canceled is a call that nobody waits for any more.
	Canceled
	// Limit is a bound of [Limits] that was met; Limit names it.
	Limit
	// HostPanic is a Host.Do that panicked.
	HostPanic
	// Nondeterministic is a replay that asked for something else than its journal holds.
	Nondeterministic
	// CapabilityError is an uncaught CapabilityError: the body asked what no
	// client of the call can answer. Details is {"requiredCapabilities": {…}}.
	CapabilityError
	// AskDenied is an uncaught AskDenied: who was asked declined or dismissed
	// the question. Details is {"reason": "declined"} or {"reason": "cancelled"}.
	AskDenied
)

// Failure is why a call has no result. As an error it is the operator's: it
// tells the places of the stack.
type Failure struct {
	Kind FailureKind
	// Message is, for what was thrown, exactly its message; otherwise a sentence that names the limit or the reason.
	Message string
	// Details is JSON, or nil.
	Details []byte
	// RPCCode is the JSON-RPC code of an RpcError.
	RPCCode int
	// Stack is where the error was made, innermost frame first, in places of
	// the author's files.
	Stack []Frame
	// Limit names the bound that was met, such as "output".
	Limit string
	// Name is what the error calls itself that code threw, such as TypeError. Tool is
	// the tool whose call has failed, and Code why, when that is what was thrown.
	// Failures of others have none of them.
	Name, Tool, Code string
}

// Error returns the message and the stack, innermost frame first.
func (f *Failure) Error() string {
	var b strings.Builder
	b.WriteString(f.Message)
	for _, frame := range f.Stack {
		b.WriteString("\n" + frame.Trace("    "))
	}
	return b.String()
}

// RequiredCapabilities returns those that the details of a CapabilityError name,
// as a JSON object.
func (f *Failure) RequiredCapabilities() json.RawMessage {
	var details struct{ RequiredCapabilities json.RawMessage }
	if json.Unmarshal(f.Details, &details) != nil || details.RequiredCapabilities == nil {
		return json.RawMessage("{}")
	}
	return details.RequiredCapabilities
}

// Frame is one call on the stack of a failure.
type Frame struct {
	// Function is empty for the body itself.
	Function string
	Range    diag.Range
	// Excerpt is the line that the author wrote and one that underlines the
	// place in it, for the innermost frame of a body, and else empty.
	Excerpt string
}

// StackOf returns the stack of the script failure that an error wraps, innermost frame
// first. It is nil if the error wraps no [*Failure].
func StackOf(err error) []Frame {
	if failure, ok := errors.AsType[*Failure](err); ok {
		return failure.Stack
	}
	return nil
}

// Trace returns the frame as people read it, each line behind the indent.
func (f Frame) Trace(indent string) string {
	function := f.Function
	if function == "" {
		function = "body"
	}
	text := fmt.Sprintf("%sat %s (%s)", indent, function, f.Range)
	if f.Excerpt == "" {
		return text
	}
	indent += "  "
	return text + "\n" + indent + strings.ReplaceAll(f.Excerpt, "\n", "\n"+indent)
}

// Traces returns frames as people read them, one behind the other.
func Traces(frames []Frame, indent string) string {
	lines := make([]string, len(frames))
	for i, frame := range frames {
		lines[i] = frame.Trace(indent)
	}
	return strings.Join(lines, "\n")
}

// String returns the name of the kind.
func (k FailureKind) String() string {
	names := [...]string{"Thrown", "ToolError", "RPCError", "Timeout", "Canceled", "Limit", "HostPanic", "Nondeterministic", "CapabilityError", "AskDenied"}
	if k < 0 || int(k) >= len(names) {
		return "Unknown"
	}
	return names[k]
}
