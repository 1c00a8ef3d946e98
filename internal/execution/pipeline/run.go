package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/lazyctx"
	"github.com/mcpd/mcpd/internal/base/redact"
	"github.com/mcpd/mcpd/internal/base/safetext"
	"github.com/mcpd/mcpd/internal/base/truncate"
	"github.com/mcpd/mcpd/internal/execution/calltree"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/execution/gofunc"
	"github.com/mcpd/mcpd/internal/execution/suspend"
	"github.com/mcpd/mcpd/internal/host"
	"github.com/mcpd/mcpd/internal/language/schema"
	"github.com/mcpd/mcpd/internal/ops/audit"
	"github.com/mcpd/mcpd/scripting"
)

// runBody runs the tool from its beginning, or from where it was suspended.
func (x *execution) runHandler(ctx context.Context) (call.Result, *call.Error) {
	x.hide = redact.NewText(x.input, x.entry.Sensitive).And(x.catalog.Sensitive)
	if x.req.Resume != nil && x.req.Resume.State != "" {
		return x.resume(ctx)
	}
	return x.continueCall(ctx, x.newSuspension())
}

// goOn runs the body, once the user has consented to what policies want that for.
func (x *execution) continueCall(ctx context.Context, pause suspend.Suspension) (call.Result, *call.Error) {
	if err := x.requestPlanApproval(ctx, &pause); err != nil {
		return call.Result{}, err
	}
	if x.approval.given && len(x.approval.reasons) > 0 {
		x.approval.set(audit.ApprovalGiven, "", x.approval.digest())
		x.approval.reasons = nil
	}
	if len(x.approval.reasons) > 0 && (!pause.Consent.Given || pause.Consent.To != x.approval.digest()) {
		return x.requestApproval(ctx, pause)
	}
	if pause.Consent.Given {
		x.approval.set(audit.ApprovalGiven, "", pause.Consent.To)
	}
	if x.handler == nil {
		return call.Result{Reply: json.RawMessage(`{"completion":{"values":[],"total":0,"hasMore":false}}`)}, nil
	}
	if pause.Leg == pause.Consent.Asked {
		pause.Start = x.startTime // no leg has run the body: the time of the user is not its own
	}
	return x.runLeg(ctx, pause)
}

// run runs one leg of the call under what is left of its deadline, and checks
// what it returned.
func (x *execution) runLeg(ctx context.Context, pause suspend.Suspension) (call.Result, *call.Error) {
	if err := x.auditIntent(); err != nil {
		return call.Result{}, err
	}
	bounded := lazyctx.WithTimeout(ctx, x.entry.Timeout-pause.Used)
	defer bounded.Cancel(nil)
	x.position.SetCancel(bounded.Cancel)
	invocation := x.invocation(pause)
	x.script = x.span.Child("script")
	invocation.Host.Span = x.script
	if x.mocks == nil {
		invocation.Host.Metrics = x.pipeline.options.Metrics
	}
	began := x.pipeline.options.Now()
	outcome, err := x.handler.Run(x.script.In(bounded), invocation)
	x.script.End()
	if input, ok := errors.AsType[*gofunc.DecodeError](err); ok {
		return call.Result{}, invalidInput(x.entry.Item, []schema.Violation{{Path: input.Path, Message: input.Reason()}})
	}
	gone, isGone := errors.AsType[*catalog.UnavailableError](err)
	switch {
	case x.position.Exhausted():
		return call.Result{}, newError(call.ExecutionError, nil, "%v", calltree.ErrTooManyCalls)
	case errors.Is(err, catalog.ErrDetached):
		return call.Result{Detached: true}, nil
	case err != nil && ctx.Err() != nil:
		return call.Result{}, canceled(ctx)
	case isGone: // for whatever reason, such as that its own time to start was over
		return call.Result{}, unavailableError(gone)
	case errors.Is(err, context.DeadlineExceeded):
		return call.Result{}, x.timedOut(nil)
	case errors.Is(err, scripting.ErrOverloaded):
		return call.Result{}, overloaded()
	case err != nil:
		return call.Result{}, newError(call.ExecutionError, fmt.Errorf("executor: %w", err), "the %s could not be run", x.entry.Kind)
	case outcome.Failure != nil:
		return call.Result{}, x.withTrace(x.failure(ctx, outcome.Failure))
	case outcome.Suspended != nil:
		if pause.Agent == nil {
			pause.Agent = invocation.AgentJSON()
		}
		return x.suspend(ctx, pause, outcome.Suspended, x.pipeline.options.Now().Sub(began))
	case outcome.Result == nil:
		return call.Result{}, newError(call.ExecutionError, errors.New("executor returned neither result nor failure"), "the %s could not be run", x.entry.Kind)
	}
	if x.entry.Kind != call.Tools {
		public := x.entry.Static && len(x.entry.Rules)+len(x.entry.ResultRules) == 0 && !x.catalog.DenyByDefault
		return call.Result{Reply: outcome.Result.JSON, Static: x.entry.Static, Public: public, TTL: outcome.Result.TTL}, nil
	}
	return x.result(outcome.Result)
}

func (x *execution) invocation(pause suspend.Suspension) catalog.Invocation {
	invocation := catalog.Invocation{
		Address: x.req.Name, Input: x.input, Args: x.args, Executor: x.pipeline.options.Executor, Bounds: x.entry.Bounds, Cached: &x.cached,
		Origin: catalog.Origin{Caller: x.req.Caller, Via: string(x.req.Via), Depth: x.position.Depth(), Parent: x.position.ParentName(), CallTree: x.position.CallTree(), Owner: x.owner},
		Leg:    catalog.Leg{StartTime: x.startTime, RootID: pause.Root, Deadline: pause.Start.Add(x.entry.Timeout), Agent: pause.Agent, Journal: pause.Journal},
		Host: host.RunHost{
			Brokers: x.pipeline.options.Brokers, SecretKeys: x.catalog.SecretKeys, CallerKind: x.entry.Kind.String(), Name: x.entry.Name, ID: x.id, RequestID: x.req.Caller.Agent.RequestID,
			InputPolicy: host.InputPolicy{Client: x.req.Can, Round: pause.Leg - pause.Consent.Asked, InNestedCall: x.cannotRequestInput(), InDryRun: x.dryRun != nil}, Tools: x,
			Emit: x.emitter(), Debug: x.req.Debug, Sensitive: &x.hide, Mocks: x.mocks,
		},
	}
	if x.entry.CallsAllTools {
		invocation.ToolAccess, invocation.Approved = toolAccess{x}, x.approval.writes
	}
	if x.req.Late != nil {
		invocation.DetachNotifier = x
	}
	return invocation
}

// CallTool calls a tool for the body of x: for the same caller, and on the same
// snapshot. The bounds of the server count the call and do not refuse it, as x
// holds a place until it ends. What the body of a planned call calls is planned, too. What
// reaches all tools that the caller may call is for callers alone: the grants of a body,
// and the ceiling of these, name the tools that it may call. See [host.Tools].
func (x *execution) CallTool(ctx context.Context, name string, arguments json.RawMessage) (json.RawMessage, error) {
	if e := x.catalog.Entry(call.Tools, name); e != nil && (e.Alias || e.CallsAllTools) {
		return nil, &scripting.HostError{Code: scripting.NotGranted, Message: "this tool may not be called by another"}
	}
	result, err := x.callNested(ctx, call.Request{Name: name, Arguments: arguments, Caller: x.req.Caller, Via: call.ViaTool}, x.dryRun.nested(), false)
	if err != nil {
		return nil, err
	}
	return valueOf(result), nil
}

// valueOf returns what a body is told that a tool returned.
func valueOf(result call.Result) json.RawMessage {
	if result.Rich && result.Structured == nil {
		return result.Content
	}
	return result.Value
}

// nest makes a call for the body of x, or plans to. A call that fails is an error.
func (x *execution) callNested(ctx context.Context, request call.Request, p *dryRun, approved bool) (call.Result, error) {
	if err := CheckArguments(request.Arguments); request.Arguments != nil && err != nil {
		request.ArgumentsErr = &call.Error{Code: call.InvalidInput, Message: err.Error()}
	}
	request.Cancelled = x.req.Cancelled
	inner := x.pipeline.newExecution(x.catalog, request)
	inner.audit, inner.dryRun, inner.cannotAsk, inner.approval.given = x.audit, p, x.cannotRequestInput(), approved
	leave, err := inner.position.Join(ctx, &x.position, x.policyName(), x.id)
	if err != nil {
		inner.rejectNested(ctx, err)
		return call.Result{}, err
	}
	defer leave()
	x.pipeline.inFlight.Begin()
	x.pipeline.capacity.Join(inner.owner)
	inner.joined = true
	result := inner.runWithHooks(ctx, nil)
	if result.Err != nil {
		return call.Result{}, &scripting.HostError{Code: string(result.Err.Code), Message: result.Err.Message}
	}
	return result, nil
}

// asksNobody reports whether the call is made by a body that cannot wait for the client:
// code can, unless what runs it cannot.
func (x *execution) cannotRequestInput() bool {
	return x.cannotAsk || x.position.Depth() > 0 && x.req.Via != call.ViaCode
}

// turnAway ends a nested call that may not run where it stands, as if it had been made. Of
// one that has its whole tree end nothing is said beside the end of that.
func (x *execution) rejectNested(ctx context.Context, why error) {
	if x.position.Exhausted() {
		return
	}
	refused := canceled(ctx)
	if host, ok := errors.AsType[*scripting.HostError](why); ok {
		refused = &call.Error{Code: call.ExecutionError, Message: host.Message}
	}
	x.pipeline.inFlight.Begin()
	x.runWithHooks(ctx, refused)
}

// maxCancelReason is how much is told of the reason of a cancellation, in bytes.
const maxCancelReason = 1 << 10

// shownReason returns a reason as one line that shows what it holds, cut where it is long.
func shownReason(text string) string {
	line := safetext.Line(text, math.MaxInt)
	if len(line) > maxCancelReason {
		line = truncate.Start(line, maxCancelReason-len("…")) + "…"
	}
	return line
}

// noteCancellation finds out who had the call end, and why, where it failed since its
// context has ended. The reason is in the words of a client: secrets and sensitive values
// are taken out of it, and what is not seen is escaped.
func (x *execution) noteCancellation(ctx context.Context, err *call.Error) {
	if x.req.Cancelled == nil || x.cancelled.By != "" || err.Code != call.ExecutionError || ctx.Err() == nil {
		return
	}
	x.cancelled = x.req.Cancelled(context.Cause(ctx))
	x.cancelled.Reason = shownReason(x.redact(x.cancelled.Reason))
	if x.cancelled.By == "" {
		return
	}
	x.pipeline.options.Logger.LogAttrs(ctx, slog.LevelDebug, "call cancelled",
		slog.String("call_id", x.id), slog.String("request_id", x.req.Caller.Agent.RequestID),
		slog.String("cancelled_by", x.cancelled.By), slog.String("cancel_reason", x.cancelled.Reason))
}

// quiet passes on nothing that a body says before its result, which policies judge.
type mutedEmitter struct{ call.Emitter }

func (x *execution) emitter() call.Emitter {
	if x.req.Emit == nil || len(x.entry.ResultRules) == 0 {
		return x.req.Emit
	}
	return mutedEmitter{x.req.Emit}
}
