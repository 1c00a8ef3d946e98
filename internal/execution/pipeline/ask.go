package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/execution/suspend"
	"github.com/mcpd/mcpd/internal/ops/audit"
	"github.com/mcpd/mcpd/scripting"
)

// maxAskWait bounds how long a state can be opened, whatever ask_timeout says.
const maxAskWait = state.MaxLife

// resumed runs the body of a call that its client has answered. Of all who come
// with the same state the first runs it; the others get the same result.
func (x *execution) resume(ctx context.Context) (call.Result, *call.Error) {
	store, err := x.states.Open()
	if err != nil {
		x.auditInvalidState(err, nil)
		return call.Result{}, newError(call.ExecutionError, err, "the server cannot keep what calls wait for")
	}
	pause, err := suspend.Open(state.NewSealer(store, x.pipeline.options.Now), x.req.Resume.State, state.Want{
		Owner: state.OwnerOf(x.req.Caller.Principal), Definition: x.entry.Key, Arguments: suspend.ArgumentsDigest(x.args),
	})
	if err != nil {
		x.auditInvalidState(err, nil)
		return call.Result{}, stateError(err)
	}
	x.root, x.number = pause.Root, int32(pause.Leg)+1
	open := pause.Asks
	pause.IsServerRequest = x.isServerRequest
	if pause.AwaitsApproval() {
		x.approval.set(audit.ApprovalAsked, audit.AskedAgain, pause.Consent.To) // until it is answered
	}
	complete, err := pause.ApplyResponses(x.req.Resume.Responses, x.req.Resume.Refused)
	if err != nil {
		return call.Result{}, invalidParams(err.Error())
	}
	if !complete {
		// Another state would be another right to go on from here.
		return inputRequired(pause.Asks, x.req.Resume.State, pause.Expires.Sub(x.pipeline.options.Now()))
	}
	claim, err := store.Claim(ctx, pause.Owner, pause.Nonce, pause.Expires)
	switch {
	case ctx.Err() != nil && err != nil:
		return call.Result{}, canceled(ctx)
	case err != nil:
		x.auditInvalidState(err, pause)
		return call.Result{}, stateError(err)
	case !claim.Won:
		return x.decodeOutcome(claim.Answer)
	}
	x.deliverServerResponses(open)
	return x.runClaimed(ctx, store, pause)
}

// first runs the leg that a claim was won for, and ends the claim. What was done is
// done: the first gets its answer also where that cannot be kept for the others.
func (x *execution) runClaimed(ctx context.Context, store state.Store, pause *suspend.Suspension) (call.Result, *call.Error) {
	ended := false
	defer func() {
		if !ended {
			// The store is closed, or has lost the claim by itself.
			_ = store.Lose(pause.Nonce)
		}
	}()
	x.req.Late = nil // the answer is kept for who comes again, and so is waited for
	result, failure := x.resumeWith(ctx, pause)
	answer, err := x.encodeOutcome(result, failure)
	if err == nil {
		ended = true
		err = store.Finish(pause.Nonce, answer)
	}
	if err != nil && x.mocks == nil {
		x.pipeline.options.Logger.LogAttrs(ctx, slog.LevelWarn, "the answer of a call is not kept",
			slog.String(x.req.Kind.String(), x.entry.Address), slog.String("call_id", x.id),
			slog.String("request_id", x.req.Caller.Agent.RequestID), slog.String("cause", err.Error()))
	}
	return result, failure
}

func (x *execution) resumeWith(ctx context.Context, pause *suspend.Suspension) (call.Result, *call.Error) {
	if pause.AwaitsApproval() {
		if pause.Plan != nil {
			if err := x.requestPlanApproval(ctx, pause); err != nil {
				return call.Result{}, err
			}
		}
		x.approval.set(audit.ApprovalRefused, "", pause.Consent.To)
		return call.Result{}, x.approvalError(ctx, "the user did not approve the call")
	}
	return x.continueCall(ctx, *pause)
}

func (x *execution) newSuspension() suspend.Suspension {
	return suspend.Suspension{Journal: scripting.NewJournal(), IsServerRequest: x.isServerRequest, State: state.State{Root: x.id, Start: x.startTime}}
}

// suspended makes what the body asks the result of this leg. A client that sent
// the answers before it was asked is not asked, and neither is that of a call which code
// plans: the program is told of it, and not the body, which could go on as if its user had
// refused.
func (x *execution) suspend(ctx context.Context, pause suspend.Suspension, asks []scripting.Ask, took time.Duration) (call.Result, *call.Error) {
	if x.dryRun != nil {
		return call.Result{}, newError(call.ExecutionError, nil, "the tool wants to ask its user, and a plan asks nobody")
	}
	open := make([]state.Ask, len(asks))
	for i, ask := range asks {
		open[i] = state.Ask{Seq: ask.Seq, Payload: ask.Payload}
	}
	pause.Asks, pause.Leg, pause.Used = open, pause.Leg+1, pause.Used+took
	if sent := x.req.Resume; sent != nil && sent.State == "" {
		if complete, err := pause.ApplyResponses(sent.Responses, sent.Refused); complete && err == nil {
			x.deliverServerResponses(open)
			return x.runLeg(ctx, pause)
		}
	}
	return x.requestInput(&pause, open)
}

// own reports whether a request is a question of the server itself.
func (x *execution) isServerRequest(r call.AskRequest) bool {
	return x.mocks == nil && x.pipeline.options.Brokers.IsConsentRequest(x.req.Caller.Principal, r)
}

// tell has the server hear what its client answered to questions that are the
// server's own. The answers of a test are nobody's, whoever it says that its caller is.
func (x *execution) deliverServerResponses(asked []state.Ask) {
	if x.mocks != nil {
		return
	}
	if requests, err := suspend.Requests(asked); err == nil { // they were read before
		x.pipeline.options.Brokers.HandleConsentResponses(x.req.Caller.Principal, requests, x.req.Resume.Responses, x.req.Resume.Refused)
	}
}

func (x *execution) requestInput(pause *suspend.Suspension, open []state.Ask) (call.Result, *call.Error) {
	store, err := x.states.Open()
	if err != nil {
		return call.Result{}, newError(call.ExecutionError, err, "the server cannot keep what calls wait for")
	}
	pause.Owner, pause.Definition, pause.Arguments = state.OwnerOf(x.req.Caller.Principal), x.entry.Key, suspend.ArgumentsDigest(x.args)
	wait := min(x.entry.AskTimeout, maxAskWait)
	sealed, err := pause.Seal(state.NewSealer(store, x.pipeline.options.Now), open, wait, x.pipeline.options.Now())
	if err != nil {
		return call.Result{}, stateError(err)
	}
	return inputRequired(open, sealed, wait)
}

func inputRequired(open []state.Ask, sealed string, wait time.Duration) (call.Result, *call.Error) {
	requests, err := suspend.Requests(open)
	if err != nil {
		return call.Result{}, newError(call.ExecutionError, err, "the tool asks what cannot be read")
	}
	return call.Result{Ask: &call.Ask{Requests: requests, State: sealed, Wait: wait}}, nil
}

func stateError(err error) *call.Error {
	var full *state.FullError
	if errors.As(err, &full) {
		return &call.Error{Code: call.ExecutionError, Message: fmt.Sprintf("the server has no room for more %s", full.What), RetryAfter: full.Wait, Overloaded: true, Cause: err}
	}
	e := invalidParams(suspend.ErrorMessage(err))
	e.Cause = err
	return e
}

// invalidParams is the error of a request that its client wrote wrongly (2026-07-28
// basic/patterns/mrtr).
func invalidParams(message string) *call.Error {
	const code = -32602
	return &call.Error{Code: call.InvalidInput, Message: message, RPC: &call.RPCError{Code: code, Message: message}}
}

// Why nobody can be asked to approve a call, in the words of the audit log.
const (
	reasonNested   = "nested"   // another call makes it
	reasonClient   = "client"   // the client has no forms
	reasonChanging = "changing" // the reasons are others each time
	reasonLong     = "long"     // what the user would have to read does not fit
	reasonServer   = "server"   // the server cannot keep the call meanwhile
)

// set has the log say what became of the approval that policies want. to stands
// for the question, zero for none.
func (a *approval) set(became, why string, to [32]byte) {
	a.record = &audit.Approval{State: became, Why: why}
	for _, c := range a.reasons {
		a.record.Policies = append(a.record.Policies, c.policy.Name)
	}
	if to != [32]byte{} {
		a.record.Asked = to[:]
	}
}

// voids are the words of the audit log for why nothing goes on from a state.
var invalidStateReasons = []struct {
	err  error
	word string
}{
	{state.ErrTampered, "tampered"}, {state.ErrForeign, "foreign"}, {state.ErrExpired, "expired"}, {state.ErrChanged, "changed"},
	{state.ErrArguments, "arguments"}, {state.ErrLost, "lost"}, {state.ErrUnkept, "unkept"},
}

// voided has the log say that a call which wants an approval has come with a state that
// gives it none. What question that was about is told where the state was opened.
func (x *execution) auditInvalidState(err error, pause *suspend.Suspension) {
	var to [32]byte
	if pause != nil {
		to = pause.Consent.To
	}
	if len(x.approval.reasons) == 0 && to == [32]byte{} {
		return
	}
	why := reasonServer
	for _, v := range invalidStateReasons {
		if errors.Is(err, v.err) {
			why = v.word
			break
		}
	}
	x.approval.set(audit.ApprovalVoid, why, to)
}

// approvalOf returns what the log is to say of the approval of a call that has ended. Of
// one that asks its user something else, or goes on from that, it says that policies
// wanted none.
func (x *execution) approvalOf(result call.Result) *audit.Approval {
	if x.approval.record == nil && len(x.approval.reasons) == 0 && (result.Ask != nil || x.number > 1) {
		return &audit.Approval{State: audit.ApprovalNone}
	}
	return x.approval.record
}
