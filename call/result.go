package call

import (
	"encoding/json"
	"time"
)

// Result is the outcome of a call: a value, a reply, or Err.
type Result struct {
	// Reply is the result of what is no tool, as MCP has it: {"contents"},
	// {"description", "messages"} or {"completion"}.
	Reply json.RawMessage
	// Steady says that the reply stays the same until the files change, and
	// Public that every caller may have it.
	Steady, Public bool
	// TTL is how long a server behind this one says that the reply stays the same; 0 where
	// there is none, or it does not say.
	TTL time.Duration
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
	Err *Error
	// Revision names the snapshot that served the call.
	Revision string
	// CallID is unique to this call.
	CallID string
}
