package audit

import (
	"encoding/json"
	"time"

	"github.com/mcpd/mcpd/identity"
)

// Record says what is written down of one call. Everything in it may come from
// outside: it is escaped, and cut where it is long.
type Record struct {
	// Call is the id of this call, Root the one that its legs share, and Parent
	// that of the call that made it, "" when a client did.
	Call, Root, Parent string
	// Leg counts the legs of a call that asks, from 1; Depth how many calls are
	// above this one.
	Leg, Depth int
	// Via is what made the call: client, code, tool or test.
	Via string
	// Alias is the tool by which the client named the one that was called, "" where that
	// was called by itself.
	Alias string
	// Kind is what was called: tool, resource, template, prompt or completion;
	// Name is its name and URI that of a resource, or of the template that made it
	// with the arguments; "" when it has none.
	Kind, Name, URI string
	// Method is that of the protocol, such as tools/call, "" where there is none.
	Method string
	// Revision is that of the snapshot, Definition the hash of what was called.
	Revision, Definition string
	// Caller is who made the call. Its agent is written down as claimed.
	Caller identity.Caller
	// TraceID and SpanID are hexadecimal, "" when the call belongs to no trace.
	TraceID, SpanID string
	// Arguments are JSON; their structure and a keyed digest are written down.
	Arguments json.RawMessage
	// Values are arguments to be kept as they are, without what is sensitive.
	// Nil keeps none.
	Values json.RawMessage
	// Approval is what became of the approval that policies want; nil where none do.
	Approval *Approval

	// What follows is for outcomes.

	// Outcome is ok, input_required, rehearsed or the code of an error.
	Outcome string
	// DeniedBy names the policy or the limit that refused the call; names in parentheses
	// are of what stands in no file.
	DeniedBy string
	// Limited says that a limit refused it, Cached that a kept result answered it.
	Limited, Cached bool
	// Declined says that the server did not make the call, for a reason that its policies
	// have no part in: for want of room, say. Not all of them were asked.
	Declined bool
	// Duration is how long the call took.
	Duration time.Duration
	// Message is that of the error, as its caller saw it.
	Message string
	// CancelledBy says who had the call end, "" where nobody did, and CancelReason why.
	CancelledBy, CancelReason string
}

// Event says what is written down of what is no call, such as a reload.
type Event struct {
	// Name is such as "server.reloaded" or "key.revoked". Those that begin with "audit."
	// are the log's own.
	Name string
	// Attributes say more; values of secret-looking names are masked.
	Attributes map[string]string
}

// The kinds of lines.
const (
	intentKind  = "intent"
	outcomeKind = "outcome"
	eventKind   = "event"
)

// The outcomes of [Record] that are no errors.
const (
	OutcomeOK            = "ok"
	OutcomeInputRequired = "input_required"
	// OutcomeRehearsed is that of a call which code has planned, and which was judged and
	// not made.
	OutcomeRehearsed = "rehearsed"
)
