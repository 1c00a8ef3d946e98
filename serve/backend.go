package serve

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/lazyctx"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/tasks"
)

// backend shows an engine to the protocol.
type backend struct {
	engine *engine.Server
	*tasks.Tasks
	// life ends when calls are not waited for any longer.
	inflight callGroup

	encoded encodeCache
	info    atomic.Pointer[cachedInfo]
}

// steadyTTL is how long clients may keep what stands in the files, and at most what servers
// behind this one say of theirs. Those who subscribe are told sooner.
const staticTTL = time.Minute

// Info returns what the server says of itself.
func (b *backend) Info() mcp.Info {
	snap := b.engine.Snapshot()
	if snap == nil {
		return mcp.Info{}
	}
	if known := b.info.Load(); known != nil && known.snapshot == snap {
		return known.info
	}
	said := snap.Info()
	known := &cachedInfo{snapshot: snap, info: mcp.Info{
		Name: said.Name, Title: said.Title, Version: said.Version, Description: said.Description,
		Instructions: said.Instructions, Revision: snap.Revision(), Icons: wireIcons(said.Icons),
		LenientLifecycle: said.LenientLifecycle,
	}}
	b.info.Store(known)
	return known.info
}

// described is what the server of a snapshot says of itself.
type cachedInfo struct {
	snapshot *engine.Snapshot
	info     mcp.Info
}

// List returns what the caller may see of a kind.
func (b *backend) List(ctx context.Context, k call.Kind, caller identity.Caller) mcp.List {
	visible := b.engine.Visible(ctx, k, caller)
	if visible.Snapshot == nil {
		return mcp.List{}
	}
	return mcp.List{
		Revision: visible.Snapshot.Revision(), Hash: visible.Hash, Private: visible.Private,
		Entries: b.encoded.list(k, &visible),
	}
}

// Find returns a tool that the caller may see, or nil. Policies are asked only
// where it matters.
func (b *backend) Find(ctx context.Context, caller identity.Caller, name string) *mcp.Entry {
	snap := b.engine.Snapshot()
	if snap == nil {
		return nil
	}
	tool := snap.Tool(name)
	if tool == nil {
		return nil
	}
	encoded := b.encoded.tool(tool)
	if encoded != nil && encoded.HasMirrors() && b.engine.Find(ctx, caller, name) == nil {
		return nil
	}
	return encoded
}

// Serves reports whether the caller may read the resource of a URI.
func (b *backend) CanRead(ctx context.Context, caller identity.Caller, uri string) bool {
	return b.engine.Serves(ctx, caller, uri)
}

// Follow has whoever has a resource tell when it changes.
func (b *backend) WatchResource(uri string) (leave func()) { return b.engine.Follow(uri) }

// Watch passes on that a snapshot was published, with the resources that are
// others in it.
func (b *backend) Watch(fn func(changed []string)) (stop func()) { return b.engine.Watch(fn) }

// Call carries a request out, until it ends or the life of the backend does.
func (b *backend) Call(ctx context.Context, r call.Request) (call.Result, *mcp.Task) {
	if r.Declined == nil {
		task, declined := b.startTask(ctx, r)
		if task != nil {
			return call.Result{Revision: b.Info().Revision}, task
		}
		r.Declined = declined
	}
	running := lazyctx.WithCancel(ctx)
	defer running.Cancel(nil)
	defer b.inflight.remove(b.inflight.add(running))
	r.Cancelled = cancellation
	if r.Late != nil {
		r.Late = lateSink{r.Late}
	}
	return withTTL(b.engine.Execute(running, r)), nil
}

// keyTasks names MCP's extension for tasks, as what a client lacks.
const keyTasks = `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`

// asTask starts the call of a tool as a task if the tool and the client take tasks. It
// returns the task, or else why the call is declined; both are nil for a call that runs
// without a task.
func (b *backend) startTask(ctx context.Context, r call.Request) (*mcp.Task, *call.Error) {
	if r.Kind != call.Tools {
		return nil, nil
	}
	mode := b.taskMode(ctx, r)
	if mode.TTL == 0 || !r.Can.Tasks && !mode.Required {
		return nil, nil
	}
	if !r.Can.Tasks {
		return nil, &call.Error{
			Code: call.ExecutionError, Required: json.RawMessage(keyTasks),
			Message: "the tool runs as a task only, and its client does not support tasks",
		}
	}
	if mode.AskFirst && (r.Resume == nil || r.Resume.State == "") {
		return nil, nil
	}
	return b.Tasks.Start(ctx, r, mode.TTL)
}

// taskMode returns whether a tool that the caller may see runs as a task.
func (b *backend) taskMode(ctx context.Context, r call.Request) engine.Task {
	if snap := b.engine.Snapshot(); snap != nil {
		if tool := snap.Tool(r.Name); tool == nil || tool.Task().TTL == 0 {
			return engine.Task{}
		}
	}
	if tool := b.engine.Find(ctx, r.Caller, r.Name); tool != nil {
		return tool.Task()
	}
	return engine.Task{}
}

// late answers calls of Go tools that still hold their goroutine.
type lateSink struct{ sink call.Answerer }

// Answer passes the result on.
func (l lateSink) Answer(result call.Result) { l.sink.Answer(withTTL(result)) }

// withTTL bounds how long clients may keep a reply, and sets it for replies from files.
func withTTL(r call.Result) call.Result {
	r.TTL = min(r.TTL, staticTTL)
	if r.Steady {
		r.TTL = staticTTL
	}
	r.Public = r.Public && r.Steady
	return r
}

// cancellation says who had a call end whose context has ended for a cause, and
// why. It is the same on every transport: what has no cause of its own is a
// connection that was closed.
func cancellation(cause error) call.Cancellation {
	if client, ok := errors.AsType[*mcp.Cancelled](cause); ok {
		return call.Cancellation{By: call.CancelledByClient, Reason: client.Reason}
	}
	switch {
	case errors.Is(cause, tasks.ErrCancelled):
		return call.Cancellation{By: call.CancelledByClient}
	case errors.Is(cause, mcp.ErrSessionEnded):
		return call.Cancellation{By: call.CancelledBySession, Reason: "the session has ended"}
	case errors.Is(cause, errShutdown), errors.Is(cause, tasks.ErrStopped):
		return call.Cancellation{By: call.CancelledByServer, Reason: "the server is shutting down"}
	case errors.Is(cause, context.Canceled):
		return call.Cancellation{By: call.CancelledByConnection, Reason: "the connection was closed"}
	}
	return call.Cancellation{}
}

// life is what calls live in: they are cancelled when it ends. The zero life
// is ready for use.
type callGroup struct {
	mu    sync.Mutex
	cause error // nil while it lasts
	last  uint64
	calls map[uint64]*lazyctx.Context
}

// enter adds a call, which a life that has ended cancels at once. [life.leave]
// takes it out again, by the number.
func (l *callGroup) add(call *lazyctx.Context) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause != nil {
		call.Cancel(l.cause)
	}
	if l.calls == nil {
		l.calls = map[uint64]*lazyctx.Context{}
	}
	l.last++
	l.calls[l.last] = call
	return l.last
}

func (l *callGroup) remove(number uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.calls, number)
}

// end cancels what lives, and what comes later.
func (l *callGroup) cancelAll(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cause = cause
	for _, call := range l.calls {
		call.Cancel(cause)
	}
}
