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

// maxAskWait bounds the lifetime of a sealed state, whatever ask_timeout is.
const maxAskWait = state.MaxLife

// resume continues a call with the responses of its client. If several requests have the same
// state, the first one runs the handler, and the others get the same result.
func (x *execution) resume(ctx context.Context) (call.Result, *call.Error) {
	store, err := x.states.Open()
	if err != nil {
		x.auditInvalidState(err, nil)
		return call.Result{}, newError(call.ExecutionError, err, "the server cannot store suspended calls")
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
		x.approval.set(audit.ApprovalRequested, audit.AskedAgain, pause.Consent.To) // until the user has responded
	}
	complete, err := pause.ApplyResponses(x.req.Resume.Responses, x.req.Resume.Refused)
	if err != nil {
		return call.Result{}, invalidParams(err.Error())
	}
	if !complete {
		// A new state could be used to continue from here a second time.
		return inputRequired(pause.Asks, x.req.Resume.State, pause.Expires.Sub(state.Clock(store, x.pipeline.options.Now)()))
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

// runClaimed runs the leg that a claim was won for, and completes the claim. The caller gets the
// result even if it cannot be stored for others.
func (x *execution) runClaimed(ctx context.Context, store state.Store, pause *suspend.Suspension) (call.Result, *call.Error) {
	ended := false
	defer func() {
		if !ended {
			// The store is closed, or has dropped the claim.
			_ = store.Lose(pause.Nonce)
		}
	}()
	x.req.Late = nil // the result is stored for repeated requests, so the caller must wait for it
	result, failure := x.resumeWith(ctx, pause)
	answer, err := x.encodeOutcome(result, failure)
	if err == nil {
		ended = true
		err = store.Finish(pause.Nonce, answer)
	}
	if err != nil && x.mocks == nil {
		x.pipeline.options.Logger.LogAttrs(ctx, slog.LevelWarn, "store call outcome",
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
		x.approval.set(audit.ApprovalDenied, "", pause.Consent.To)
		return call.Result{}, x.approvalError(ctx, "the user did not approve the call")
	}
	return x.continueCall(ctx, *pause)
}

func (x *execution) newSuspension() suspend.Suspension {
	return suspend.Suspension{Journal: scripting.NewJournal(), IsServerRequest: x.isServerRequest, State: state.State{Root: x.id, Start: x.startTime}}
}

// suspend ends the leg with the input requests of the handler. A client that has sent the responses
// in advance is not asked. A dry run cannot ask: the agent code gets an error, and not the handler,
// which could otherwise continue as if the user had declined.
func (x *execution) suspend(ctx context.Context, pause suspend.Suspension, asks []scripting.Ask, took time.Duration) (call.Result, *call.Error) {
	if x.dryRun != nil {
		return call.Result{}, newError(call.ExecutionError, nil, "the tool requests input from its user, which a plan cannot do")
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

// isServerRequest reports whether the server itself has made an input request.
func (x *execution) isServerRequest(r call.AskRequest) bool {
	return x.mocks == nil && x.pipeline.options.Brokers.IsConsentRequest(x.req.Caller.Principal, r)
}

// deliverServerResponses passes responses to the server's own input requests. The responses of a
// test belong to no user, whatever caller it simulates.
func (x *execution) deliverServerResponses(asked []state.Ask) {
	if x.mocks != nil {
		return
	}
	if requests, err := suspend.Requests(asked); err == nil { // they were parsed before
		x.pipeline.options.Brokers.HandleConsentResponses(x.req.Caller.Principal, requests, x.req.Resume.Responses, x.req.Resume.Refused)
	}
}

func (x *execution) requestInput(pause *suspend.Suspension, open []state.Ask) (call.Result, *call.Error) {
	store, err := x.states.Open()
	if err != nil {
		return call.Result{}, newError(call.ExecutionError, err, "the server cannot store suspended calls")
	}
	pause.Owner, pause.Definition, pause.Arguments = state.OwnerOf(x.req.Caller.Principal), x.entry.Key, suspend.ArgumentsDigest(x.args)
	wait := min(x.entry.AskTimeout, maxAskWait)
	sealed, err := pause.Seal(state.NewSealer(store, x.pipeline.options.Now), open, wait, state.Clock(store, x.pipeline.options.Now)())
	if err != nil {
		return call.Result{}, stateError(err)
	}
	return inputRequired(open, sealed, wait)
}

func inputRequired(open []state.Ask, sealed string, wait time.Duration) (call.Result, *call.Error) {
	requests, err := suspend.Requests(open)
	if err != nil {
		return call.Result{}, newError(call.ExecutionError, err, "the tool's input request is invalid")
	}
	return call.Result{Ask: &call.Ask{Requests: requests, State: sealed, Wait: wait}}, nil
}

func stateError(err error) *call.Error {
	var full *state.FullError
	if errors.As(err, &full) {
		return &call.Error{Code: call.ExecutionError, Message: fmt.Sprintf("the server has no room for more %s", full.What), RetryAfter: full.Wait, Overloaded: true, Cause: err}
	}
	message, ok := suspend.ErrorMessage(err)
	if !ok {
		// Not the fault of the state: the client may send it again.
		const code = -32603
		message = "the server cannot store suspended calls"
		return &call.Error{Code: call.ExecutionError, Message: message, RPC: &call.RPCError{Code: code, Message: message}, Cause: err}
	}
	e := invalidParams(message)
	e.Cause = err
	return e
}

// invalidParams returns the error for an invalid request (2026-07-28 basic/patterns/mrtr).
func invalidParams(message string) *call.Error {
	const code = -32602
	return &call.Error{Code: call.InvalidInput, Message: message, RPC: &call.RPCError{Code: code, Message: message}}
}

// The reasons why no user can approve a call, as audit values.
const (
	reasonNested   = "nested"   // the call is nested
	reasonClient   = "client"   // the client has no forms
	reasonChanging = "changing" // the reasons differ each time
	reasonLong     = "long"     // the message is too long
	reasonServer   = "server"   // the server cannot store the call
)

// set sets the state of the approval in the audit record. digest is the digest of the question; zero
// for none.
func (a *approval) set(state, reason string, digest [32]byte) {
	a.record = &audit.Approval{State: state, Why: reason}
	for _, c := range a.reasons {
		a.record.Policies = append(a.record.Policies, c.policy.Name)
	}
	if digest != [32]byte{} {
		a.record.Asked = digest[:]
	}
}

// invalidStateReasons maps the errors of an invalid state to audit values.
var invalidStateReasons = []struct {
	err  error
	word string
}{
	{state.ErrTampered, "tampered"}, {state.ErrForeign, "foreign"}, {state.ErrExpired, "expired"}, {state.ErrChanged, "changed"},
	{state.ErrArguments, "arguments"}, {state.ErrLost, "lost"}, {state.ErrNotStored, "unkept"},
}

// auditInvalidState records that a call which needs an approval has an invalid state. If the state
// could be opened, the record has the digest of its question.
func (x *execution) auditInvalidState(err error, pause *suspend.Suspension) {
	var digest [32]byte
	if pause != nil {
		digest = pause.Consent.To
	}
	if len(x.approval.reasons) == 0 && digest == [32]byte{} {
		return
	}
	reason := reasonServer
	for _, v := range invalidStateReasons {
		if errors.Is(err, v.err) {
			reason = v.word
			break
		}
	}
	x.approval.set(audit.ApprovalInvalid, reason, digest)
}

// approvalOf returns the approval for the audit record of a call that has ended. If the call
// requests other input from its user, the record says that policies required no approval.
func (x *execution) approvalOf(result call.Result) *audit.Approval {
	if x.approval.record == nil && len(x.approval.reasons) == 0 && (result.Ask != nil || x.number > 1) {
		return &audit.Approval{State: audit.ApprovalNone}
	}
	return x.approval.record
}
