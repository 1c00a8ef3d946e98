package audit

import (
	"strconv"
	"strings"
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

// approval writes what became of an approval.
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
