package mcp

import (
	"encoding/json"

	"github.com/mcpd/mcpd/identity"
)

// Request is one call: of a tool, for the contents of a resource, for the
// messages of a prompt, or for the completion of an argument of a prompt or a
// template.
type Request struct {
	// Kind is that of the item called. [Templates] is for completions alone:
	// a read names a URI and is of kind [Resources], whatever answers it.
	Kind Kind
	// Name is the name of the tool or the prompt, the URI of the resource, or
	// the URI template.
	Name string
	// Argument is the argument of the prompt or the template to complete;
	// empty when the call is no completion.
	Argument string
	// Arguments have passed the JSON gate. For a tool they may be any JSON
	// value, for a prompt they are an object; nil when the caller sent none,
	// or null. A completion has {"value": what was typed, "params": what is
	// already filled in}. A resource has none.
	Arguments json.RawMessage
	// Declined is why the call is not made, or not gone on with: the backend counts it
	// like any other that fails, and answers with this or with its own reason to refuse
	// it. Nil when it is to be made.
	Declined *CallError
	Caller   identity.Caller
	Trace    Trace
	// Emit receives what the call tells while it runs; nil drops it.
	Emit Emitter
	// Debug says that Emit sends records of the level debug, too.
	Debug bool
	// Can says what the client can be asked for.
	Can Capabilities
	// Resume is what the client was asked and answered; nil when the call begins.
	Resume *Resume
	// Late receives the failure of a tool, from another goroutine, when the call
	// ends but holds the goroutine that has made it: what that returns in the end
	// has Left. Nil has the backend answer in time by itself.
	Late Answerer
}

// Answerer receives the response to a request.
type Answerer interface {
	// Answer returns when the client has been answered.
	Answer(Response)
}

// Emitter receives what a call tells before its result. Its methods may be
// called from any goroutine until the call returns, and never wait for the client.
type Emitter interface {
	// Progress tells that done of total is done; total is nil when not known.
	Progress(done float64, total *float64, message string)
	// Log passes on a log record. level is one of [LogLevels]; fields is a
	// JSON object, or nil.
	Log(level, message string, fields json.RawMessage)
	// CloseStream closes the connection that waits for the result, where the
	// client can come back for it; elsewhere it does nothing.
	CloseStream()
}
