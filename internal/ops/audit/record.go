package audit

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/mcpd/mcpd/identity"
)

// Record is the audit record of one call. All fields are untrusted: they are escaped
// and truncated.
type Record struct {
	// Call is the id of this call, Root the id that all its legs share, and Parent the
	// id of the call that made it, "" for a client.
	Call, Root, Parent string
	// Leg is the number of the leg, from 1, of a call that asks for input. Depth is the
	// number of calls above this one.
	Leg, Depth int
	// Via is the origin of the call: client, code, tool or test.
	Via string
	// Alias is the tool through which the client named the called item, "" if it was
	// called directly.
	Alias string
	// Kind is tool, resource, template, prompt or completion. Name is the name of the
	// item. URI is the URI of a resource, or of the template that produced it together
	// with the arguments; "" if there is none.
	Kind, Name, URI string
	// Method is the protocol method, such as tools/call, or "".
	Method string
	// Revision identifies the snapshot, and Definition is the hash of the called item.
	Revision, Definition string
	// Caller is the caller, with the agent as claimed.
	Caller identity.Caller
	// TraceID and SpanID are hexadecimal, or "" if the call has no trace.
	TraceID, SpanID string
	// Arguments are JSON; their structure and a keyed digest are written.
	Arguments json.RawMessage
	// Values are the captured arguments without sensitive values, or nil.
	Values json.RawMessage
	// Approval is the state of the approval that policies require, or nil.
	Approval *Approval

	// Fields of outcomes.

	// Outcome is ok, input_required, rehearsed or an error code.
	Outcome string
	// DeniedBy is the policy or limit that refused the call. A name in parentheses is
	// not from a file.
	DeniedBy string
	// Limited means that a limit refused the call; Cached means that the result was
	// cached.
	Limited, Cached bool
	// Declined is set when the call was refused for a reason other than policy, such as
	// lack of capacity. Not all policies were evaluated.
	Declined bool
	// Duration is the duration of the call.
	Duration time.Duration
	// Message is the error message that the caller got.
	Message string
	// CancelledBy is the party that cancelled the call, or "", and CancelReason the
	// reason.
	CancelledBy, CancelReason string
}

// Event is the audit record of something other than a call, such as a reload.
type Event struct {
	// Name is, for example, "server.reloaded" or "key.revoked". Names with the prefix
	// "audit." belong to the log itself.
	Name string
	// Attributes are details. Values of names that look like secrets are masked.
	Attributes map[string]string
}

// Kinds of lines.
const (
	intentKind  = "intent"
	outcomeKind = "outcome"
	eventKind   = "event"
)

// Outcomes of a [Record] other than error codes.
const (
	OutcomeOK            = "ok"
	OutcomeInputRequired = "input_required"
	// OutcomeDryRun is the outcome of a call in a dry run of agent code: policies
	// were evaluated, but the call was not made.
	OutcomeDryRun = "rehearsed"
)

// Approval is the state of a user approval that policies require for a call. It is
// bound to the rest of its record: the call and its legs, the principal, the definition
// and the arguments.
type Approval struct {
	// State is one of the Approval constants.
	State string
	// Why is the reason, in one word, why nothing was asked or an answer was invalid.
	Why string
	// Policies are the names of the policies that require it in this leg.
	Policies []string
	// Asked identifies the question. A keyed digest of it is written, equal in all legs
	// with the same question.
	Asked []byte
}

// States of an [Approval].
const (
	// ApprovalRequested means that the user was asked and has not answered. Why is empty
	// for the first time, and [AskedAgain] after an incomplete answer.
	ApprovalRequested = "asked"
	// ApprovalGranted means that the user approved the call in this leg.
	ApprovalGranted = "given"
	// ApprovalDenied means that the user did not approve the call.
	ApprovalDenied = "refused"
	// ApprovalUnavailable means that no user could be asked.
	ApprovalUnavailable = "unasked"
	// ApprovalInvalid means that the answer belongs to no question of this call.
	ApprovalInvalid = "void"
	// ApprovalNone means that policies require none, for a call that asks for other
	// input.
	ApprovalNone = "none"
)

// AskedAgain is the reason for repeating a question of an earlier leg: the answer is
// missing or incomplete. Another client with the same state may have answered it since.
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
		e.keyedDigest(a.Asked)
		e.body = append(e.body, '"')
	}
	e.body = append(e.body, '}')
}

// approval returns the approval in a line without the digest of its question, or nil.
func (l *Line) approval() *Approval {
	if l.member("approval") == nil {
		return nil
	}
	return &Approval{State: l.text("approval", "state"), Why: l.text("approval", "why"), Policies: texts(l.member("approval", "policies"))}
}

// String returns the approval for people, or "" if none is required.
func (a *Approval) String() string {
	if a == nil || a.State == ApprovalNone {
		return ""
	}
	text := "approval " + a.State
	if a.Why != "" {
		text += " (" + a.Why + ")"
	}
	if len(a.Policies) > 0 {
		text += " " + strconv.Quote(strings.Join(a.Policies, ", "))
	}
	return text
}
