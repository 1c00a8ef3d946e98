package call

import (
	"encoding/json"

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
	Refused *Error
	// Declined is why whoever received the call does not make it, whatever its arguments
	// are, which the caller is told in the same turn. Nil when it is to be made.
	Declined *Error
	Caller   identity.Caller
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
