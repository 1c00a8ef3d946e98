package audit

import (
	"encoding/json"
	"strconv"
	"strings"
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

// Approval says what became of the approval of a user that policies wanted for a call.
// It is bound to what else its record holds: the call and its legs, the principal, the
// definition and the arguments.
type Approval struct {
	// State is one of those below.
	State string
	// Why says in one word why nobody was asked, or why an answer was none.
	Why string
	// Policies are the names of those that want it in this leg.
	Policies []string
	// Asked is what stands for the question. A keyed digest of it is written down, which
	// is the same in all legs that are about one question.
	Asked []byte
}

// The states of an [Approval].
const (
	// ApprovalAsked says that the user is asked, and has not answered. Once for each
	// question it has no Why; where what came was no whole answer that is [AskedAgain].
	ApprovalAsked = "asked"
	// ApprovalGiven says that the leg goes on with what the user approved.
	ApprovalGiven = "given"
	// ApprovalRefused says that the user did not approve the call.
	ApprovalRefused = "refused"
	// ApprovalUnasked says that nobody could be asked.
	ApprovalUnasked = "unasked"
	// ApprovalVoid says that the answer which came was to no question of this call.
	ApprovalVoid = "void"
	// ApprovalNone says that policies wanted none, of a call that asks its user something.
	ApprovalNone = "none"
)

// AskedAgain is why a question is asked that stood in a leg before: its answer is missing,
// or is none. It may have been answered since, to somebody else who came with it.
const AskedAgain = "again"

func (e *encoder) approval(a *Approval) {
	if a == nil {
		return
	}
	e.name("approval")
	e.body = append(e.body, `{"state":`...)
	e.body = e.pen.text(e.body, a.State)
	e.text("why", a.Why)
	if len(a.Policies) > 0 {
		e.name("policies")
		e.body = e.pen.texts(e.body, a.Policies)
	}
	if len(a.Asked) > 0 {
		e.name("asked")
		e.body = append(e.body, '"')
		e.keyed(a.Asked)
		e.body = append(e.body, '"')
	}
	e.body = append(e.body, '}')
}

// approval returns what a line says of an approval, without what stands for the
// question; nil where it says nothing.
func (l *Line) approval() *Approval {
	if l.member("approval") == nil {
		return nil
	}
	return &Approval{State: l.text("approval", "state"), Why: l.text("approval", "why"), Policies: texts(l.member("approval", "policies"))}
}

// String returns the approval for people; "" where policies wanted none.
func (a *Approval) String() string {
	if a == nil || a.State == ApprovalNone {
		return ""
	}
	said := "approval " + a.State
	if a.Why != "" {
		said += " (" + a.Why + ")"
	}
	if len(a.Policies) > 0 {
		said += " " + strconv.Quote(strings.Join(a.Policies, ", "))
	}
	return said
}
