package serve

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"time"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/deadline"
	"github.com/mcpd/mcpd/internal/mcp"
	"github.com/mcpd/mcpd/internal/tasks"
)

// backend shows an engine to the protocol.
type backend struct {
	engine *engine.Server
	tasks  *tasks.Tasks
	// life ends when calls are not waited for any longer.
	life life

	show show
	info atomic.Pointer[described]
}

// steadyTTL is how long clients may keep what stands in the files, and at most what servers
// behind this one say of theirs. Those who subscribe are told sooner.
const steadyTTL = time.Minute

func newBackend(e *engine.Server) *backend {
	return &backend{engine: e, tasks: newTasks(e), show: show{logger: e.Logger()}}
}

// Info returns what the server says of itself.
func (b *backend) Info() mcp.Info {
	snap := b.engine.Snapshot()
	if snap == nil {
		return mcp.Info{}
	}
	if known := b.info.Load(); known != nil && known.of == snap {
		return known.info
	}
	said := snap.Info()
	known := &described{of: snap, info: mcp.Info{
		Name: said.Name, Title: said.Title, Version: said.Version, Description: said.Description,
		Instructions: said.Instructions, Revision: snap.Revision(), Icons: wireIcons(said.Icons),
		LenientLifecycle: said.LenientLifecycle,
	}}
	b.info.Store(known)
	return known.info
}

// described is what the server of a snapshot says of itself.
type described struct {
	of   *engine.Snapshot
	info mcp.Info
}

// List returns what the caller may see of a kind.
func (b *backend) List(ctx context.Context, k mcp.Kind, caller identity.Caller) mcp.List {
	visible := b.engine.Visible(ctx, kindOf(k), caller)
	if visible.Snapshot == nil {
		return mcp.List{}
	}
	list := mcp.List{Revision: visible.Snapshot.Revision(), Hash: visible.Hash, Private: visible.Private}
	encoded := b.show.list(k, &visible)
	list.Tools, list.Entries = encoded.tools, encoded.entries
	return list
}

// kindOf returns what the engine calls a kind of the protocol.
func kindOf(k mcp.Kind) engine.Kind {
	return [...]engine.Kind{mcp.Tools: engine.Tools, mcp.Resources: engine.Resources, mcp.Templates: engine.Templates, mcp.Prompts: engine.Prompts}[k]
}

// Find returns a tool that the caller may see, or nil. Policies are asked only
// where it matters.
func (b *backend) Find(ctx context.Context, caller identity.Caller, name string) *mcp.Tool {
	snap := b.engine.Snapshot()
	if snap == nil {
		return nil
	}
	tool := snap.Tool(name)
	if tool == nil {
		return nil
	}
	encoded := b.show.tool(tool)
	if encoded != nil && encoded.HasMirrors() && b.engine.Find(ctx, caller, name) == nil {
		return nil
	}
	return encoded
}

// Serves reports whether the caller may read the resource of a URI.
func (b *backend) Serves(ctx context.Context, caller identity.Caller, uri string) bool {
	return b.engine.Serves(ctx, caller, uri)
}

// Follow has whoever has a resource tell when it changes.
func (b *backend) Follow(uri string) (leave func()) { return b.engine.Follow(uri) }

// Watch passes on that a snapshot was published, with the resources that are
// others in it.
func (b *backend) Watch(fn func(changed []string)) (stop func()) { return b.engine.Watch(fn) }

// Call carries a request out, until it ends or the life of the backend does.
func (b *backend) Call(ctx context.Context, r mcp.Request) mcp.Response {
	if r.Declined == nil {
		task, handled := b.asTask(ctx, r)
		if handled && task.Err == nil {
			return task
		}
		r.Declined = task.Err
	}
	call := deadline.WithCancel(ctx)
	defer call.Cancel(nil)
	defer b.life.leave(b.life.enter(call))
	request := engine.Request{
		Kind: kindOf(r.Kind), Name: r.Name, Argument: r.Argument, Arguments: r.Arguments, Caller: r.Caller,
		Can: capabilities(r.Can), Trace: engine.Trace(r.Trace), Declined: declined(r.Declined),
		Cancelled: cancellation,
	}
	if r.Resume != nil {
		request.Resume = resumeOf(r.Resume)
	}
	if r.Emit != nil {
		request.Emit, request.Debug = r.Emit, r.Debug
	}
	if r.Late != nil {
		request.Late = late{r.Late}
	}
	return responseOf(b.engine.Execute(call, request))
}

// late passes on the result of a call that holds its goroutine.
type late struct{ to mcp.Answerer }

// Answer passes the result on.
func (l late) Answer(result engine.Result) { l.to.Answer(responseOf(result)) }

func responseOf(result engine.Result) mcp.Response {
	response := mcp.Response{
		Result: result.Reply, Value: result.Value, Content: result.Content, Rich: result.Rich, Structured: result.Structured,
		Ask: askOf(result.Ask), Err: callError(result.Err), Revision: result.Revision, CallID: result.CallID, Left: result.Left,
	}
	response.TTL = min(result.TTL, steadyTTL)
	if result.Steady {
		response.TTL, response.Public = steadyTTL, result.Public
	}
	return response
}

func callError(e *engine.CallError) *mcp.CallError {
	if e == nil {
		return nil
	}
	wire := &mcp.CallError{
		Code: mcp.Code(e.Code), Message: e.Message, Details: e.Details, Schema: e.Schema,
		Trace: e.Trace, RetryAfter: e.RetryAfter, Limited: e.Limited, Overloaded: e.Overloaded, Required: e.Required, RemovedIn: e.RemovedIn,
	}
	if e.Violations != nil {
		if details, err := json.Marshal(e.Violations); err == nil {
			wire.Details = details
		}
	}
	if e.RPC != nil {
		wire.RPC = &mcp.RPCError{Code: e.RPC.Code, Message: e.RPC.Message, Data: e.RPC.Data}
	}
	return wire
}

// declined returns why the protocol, or what keeps tasks, does not make a call.
func declined(e *mcp.CallError) *engine.CallError {
	if e == nil {
		return nil
	}
	return &engine.CallError{
		Code: engine.Code(e.Code), Message: e.Message, Details: e.Details, RetryAfter: e.RetryAfter, Overloaded: e.Overloaded, Required: e.Required,
	}
}

func capabilities(can mcp.Capabilities) engine.Capabilities {
	return engine.Capabilities{Form: can.Form, URL: can.URL, Sample: can.Sample, SampleTools: can.SampleTools, Roots: can.Roots, NoApproval: can.NoApproval}
}

func resumeOf(r *mcp.Resume) *engine.Resume {
	resume := &engine.Resume{State: r.State, Responses: r.Responses, Refused: make(map[string]engine.RPCError, len(r.Refused))}
	for key, e := range r.Refused {
		resume.Refused[key] = engine.RPCError(e)
	}
	return resume
}

func askOf(a *engine.Ask) *mcp.Ask {
	if a == nil {
		return nil
	}
	ask := &mcp.Ask{State: a.State, Wait: a.Wait}
	for _, r := range a.Requests {
		ask.Requests = append(ask.Requests, mcp.AskRequest(r))
	}
	return ask
}

// cancellation says who had a call end whose context has ended for a cause, and
// why. It is the same on every transport: what has no cause of its own is a
// connection that was closed.
func cancellation(cause error) engine.Cancellation {
	if client, ok := errors.AsType[*mcp.Cancelled](cause); ok {
		return engine.Cancellation{By: engine.CancelledByClient, Reason: client.Reason}
	}
	switch {
	case errors.Is(cause, tasks.ErrCancelled):
		return engine.Cancellation{By: engine.CancelledByClient}
	case errors.Is(cause, mcp.ErrSessionEnded):
		return engine.Cancellation{By: engine.CancelledBySession, Reason: "the session has ended"}
	case errors.Is(cause, errCut), errors.Is(cause, tasks.ErrStopped):
		return engine.Cancellation{By: engine.CancelledByServer, Reason: "the server is shutting down"}
	case errors.Is(cause, context.Canceled):
		return engine.Cancellation{By: engine.CancelledByConnection, Reason: "the connection was closed"}
	}
	return engine.Cancellation{}
}
