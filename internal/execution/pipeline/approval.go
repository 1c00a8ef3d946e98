package pipeline

import (
	"errors"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/execution/suspend"
	"github.com/mcpd/mcpd/internal/ops/audit"
	"github.com/mcpd/mcpd/internal/state"
)

// Why nobody can be asked to approve a call, in the words of the audit log.
const (
	whyNested   = "nested"   // another call makes it
	whyClient   = "client"   // the client has no forms
	whyChanging = "changing" // the reasons are others each time
	whyLong     = "long"     // what the user would have to read does not fit
	whyServer   = "server"   // the server cannot keep the call meanwhile
)

// setApproval has the log say what became of the approval that policies want. to stands
// for the question, zero for none.
func (x *execution) setApproval(became, why string, to [32]byte) {
	a := &audit.Approval{State: became, Why: why}
	for _, c := range x.consents {
		a.Policies = append(a.Policies, c.policy.Name)
	}
	if to != [32]byte{} {
		a.Asked = to[:]
	}
	x.approval = a
}

// voids are the words of the audit log for why nothing goes on from a state.
var voids = []struct {
	err  error
	word string
}{
	{state.ErrTampered, "tampered"}, {state.ErrForeign, "foreign"}, {state.ErrExpired, "expired"}, {state.ErrChanged, "changed"},
	{state.ErrArguments, "arguments"}, {state.ErrLost, "lost"}, {state.ErrUnkept, "unkept"},
}

// voided has the log say that a call which wants an approval has come with a state that
// gives it none. What question that was about is told where the state was opened.
func (x *execution) voided(err error, pause *suspend.Pause) {
	var to [32]byte
	if pause != nil {
		to = pause.Consent.To
	}
	if len(x.consents) == 0 && to == [32]byte{} {
		return
	}
	why := whyServer
	for _, v := range voids {
		if errors.Is(err, v.err) {
			why = v.word
			break
		}
	}
	x.setApproval(audit.ApprovalVoid, why, to)
}

// approvalOf returns what the log is to say of the approval of a call that has ended. Of
// one that asks its user something else, or goes on from that, it says that policies
// wanted none.
func (x *execution) approvalOf(result call.Result) *audit.Approval {
	if x.approval == nil && len(x.consents) == 0 && (result.Ask != nil || x.leg > 1) {
		return &audit.Approval{State: audit.ApprovalNone}
	}
	return x.approval
}
