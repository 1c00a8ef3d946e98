package policylang

import (
	"time"

	"github.com/mcpd/mcpd/identity"
)

// ToolFacts is what a policy may know of the tool that is called, or of the
// resource or the prompt.
type ToolFacts struct {
	// Kind is "tool", "resource" or "prompt".
	Kind        string
	Name, Title string
	// Labels are the tool's labels; policies read them, clients never do.
	Labels map[string]string
	// The four are MCP's annotations with their defaults filled in.
	ReadOnly, Idempotent, Destructive, OpenWorld bool
}

// CallFacts is what a policy may know of the call itself.
type CallFacts struct {
	// ID names the call.
	ID string
	// Via says what made the call: "client", "code", "tool" or "test".
	Via string
	// Depth counts the calls that this one is nested in: 0 for a client's own.
	Depth int
	// Parent is the name of the tool that made this call, and of what is no tool such
	// as "prompt:NAME"; empty at depth 0.
	Parent string
}

// Input is all that a decision depends on. Nothing in it is changed, and
// nothing of it is kept after the decision.
type Input struct {
	Caller identity.Caller
	Tool   ToolFacts
	// Args are the decoded arguments after defaults and `from`. An argument
	// that is absent there is absent in the policy. Partial does not read them.
	Args map[string]any
	// Result is what the call returned, as [Policy.Result] decodes it, and Content the
	// content blocks that a client is sent, as decoded JSON; nil before.
	Result  any
	Content []any
	Call    CallFacts
	// Now is the time of the call; policies have no other clock.
	Now time.Time
	// Unknown are the parts of the input of which not all is known: none in a call.
	Unknown Parts
	// Hide takes what nobody may read out of a reason before that is cut, as a part of a
	// value is not known for one; nil takes nothing.
	Hide func(reason string) string
}
