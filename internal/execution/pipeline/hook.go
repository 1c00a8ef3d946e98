package pipeline

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/redact"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/execution/hooks"
	"github.com/mcpd/mcpd/internal/ops/audit"
)

// fire tells the Go hooks, in line, and queues the hooks in files, in order.
// The event is encoded only when a hook in a file wants it.
func (x *execution) fire(ctx context.Context, event call.Event) {
	inFiles := x.fileHooks(event.Phase)
	if len(x.pipeline.options.Hooks) == 0 && len(inFiles) == 0 {
		return
	}
	event.Kind, event.Tool, event.URI = x.eventKind(), x.name(), x.uri()
	event.CallID, event.RootID, event.Leg = x.id, x.root, int(x.leg)
	event.Via, event.Caller = x.req.Via, x.req.Caller
	event.Depth, event.Parent, event.ParentID = x.place.Depth(), x.place.Caller(), x.place.Parent()
	event.Revision, event.Arguments = x.catalog.Revision, x.visibleArguments()
	if event.Phase != call.Start {
		event.Duration = x.pipeline.options.Now().Sub(x.began)
	}
	for _, hook := range x.pipeline.options.Hooks {
		x.pipeline.runGoHook(ctx, hook, event.Clone())
	}
	if len(inFiles) == 0 {
		return
	}
	run := hooks.Run{
		Event: encodeEvent(event), CallID: x.id, RequestID: x.req.Caller.Agent.RequestID, Origin: x.pipeline.options.Tracer.Origin(x.span.In(ctx)),
		Lane: x.lane, Owner: x.owner, SecretKeys: x.catalog.SecretKeys, Hide: x.catalog.Sensitive,
	}
	for _, h := range inFiles {
		x.pipeline.options.FileHooks.Add(h.Hook, run)
	}
}

// fireLast fires the one terminal event of the call.
func (x *execution) fireLast(ctx context.Context, result call.Result) {
	switch {
	case result.Err != nil:
		x.fire(ctx, call.Event{Phase: call.Failed, Err: result.Err, CancelledBy: x.cancelled.By, CancelReason: x.cancelled.Reason})
	case result.Ask != nil:
		x.fire(ctx, call.Event{Phase: call.End, Outcome: "input_required"})
	case x.rehearsed():
		x.fire(ctx, call.Event{Phase: call.End, Outcome: audit.OutcomeRehearsed})
	case result.Reply != nil:
		x.fire(ctx, call.Event{Phase: call.End, Result: result.Reply})
	default:
		x.fire(ctx, call.Event{Phase: call.End, Cached: x.cached, Result: redact.Pointers(result.Value, x.entry.SensitiveOutput)})
	}
}

// fileHooks returns the hooks in files that want to know of a phase of this
// call. What does not exist is matched by the name that was asked for.
func (x *execution) fileHooks(phase call.Phase) []*catalog.Hook {
	candidates := x.catalog.Hooks
	if x.entry != nil {
		candidates = x.entry.Hooks
	}
	return catalog.Wanting(candidates, string(phase), x.kind(), x.name())
}

// visibleArguments returns the arguments without those that are sensitive. For
// what does not exist, nothing is known to be harmless. Those of a resource are
// the variables of its template.
func (x *execution) visibleArguments() json.RawMessage {
	if x.entry != nil && x.req.Kind == call.Resources {
		return encode(x.args)
	}
	if x.entry == nil {
		return nil
	}
	return redact.Arguments(x.req.Arguments, x.input != nil, x.entry.Sensitive, x.entry.InputNames)
}

// encodeEvent returns an event as hooks in files see it.
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

// runGoHook runs a Go hook; what it panics with is the operator's to know.
func (p *Pipeline) runGoHook(ctx context.Context, hook Hook, event call.Event) {
	defer func() {
		if cause := recover(); cause != nil {
			p.options.FileHooks.Failed(ctx, catalog.InGo, hooks.Run{CallID: event.CallID, RequestID: event.Caller.Agent.RequestID}, fmt.Errorf("panic: %v", cause))
		}
	}()
	hook(ctx, event)
}
