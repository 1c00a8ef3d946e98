// Package call is what a call is to those outside of the engine: the [Request], the
// [Result] or the [Error] that it ends with, and the [Event] that hooks are told.
//
// It is plain data. Fronts make requests and encode results, package engine runs
// them, and embedding programs do either; nothing here decides anything.
package call

import (
	"encoding/json"
	"time"

	"github.com/mcpd/mcpd/identity"
)

// Via says what made a call. It never tells which transport carried it.
type Via string

const (
	// ViaClient is a call by a client, over any transport.
	ViaClient Via = "client"
	// ViaCode is a call by code that an agent wrote.
	ViaCode Via = "code"
	// ViaTool is a call by the body of a tool, of a resource or of a prompt.
	ViaTool Via = "tool"
	// ViaTest is a call by a test block.
	ViaTest Via = "test"
)

// Request is one call: of a tool, for what a resource holds, for the messages
// of a prompt, or for the completion of an argument.
type Request struct {
	Kind Kind
	// Can says what the client can be asked for in the midst of the call.
	Can Capabilities
	// Name is the name of the tool or the prompt, the URI of the resource, or
	// the template.
	Name string
	// Argument is what is to be completed; empty when the call is no completion.
	Argument string
	// Arguments have passed the JSON gate; nil for none. What is no object does
	// not fit. A resource takes none, and a completion an object with "value",
	// what was typed, and "params", what is filled in already.
	Arguments json.RawMessage
	// Refused is why the arguments did not pass the gate, which the caller is told
	// in its turn: once nothing denies the call whatever they are. Nil when they did.
	ArgumentsErr *Error
	// Declined is why whoever received the call does not make it, whatever its arguments
	// are, which the caller is told in the same turn. Nil when it is to be made.
	RejectErr *Error
	Caller    identity.Caller
	// Trace is where the request comes from; zero for nothing that is known.
	Trace Trace
	// Via is [ViaClient] when empty.
	Via Via
	// Emit receives what the tool tells while it runs; nil drops it.
	Emit Emitter
	// Debug says that Emit passes on records of the level debug, too: servers behind this
	// one are asked for those as well then.
	Debug bool
	// Resume goes on with a call that has asked; nil when the call begins.
	Resume *Resume
	// Cancelled tells of the cause of the context of the call who had it end, and why;
	// nil, or an empty By, is for causes of which nothing is known.
	Cancelled func(cause error) Cancellation
	// Late receives the result, from another goroutine, when the call ends while
	// a tool in Go that ignores its ctx holds the one that makes the call: the call
	// then returns once the tool has, with what is Left. It must not wait for that.
	// Nil has tools in Go run in goroutines of their own, so that calls always
	// return in time.
	Late Answerer
}

// Cancellation says who had a call end before it had a result, and why (see [Event]). The
// reason may be any text.
type Cancellation struct{ By, Reason string }

// The values of [Cancellation.By].
const (
	CancelledByClient     = "client"
	CancelledByConnection = "connection"
	CancelledBySession    = "session"
	CancelledByServer     = "server"
)

// Emitter receives what a tool tells its caller before the result. Its methods
// may be called from any goroutine until the call returns, and must not block.
type Emitter interface {
	// Progress tells that done of total is done; total is nil when not known.
	Progress(done float64, total *float64, message string)
	// Log passes on a record: level is debug, info, warning or error, or for what a
	// server behind this one says also notice, critical, alert or emergency (RFC 5424
	// section 6.2.1); fields is a JSON object or nil.
	Log(level, message string, fields json.RawMessage)
	// CloseStream closes the connection that waits for the result, where the
	// caller can come back for it; elsewhere it does nothing.
	CloseStream()
}

// Answerer receives the result of a call.
type Answerer interface{ Answer(Result) }

// Kind is a kind of what can be called. The zero Kind is that of tools.
type Kind uint8

// The kinds. A read names the URI of a resource, and is of kind Resources
// whatever answers it; Templates is for completions alone.
const (
	Tools Kind = iota
	Resources
	Templates
	Prompts
)

// String returns what one item of the kind is called in events and messages.
func (k Kind) String() string {
	return [...]string{"tool", "resource", "resource", "prompt"}[k]
}

// Trace is where a request comes from, as its caller says (W3C Trace Context): the
// fields traceparent and tracestate of its _meta, and of the headers that carried it.
// Nothing in it is proved, and what has a mistake counts for nothing.
type Trace struct {
	Parent, State               string
	CarrierParent, CarrierState string
}

// Result is the outcome of a call: a value, a reply, or Err.
type Result struct {
	// Reply is the result of what is no tool, as MCP has it: {"contents"},
	// {"description", "messages"} or {"completion"}.
	Reply json.RawMessage
	// Steady says that the reply stays the same until the files change, and
	// Public that every caller may have it.
	Static, Public bool
	// TTL is how long a server behind this one says that the reply stays the same; 0 where
	// there is none, or it does not say.
	TTL time.Duration
	// Left says that [Request.Late] has received the result, and this is none.
	Detached bool
	// Value is what the tool returned, as JSON; "null" when it returned nothing.
	Value json.RawMessage
	// Content is a JSON array of MCP content blocks, set on every success of a tool.
	Content json.RawMessage
	// Rich says that the tool made the content blocks itself, so that Value
	// alone does not tell everything.
	Rich bool
	// Structured is the value of a tool that declares its output; nil otherwise.
	Structured json.RawMessage
	// Ask says that the call waits for its client; nil when it has ended.
	Ask *Ask
	// Err is nil on success.
	Err *Error
	// Revision names the snapshot that served the call.
	Revision string
	// CallID is unique to this call.
	CallID string
}
