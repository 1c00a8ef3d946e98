package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/catalog"
	"github.com/mcpd/mcpd/internal/hooks"
	"github.com/mcpd/mcpd/internal/redact"
)

// Phase is a point in the life of a call at which hooks fire (RFC section 12).
type Phase string

const (
	// Start fires once, before anything else.
	Start Phase = "start"
	// End fires once when the call has a result.
	End Phase = "end"
	// Failed fires once when the call has none. Exactly one of End and Failed
	// fires for every call, however it ends.
	Failed Phase = "error"
)

// HookEvent is what a hook is told. It is a copy: nothing that a hook does
// changes the call or its result.
type HookEvent struct {
	Phase Phase `json:"phase"`
	// Tool is the name of the tool, of the resource or of the prompt; for what
	// does not exist, what the caller asked for.
	Tool string `json:"tool"`
	// Kind is "tool", "resource", "prompt" or "completion".
	Kind string `json:"kind"`
	// URI is that of the resource; empty for any other kind.
	URI    string `json:"uri,omitempty"`
	CallID string `json:"call_id"`
	// RootID is the CallID of the first leg of a call that asks its client, and
	// Leg counts its legs from one. At the start of a later leg, whose state has
	// not been looked at, both are absent.
	RootID string `json:"root_id,omitempty"`
	Leg    int    `json:"leg,omitempty"`
	Via    Via    `json:"via"`
	// Depth counts the calls that this one is nested in. Parent is the name of
	// what made it, and ParentID the CallID of that; empty for a client's own.
	Depth    int    `json:"depth,omitempty"`
	Parent   string `json:"parent,omitempty"`
	ParentID string `json:"parent_id,omitempty"`
	identity.Caller
	// Arguments are as the caller sent them, without the values of sensitive
	// inputs; nil when they are not a JSON object, or when there is no such tool.
	Arguments json.RawMessage `json:"arguments"`
	// Result is the value that the tool returned; set at End.
	Result json.RawMessage `json:"result,omitempty"`
	// Cached says, at End, that the result is that of another call.
	Cached bool `json:"cached,omitempty"`
	// Outcome is "input_required" at End when the call waits for its client, and
	// empty otherwise.
	Outcome string `json:"outcome,omitempty"`
	// Err is set at Failed.
	Err *CallError `json:"error,omitempty"`
	// Duration is the time since the call began; set at End and Failed.
	Duration time.Duration `json:"-"`
	// Revision names the snapshot that serves the call.
	Revision string `json:"revision"`
}

// Hook is a Go hook. It runs in line, so it should be quick; a hook that
// panics is logged and never felt by the caller.
type Hook func(ctx context.Context, event HookEvent)

// fire tells the Go hooks, in line, and queues the hooks in files, in order.
// The event is encoded only when a hook in a file wants it.
func (x *execution) fire(ctx context.Context, event HookEvent) {
	inFiles := x.fileHooks(event.Phase)
	if len(x.server.options.Hooks) == 0 && len(inFiles) == 0 {
		return
	}
	event.Kind, event.Tool, event.URI = x.eventKind(), x.name(), x.uri()
	event.CallID, event.RootID, event.Leg = x.id, x.root, int(x.leg)
	event.Via, event.Caller = x.req.Via, x.req.Caller
	event.Depth, event.Parent, event.ParentID = x.place.Depth(), x.place.Caller(), x.place.Parent()
	event.Revision, event.Arguments = x.snap.catalog.Revision, x.visibleArguments()
	if event.Phase != Start {
		event.Duration = x.server.options.Now().Sub(x.began)
	}
	for _, hook := range x.server.options.Hooks {
		x.server.runGoHook(ctx, hook, event.clone())
	}
	if len(inFiles) == 0 {
		return
	}
	run := hooks.Run{Event: event.json(), CallID: x.id, Lane: x.lane, SecretKeys: x.snap.catalog.SecretKeys, Hide: x.snap.catalog.Sensitive}
	for _, h := range inFiles {
		x.server.hooks.Add(h.Hook, run)
	}
}

// fireLast fires the one terminal event of the call.
func (x *execution) fireLast(ctx context.Context, result Result) {
	switch {
	case result.Err != nil:
		x.fire(ctx, HookEvent{Phase: Failed, Err: result.Err})
	case result.Ask != nil:
		x.fire(ctx, HookEvent{Phase: End, Outcome: "input_required"})
	case result.Reply != nil:
		x.fire(ctx, HookEvent{Phase: End, Result: result.Reply})
	default:
		x.fire(ctx, HookEvent{Phase: End, Cached: x.cached, Result: redact.Pointers(result.Value, x.entry.SensitiveOutput)})
	}
}

// fileHooks returns the hooks in files that want to know of a phase of this
// call. What does not exist is matched by the name that was asked for.
func (x *execution) fileHooks(phase Phase) []*catalog.Hook {
	candidates := x.snap.catalog.Hooks
	if x.entry != nil {
		candidates = x.entry.Hooks
	}
	return catalog.Wanting(candidates, string(phase), x.kind(), x.name())
}

// visibleArguments returns the arguments without those that are sensitive. For
// what does not exist, nothing is known to be harmless. Those of a resource are
// the variables of its template.
func (x *execution) visibleArguments() json.RawMessage {
	if x.entry != nil && x.req.Kind == Resources {
		return encode(x.args)
	}
	if x.entry == nil {
		return nil
	}
	return redact.Arguments(x.req.Arguments, x.input != nil, x.entry.Sensitive, x.entry.InputNames)
}

// json is the event as hooks in files see it.
func (e HookEvent) json() json.RawMessage {
	event := struct {
		HookEvent
		DurationMS *float64 `json:"duration_ms,omitempty"`
	}{HookEvent: e}
	event.Arguments = orNull(e.Arguments)
	if e.Phase != Start {
		ms := float64(e.Duration.Microseconds()) / 1000
		event.DurationMS = &ms
	}
	return encode(event)
}

// clone returns a copy that a hook may change without anybody noticing.
func (e HookEvent) clone() HookEvent {
	e.Caller, e.Arguments, e.Result = e.Caller.Clone(), bytes.Clone(e.Arguments), bytes.Clone(e.Result)
	if e.Err != nil {
		e.Err = e.Err.public()
	}
	return e
}

// runGoHook runs a Go hook; what it panics with is the operator's to know.
func (s *Server) runGoHook(ctx context.Context, hook Hook, event HookEvent) {
	defer func() {
		if cause := recover(); cause != nil {
			s.hooks.Failed("(go)", event.CallID, fmt.Errorf("panic: %v", cause))
		}
	}()
	hook(ctx, event)
}
