package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/observe"
	"github.com/mcpd/mcpd/internal/base/redact"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/execution/hooks"
	"github.com/mcpd/mcpd/internal/ops/recent"
)

// methods are the MCP methods of the kinds, for traces (Semantic conventions for MCP) and the audit
// log. They do not depend on the transport.
var methods = [...]string{call.Tools: "tools/call", call.Resources: "resources/read", call.Templates: "resources/read", call.Prompts: "prompts/get"}

func (x *execution) method() string {
	if x.req.Argument != "" {
		return "completion/complete"
	}
	return methods[x.req.Kind]
}

// trace starts the span of the call. The returned context carries the span.
func (x *execution) trace(ctx context.Context) context.Context {
	tracer := x.pipeline.options.Tracer
	if receiver, ok := x.req.Emit.(observe.StepReceiver); ok {
		ctx, x.steps = observe.WithSteps(ctx, receiver.Step), true
	}
	if x.steps {
		tracer = tracer.For(ctx)
	}
	if !tracer.Traces() {
		return ctx
	}
	t := &x.req.Trace
	c := observe.Call{
		Method: x.method(), ID: x.id, RequestID: x.req.Caller.Agent.RequestID, Via: string(x.req.Via),
		Parent: observe.Parent(t.Parent, t.State), Carrier: observe.Parent(t.CarrierParent, t.CarrierState),
	}
	if !c.Parent.Valid() {
		c.Parent, c.Carrier = c.Carrier, observe.SpanContext{}
	}
	ctx, x.span = tracer.Start(ctx, c)
	if x.entry != nil {
		x.span.Found(x.entry.Name)
	}
	x.span.Attr(observe.Revision, x.catalog.Revision)
	return ctx
}

func endSpan(part observe.Span, err *call.Error) {
	if err != nil {
		part.Fail(string(err.Code))
	}
	part.End()
}

// endPolicySpan ends the span of the policies with their decision.
func endPolicySpan(policies observe.Span, err *call.Error) {
	decision := observe.Allowed
	if err != nil {
		decision = observe.Denied
		if err.DeniedBy != "" {
			policies.Attr(observe.Policy, err.DeniedBy)
		}
	}
	policies.Attr(observe.Decision, decision)
	endSpan(policies, err)
}

// observe ends the span of the call and counts the call.
func (x *execution) observe(result call.Result) {
	metrics, outcome, err := x.pipeline.options.Metrics, x.outcomeOf(result), result.Err
	if err != nil {
		x.span.Fail(outcome)
		if err.DeniedBy != "" {
			x.span.Attr(observe.Policy, err.DeniedBy)
		}
	}
	x.span.End()
	if metrics == nil {
		return
	}
	switch {
	case err == nil || err.DeniedBy == "":
	case err.Limited:
		metrics.Limited(err.DeniedBy)
	default:
		metrics.Denied(err.DeniedBy)
	}
	name := ""
	if x.entry != nil {
		name = x.entry.Name
	}
	metrics.CallEnded(x.eventKind(), name, string(x.req.Via), outcome, x.pipeline.options.Now().Sub(x.startTime))
}

// recentCall returns the call for [Pipeline.Recent].
func (x *execution) recentCall(result call.Result) recent.Call {
	now, caller := x.pipeline.options.Now(), &x.req.Caller
	c := recent.Call{
		Time: now, Duration: now.Sub(x.startTime), CallID: x.id, RootID: x.root, ParentID: x.position.ParentID(), Depth: x.position.Depth(),
		Kind: x.eventKind(), Name: x.name(), Principal: caller.Principal.ID, Issuer: caller.Principal.Issuer, AuthKind: string(caller.Principal.Kind),
		Agent: caller.Agent.AgentID, Via: string(x.req.Via), Listener: caller.Source.Listener, Outcome: x.outcomeOf(result), CancelledBy: x.cancelled.By, Cached: x.cached,
		RequestID: caller.Agent.RequestID, Revision: x.catalog.Revision, Scopes: caller.Principal.Scopes, Groups: caller.Principal.Groups,
	}
	c.TraceID, _ = x.span.IDs()
	if x.entry == nil && x.req.Kind == call.Resources {
		c.Name = "" // an unknown URI may contain arguments
	}
	if result.Err != nil {
		c.DeniedBy = result.Err.DeniedBy
	}
	return c
}

// fire calls the Go hooks and queues the hooks in files, in order. It encodes the event only if a
// hook in a file needs it.
func (x *execution) fire(ctx context.Context, event call.Event) {
	inFiles := x.fileHooks(event.Phase)
	if len(x.pipeline.options.Hooks) == 0 && len(inFiles) == 0 {
		return
	}
	event.Kind, event.Tool = x.eventKind(), x.name()
	if x.req.Kind == call.Resources {
		event.URI = x.req.Name
	}
	event.CallID, event.RootID, event.Leg = x.id, x.root, int(x.number)
	event.Via, event.Caller = x.req.Via, x.req.Caller
	event.Depth, event.Parent, event.ParentID = x.position.Depth(), x.position.ParentName(), x.position.ParentID()
	event.Revision, event.Arguments = x.catalog.Revision, x.visibleArguments()
	if event.Phase != call.Start {
		event.Duration = x.pipeline.options.Now().Sub(x.startTime)
	}
	for _, hook := range x.pipeline.options.Hooks {
		x.pipeline.runGoHook(ctx, hook, event.Clone())
	}
	if len(inFiles) == 0 {
		return
	}
	run := hooks.Run{
		Event: encodeEvent(event), CallID: x.id, RequestID: x.req.Caller.Agent.RequestID, Origin: x.pipeline.options.Tracer.Origin(x.span.In(ctx)),
		OrderKey: x.orderKey, Owner: x.owner, SecretKeys: x.catalog.SecretKeys, Hide: x.catalog.Sensitive,
	}
	for _, h := range inFiles {
		x.pipeline.options.FileHooks.Add(h.Hook, run)
	}
}

// fireLast fires the terminal event of the call.
func (x *execution) fireLast(ctx context.Context, result call.Result) {
	switch {
	case result.Err != nil:
		x.fire(ctx, call.Event{Phase: call.Failed, Err: result.Err, CancelledBy: x.cancelled.By, CancelReason: x.cancelled.Reason})
	case result.Ask != nil || x.isDryRun():
		x.fire(ctx, call.Event{Phase: call.End, Outcome: x.outcomeOf(result)})
	case result.Reply != nil:
		x.fire(ctx, call.Event{Phase: call.End, Result: result.Reply})
	default:
		x.fire(ctx, call.Event{Phase: call.End, Cached: x.cached, Result: redact.Pointers(result.Value, x.entry.SensitiveOutput)})
	}
}

// fileHooks returns the hooks in files for a phase of the call. For a missing item, the requested
// name is matched.
func (x *execution) fileHooks(phase call.Phase) []*catalog.Hook {
	candidates := x.catalog.Hooks
	if x.entry != nil {
		candidates = x.entry.Hooks
	}
	return catalog.HooksFor(candidates, string(phase), x.kind(), x.name())
}

// visibleArguments returns the arguments without sensitive ones; nil for a missing item. The
// arguments of a resource are the variables of its template.
func (x *execution) visibleArguments() json.RawMessage {
	if x.entry != nil && x.req.Kind == call.Resources {
		return encode(x.args)
	}
	if x.entry == nil {
		return nil
	}
	return redact.Arguments(x.req.Arguments, x.input != nil, x.entry.Sensitive, x.entry.InputNames)
}

func encodeEvent(e call.Event) json.RawMessage {
	event := struct {
		call.Event
		DurationMS *float64 `json:"duration_ms,omitempty"`
	}{Event: e}
	event.Arguments = orNull(e.Arguments)
	if e.Phase != call.Start {
		ms := float64(e.Duration.Microseconds()) / 1000
		event.DurationMS = &ms
	}
	return encode(event)
}

// runGoHook runs a Go hook. A panic is logged.
func (p *Pipeline) runGoHook(ctx context.Context, hook Hook, event call.Event) {
	defer func() {
		if cause := recover(); cause != nil {
			p.options.FileHooks.RecordFailure(ctx, catalog.GoName, hooks.Run{CallID: event.CallID, RequestID: event.Caller.Agent.RequestID}, fmt.Errorf("panic: %v", cause))
		}
	}()
	hook(ctx, event)
}

// logEnd logs the end of a call: an error with its cause, or a success at level debug. It does no
// work if the level is disabled.
func (x *execution) logEnd(ctx context.Context, err *call.Error) {
	logger, level := x.pipeline.options.Logger, slog.LevelDebug
	switch {
	case err != nil && err.Cause != nil:
		level = slog.LevelWarn
	case err != nil:
		level = slog.LevelInfo
	}
	if !logger.Enabled(ctx, level) {
		return
	}
	called := x.req.Name
	switch {
	case x.entry != nil:
		called = x.entry.Address // without the values in the URI of a template
	case x.req.Kind == call.Resources:
		called = "" // an unknown URI may contain such values, too
	}
	caller := &x.req.Caller
	attrs := make([]slog.Attr, 0, 10)
	attrs = append(attrs, slog.String(x.req.Kind.String(), called), slog.String("call_id", x.id), slog.String("request_id", caller.Agent.RequestID))
	if err != nil {
		attrs = append(attrs, slog.String("code", string(err.Code)))
	}
	if parent := x.position.ParentID(); parent != "" {
		attrs = append(attrs, slog.String("parent_id", parent))
	}
	if err != nil && err.DeniedBy != "" {
		attrs = append(attrs, slog.String("denied_by", err.DeniedBy))
	}
	if x.cancelled.By != "" {
		attrs = append(attrs, slog.String("cancelled_by", x.cancelled.By))
	}
	if err != nil && err.Cause != nil {
		attrs = append(attrs, slog.String("cause", x.redact(err.Cause.Error())))
	}
	attrs = append(attrs, slog.String("principal", caller.Principal.ID))
	if caller.Principal.Issuer != "" {
		attrs = append(attrs, slog.String("issuer", caller.Principal.Issuer))
	}
	if err == nil {
		attrs = append(attrs, slog.Duration("took", x.pipeline.options.Now().Sub(x.startTime)))
		logger.LogAttrs(ctx, level, "call succeeded", attrs...)
		return
	}
	logger.LogAttrs(ctx, level, "call failed", attrs...)
}

// secretMatcher finds the server's secrets. Values of the caller are redacted in the same pass: in
// an earlier one they could cover a part of a secret, and expose the rest.
func (x *execution) secretMatcher() redact.Net { return x.pipeline.options.Brokers.Secrets.Matcher() }

// redact removes secrets, sensitive variables and sensitive arguments from a text by a policy or a
// limit.
func (x *execution) redact(text string) string { return x.redactWith(redact.Text{}, text) }

func (x *execution) redactWith(hide redact.Text, text string) string {
	if text == "" {
		return ""
	}
	hide = hide.And(x.catalog.Sensitive)
	if x.entry != nil && len(x.entry.Sensitive) > 0 {
		hide = hide.And(x.sensitiveArguments())
	}
	return hide.Hide(text, x.secretMatcher())
}

// sensitiveArguments redacts the sensitive arguments, both as sent and as policies see them, with
// defaults and CEL numbers.
func (x *execution) sensitiveArguments() redact.Text {
	hide := redact.NewText(x.req.Arguments, x.entry.Sensitive)
	if x.args == nil {
		return hide
	}
	return hide.And(redact.NewText(encode(x.args), x.entry.Sensitive))
}

// redactResult is redact for a policy that has seen the result. Errors of policies contain no
// values.
func (x *execution) redactResult(text string, result call.Result) string {
	var hide redact.Text
	if len(x.entry.SensitiveOutput) > 0 && text != "" {
		hide = redact.NewText(resultForPolicies(result), x.entry.SensitiveOutput)
	}
	return x.redactWith(hide, text)
}
