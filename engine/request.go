package engine

import (
	"encoding/json"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/catalog"
	"github.com/mcpd/mcpd/internal/host"
)

// Via says what made a call. It never tells which transport carried it.
type Via string

const (
	// ViaClient is a call by a client, over any transport.
	ViaClient Via = "client"
	// ViaTool is a call by the body of a tool, of a resource or of a prompt.
	ViaTool Via = "tool"
	// ViaTest is a call by a test block.
	ViaTest Via = "test"
)

// Kind is a kind of what can be called. The zero Kind is that of tools.
type Kind = catalog.Kind

// The kinds. A read names the URI of a resource, and is of kind Resources
// whatever answers it; Templates is for completions alone.
const (
	Tools     = catalog.Tools
	Resources = catalog.Resources
	Templates = catalog.Templates
	Prompts   = catalog.Prompts
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
	Caller    identity.Caller
	// Via is [ViaClient] when empty.
	Via Via
	// Emit receives what the tool tells while it runs; nil drops it.
	Emit Emitter
	// Resume goes on with a call that has asked; nil when the call begins.
	Resume *Resume
	// Late receives the result, from another goroutine, when the call ends while
	// a tool in Go that ignores its ctx holds the one that makes the call:
	// [Server.Execute] then returns once the tool has, with what is Left. It must
	// not wait for Execute. Nil has tools in Go run in goroutines of their own,
	// so that Execute always returns in time.
	Late Answerer
	// refused is why the arguments did not pass the gate.
	refused *CallError
}

// Emitter receives what a tool tells its caller before the result. Its methods
// may be called from any goroutine until the call returns, and must not block.
type Emitter = host.Emitter

// Answerer receives the result of a call.
type Answerer interface{ Answer(Result) }

// Result is the outcome of a call: a value, a reply, or Err.
type Result struct {
	// Reply is the result of what is no tool, as MCP has it: {"contents"},
	// {"description", "messages"} or {"completion"}.
	Reply json.RawMessage
	// Steady says that the reply stays the same until the files change, and
	// Public that every caller may have it.
	Steady, Public bool
	// Left says that [Request.Late] has received the result, and this is none.
	Left bool
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
	Err *CallError
	// Revision names the snapshot that served the call.
	Revision string
	// CallID is unique to this call.
	CallID string
}
