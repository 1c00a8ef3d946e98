// Package call defines the data of a call outside of the engine.
//
// A [Request] comes in, and a [Result] goes out. A failed call has an [Error] with one of five codes:
//
//	result := server.Execute(ctx, call.Request{Name: "add", Arguments: []byte(`{"a": 2, "b": 3}`)})
//	switch {
//	case result.Err != nil:
//		return result.Err // a *call.Error
//	case result.Ask != nil:
//		// The call waits for its client. To continue it, execute it again with a Resume.
//	default:
//		fmt.Println(string(result.Value))
//	}
//
// While a call runs, the [Emitter] of the request receives progress and log records. A hook receives
// an [Event] at the start and at the end of each call. [SharedLimits] configures a [LimitStore], which
// counts the calls of several servers.
//
// The package is plain data without behavior. Transports decode requests and encode results, package
// engine executes them, and embedding programs may do both.
package call

import (
	"encoding/json"
	"time"

	"github.com/mcpd/mcpd/identity"
)

// Via says what made a call, independent of the transport.
type Via string

const (
	// ViaClient is a call by a client, over any transport.
	ViaClient Via = "client"
	// ViaCode is a call by code that an agent wrote.
	ViaCode Via = "code"
	// ViaTool is a call by the script of a tool, resource or prompt.
	ViaTool Via = "tool"
	// ViaTest is a call by a test block.
	ViaTest Via = "test"
)

// Request is one call: it runs a tool, reads a resource, gets a prompt or completes an argument.
type Request struct {
	// Kind is the kind of the called item. The zero Kind calls a tool.
	Kind Kind
	// Can lists the kinds of input that the client supports during the call.
	Can Capabilities
	// Name is the name of the tool or prompt, the URI of the resource, or the template.
	Name string
	// Argument is the argument to complete; empty if the call is no completion.
	Argument string
	// Arguments have passed engine.CheckArguments; nil for none. A value that is no
	// object violates every schema. A resource takes none. A completion takes an object with
	// "value", the typed text, and "params", the arguments that are already filled in.
	Arguments json.RawMessage
	// ArgumentsErr is the error of arguments that were rejected while decoding; nil if they were
	// not. The call fails with it after the policies that need no arguments have allowed it.
	ArgumentsErr *Error
	// RejectErr is the error of a call that its receiver rejects, whatever the arguments are; nil
	// otherwise. The call fails with it at the same point as with ArgumentsErr.
	RejectErr *Error
	// Caller is the authenticated principal, the claimed agent and the source of the request.
	Caller identity.Caller
	// Trace is the trace context of the request; zero if unknown.
	Trace Trace
	// Via defaults to [ViaClient].
	Via Via
	// Emit receives progress and log records while the tool runs; nil drops them.
	Emit Emitter
	// Debug reports that Emit passes on records of level debug. Upstream servers are then asked for
	// them.
	Debug bool
	// Resume continues a call that waits for its client; nil for a new call.
	Resume *Resume
	// Cancelled maps the cause of the call's context to who cancelled the call, and why. It may be
	// nil. An empty By means that the cause is unknown.
	Cancelled func(cause error) Cancellation
	// Late receives the result, from another goroutine, if the call ends while a Go tool that
	// ignores its ctx still blocks the calling goroutine. Execute then returns a Result with
	// Detached set once the tool returns. Late must not wait for that. If Late is nil, Go tools run
	// in separate goroutines, so that calls always return in time.
	Late Answerer
}

// Cancellation says who cancelled a call before it had a result, and why (see [Event]).
type Cancellation struct {
	// By is one of the CancelledBy constants.
	By string
	// Reason is any text; it may be empty. A client may have chosen it.
	Reason string
}

// The values of Cancellation.By and Event.CancelledBy.
const (
	// CancelledByClient means that the client cancelled its request or its task.
	CancelledByClient = "client"
	// CancelledByConnection means that the connection of the request was closed.
	CancelledByConnection = "connection"
	// CancelledBySession means that the session of the request ended.
	CancelledBySession = "session"
	// CancelledByServer means that the server is shutting down.
	CancelledByServer = "server"
)

// Emitter receives progress and log records of a running call. Its methods may be called from any
// goroutine until the call returns, and must not block.
type Emitter interface {
	// Progress reports that done of total is complete; total is nil if unknown.
	Progress(done float64, total *float64, message string)
	// Log passes on a record. Level is debug, info, warning or error; an upstream server may also
	// use notice, critical, alert or emergency (RFC 5424 section 6.2.1). Fields is a JSON object or
	// nil.
	Log(level, message string, fields json.RawMessage)
	// CloseStream closes the connection that waits for the result if the caller can reconnect.
	// Otherwise it does nothing.
	CloseStream()
}

// Answerer receives the result of a call (see [Request].Late).
type Answerer interface {
	// Answer receives the result. It is called once, from any goroutine.
	Answer(Result)
}

// Kind is the kind of an item that can be called. The zero Kind is Tools.
type Kind uint8

const (
	// Tools are functions. A request of this kind runs the tool with the Name.
	Tools Kind = iota
	// Resources have a URI. A request of this kind reads the URI that Name holds, whether a
	// resource or a template serves it.
	Resources
	// Templates are URI templates. A request of this kind completes a variable of the template that
	// Name holds. To read a URI, use Resources.
	Templates
	// Prompts are messages for a model. A request of this kind gets the prompt with the Name, or
	// completes one of its arguments.
	Prompts
)

// String returns "tool", "resource" or "prompt", for events and messages. A template is a
// "resource". It panics if k is not one of the constants.
func (k Kind) String() string {
	return [...]string{"tool", "resource", "resource", "prompt"}[k]
}

// Trace is the trace context of a request (W3C Trace Context): traceparent and tracestate from its
// _meta, and from the HTTP headers that carried it. It is untrusted, and invalid values are
// ignored.
type Trace struct {
	// Parent and State are traceparent and tracestate of the message.
	Parent, State string
	// CarrierParent and CarrierState are those headers of the HTTP request that carried the
	// message.
	CarrierParent, CarrierState string
}

// Text is the result of a tool in Go that returns only text for a model. The tool has no output
// schema. A string has one, so that clients get it twice: as JSON and as text.
type Text string

// Result is the outcome of a call: a value, a reply, or Err.
type Result struct {
	// Reply is the MCP result of a call of any other kind than Tools: {"contents"}, {"description",
	// "messages"} or {"completion"}.
	Reply json.RawMessage
	// Static reports that the reply changes only with the files. Public reports that it is the same
	// for every caller.
	Static, Public bool
	// TTL is how long the reply stays valid according to an upstream server; 0 if unknown.
	TTL time.Duration
	// Detached reports that [Request.Late] has received the result. The other fields are empty.
	Detached bool
	// Value is the JSON value that the tool returned, or "null".
	Value json.RawMessage
	// Content is a JSON array of MCP content blocks. It is set for every tool call that succeeds.
	Content json.RawMessage
	// Rich reports that the tool built the content blocks itself, so that Value alone is
	// incomplete.
	Rich bool
	// Structured is the value of a tool that declares its output; nil otherwise.
	Structured json.RawMessage
	// Ask reports that the call waits for its client; nil if the call has ended.
	Ask *Ask
	// Err is nil on success.
	Err *Error
	// Revision names the snapshot that served the call.
	Revision string
	// CallID is unique to this call.
	CallID string
}
