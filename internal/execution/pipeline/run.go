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

// runHandler runs the handler from the start, or resumes it.
func (x *execution) runHandler(ctx context.Context) (call.Result, *call.Error) {
	x.hide = redact.NewText(x.input, x.entry.Sensitive).And(x.catalog.Sensitive)
	if x.req.Resume != nil && x.req.Resume.State != "" {
		return x.resume(ctx)
	}
	return x.continueCall(ctx, x.newSuspension())
}

// continueCall runs the handler after the user has approved the call, if policies require that.
func (x *execution) continueCall(ctx context.Context, pause suspend.Suspension) (call.Result, *call.Error) {
	if err := x.requestPlanApproval(ctx, &pause); err != nil {
		return call.Result{}, err
	}
	if x.approval.given && len(x.approval.reasons) > 0 {
		x.approval.set(audit.ApprovalGranted, "", x.approval.digest())
		x.approval.reasons = nil
	}
	if len(x.approval.reasons) > 0 && (!pause.Consent.Given || pause.Consent.To != x.approval.digest()) {
		return x.requestApproval(ctx, pause)
	}
	if pause.Consent.Given {
		x.approval.set(audit.ApprovalGranted, "", pause.Consent.To)
	}
	if x.handler == nil {
		return call.Result{Reply: json.RawMessage(`{"completion":{"values":[],"total":0,"hasMore":false}}`)}, nil
	}
	if pause.Leg == pause.Consent.Asked {
		pause.Start = x.startTime // no leg has run the handler yet, and the user's time does not count
	}
	return x.runLeg(ctx, pause)
}

// runLeg runs one leg within the remaining timeout, and checks its result.
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
	start := x.pipeline.options.Now()
	outcome, err := x.handler.Run(x.script.In(bounded), invocation)
	x.script.End()
	if input, ok := errors.AsType[*gofunc.DecodeError](err); ok {
		return call.Result{}, invalidInput(x.entry.Item, []schema.Violation{{Path: input.Path, Message: input.Reason()}})
	}
	unavailable, isUnavailable := errors.AsType[*catalog.UnavailableError](err)
	switch {
	case x.position.Exhausted():
		return call.Result{}, newError(call.ExecutionError, nil, "%v", calltree.ErrTooManyCalls)
	case errors.Is(err, catalog.ErrDetached):
		return call.Result{Detached: true}, nil
	case err != nil && ctx.Err() != nil:
		return call.Result{}, canceled(ctx)
	case isUnavailable: // for any reason, including its own start timeout
		return call.Result{}, unavailableError(unavailable)
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
		return x.suspend(ctx, pause, outcome.Suspended, x.pipeline.options.Now().Sub(start))
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
	if recorder, ok := x.req.Emit.(host.CallRecorder); ok && x.entry.Kind == call.Tools {
		invocation.Host.Recorder = recorder.HostRecorder(x.input)
	}
	if x.entry.CallsAllTools {
		invocation.ToolAccess, invocation.Approved = toolAccess{x}, x.approval.writes
	}
	if x.req.Late != nil {
		invocation.DetachNotifier = x
	}
	return invocation
}

// CallTool calls a tool for the handler of x, with the same caller and on the same snapshot. The
// call counts for the limit of concurrent calls but is never rejected by it, as x holds a slot
// until it ends. In a dry run the call is a dry run, too. Aliases and code tools cannot be called:
// the grants and the ceiling of a script name the tools that it may call. See [host.Tools].
func (x *execution) CallTool(ctx context.Context, name string, arguments json.RawMessage) (json.RawMessage, error) {
	if e := x.catalog.Entry(call.Tools, name); e != nil && (e.Alias || e.CallsAllTools) {
		return nil, &scripting.HostError{Code: scripting.NotGranted, Message: "this tool cannot be called by another tool"}
	}
	result, err := x.callNested(ctx, call.Request{Name: name, Arguments: arguments, Caller: x.req.Caller, Via: call.ViaTool}, x.dryRun.nested(), false)
	if err != nil {
		return nil, err
	}
	return valueOf(result), nil
}

// valueOf returns the result of a tool as a script sees it.
func valueOf(result call.Result) json.RawMessage {
	if result.Rich && result.Structured == nil {
		return result.Content
	}
	return result.Value
}

// callNested makes a call for the handler of x, or a dry run of it. A failed call is an error.
func (x *execution) callNested(ctx context.Context, request call.Request, d *dryRun, approved bool) (call.Result, error) {
	if err := CheckArguments(request.Arguments); request.Arguments != nil && err != nil {
		request.ArgumentsErr = &call.Error{Code: call.InvalidInput, Message: err.Error()}
	}
	request.Cancelled = x.req.Cancelled
	inner := x.pipeline.newExecution(x.catalog, request)
	inner.audit, inner.steps, inner.dryRun, inner.cannotAsk, inner.approval.given = x.audit, x.steps, d, x.cannotRequestInput(), approved
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

// cannotRequestInput reports whether the handler that makes the call cannot be suspended. Agent
// code can, unless it is nested itself in a call that cannot.
func (x *execution) cannotRequestInput() bool {
	return x.cannotAsk || x.position.Depth() > 0 && x.req.Via != call.ViaCode
}

// rejectNested ends a nested call that exceeds the limits of its call tree. If the whole tree is
// ended, the root call reports it.
func (x *execution) rejectNested(ctx context.Context, err error) {
	if x.position.Exhausted() {
		return
	}
	rejection := canceled(ctx)
	if host, ok := errors.AsType[*scripting.HostError](err); ok {
		rejection = &call.Error{Code: call.ExecutionError, Message: host.Message}
	}
	x.pipeline.inFlight.Begin()
	x.runWithHooks(ctx, rejection)
}

// maxCancelReason bounds a cancellation reason in bytes.
const maxCancelReason = 1 << 10

// shownReason returns a reason as one printable line, truncated.
func shownReason(text string) string {
	line := safetext.Line(text, math.MaxInt)
	if len(line) > maxCancelReason {
		line = truncate.Start(line, maxCancelReason-len("…")) + "…"
	}
	return line
}

// noteCancellation records who cancelled a call that failed as its context ended. The reason comes
// from a client, so secrets and sensitive values are redacted, and invisible characters are
// escaped.
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

// mutedEmitter drops progress and log records of a call with result policies.
type mutedEmitter struct{ call.Emitter }

func (x *execution) emitter() call.Emitter {
	if x.req.Emit == nil || len(x.entry.ResultRules) == 0 {
		return x.req.Emit
	}
	return mutedEmitter{x.req.Emit}
}
