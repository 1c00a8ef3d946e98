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

// backend implements [mcp.Backend] with an engine.
type backend struct {
	engine *engine.Server
	*tasks.Tasks
	// inflight cancels running calls at shutdown.
	inflight callGroup

	encoded encodeCache
	info    atomic.Pointer[cachedInfo]
}

// staticTTL is how long clients may cache content from files, and the maximum
// for upstream servers. Subscribed clients are notified earlier.
const staticTTL = time.Minute

// Info returns the server's description of itself.
func (b *backend) Info() mcp.Info {
	snap := b.engine.Snapshot()
	if snap == nil {
		return mcp.Info{}
	}
	if cached := b.info.Load(); cached != nil && cached.snapshot == snap {
		return cached.info
	}
	info := snap.Info()
	cached := &cachedInfo{snapshot: snap, info: mcp.Info{
		Name: info.Name, Title: info.Title, Version: info.Version, Description: info.Description,
		Instructions: info.Instructions, Revision: snap.Revision(), Icons: wireIcons(info.Icons),
		LenientLifecycle: info.LenientLifecycle,
	}}
	b.info.Store(cached)
	return cached.info
}

// cachedInfo is the info of a snapshot.
type cachedInfo struct {
	snapshot *engine.Snapshot
	info     mcp.Info
}

// List returns the entries of a kind that the caller may see.
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

// Find returns a tool that the caller may see, or nil. It evaluates policies
// only if the tool has mirrored arguments.
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

// CanRead reports whether the caller may read the resource of a URI.
func (b *backend) CanRead(ctx context.Context, caller identity.Caller, uri string) bool {
	return b.engine.CanRead(ctx, caller, uri)
}

// WatchResource subscribes to a resource of an upstream server.
func (b *backend) WatchResource(uri string) (leave func()) { return b.engine.Follow(uri) }

// Watch calls fn after each published snapshot, with the changed resources.
func (b *backend) Watch(fn func(changed []string)) (stop func()) { return b.engine.Watch(fn) }

// Call runs a request until it ends or the server shuts down.
func (b *backend) Call(ctx context.Context, r call.Request) (call.Result, *mcp.Task) {
	if r.RejectErr == nil {
		task, declined := b.startTask(ctx, r)
		if task != nil {
			return call.Result{Revision: b.Info().Revision}, task
		}
		r.RejectErr = declined
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

// keyTasks is the client capability for MCP's tasks extension.
const keyTasks = `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`

// startTask starts the call of a tool as a task if the tool and the client
// support tasks. It returns the task, or an error for a tool that needs one;
// both are nil for a call without a task.
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

// taskMode returns the task options of a tool that the caller may see.
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

// lateSink receives results of Go tools that still block their goroutine.
type lateSink struct{ sink call.Answerer }

// Answer passes the result on.
func (l lateSink) Answer(result call.Result) { l.sink.Answer(withTTL(result)) }

// withTTL limits how long clients may cache a reply, and sets the TTL of static
// replies.
func withTTL(r call.Result) call.Result {
	r.TTL = min(r.TTL, staticTTL)
	if r.Static {
		r.TTL = staticTTL
	}
	r.Public = r.Public && r.Static
	return r
}

// cancellation returns who cancelled a call, and why, from the cause of its
// context. It is the same on every transport. Without a specific cause, the
// connection was closed.
func cancellation(cause error) call.Cancellation {
	if client, ok := errors.AsType[*mcp.Cancelled](cause); ok {
		return call.Cancellation{By: call.CancelledByClient, Reason: client.Reason}
	}
	switch {
	case errors.Is(cause, tasks.ErrCancelled):
		return call.Cancellation{By: call.CancelledByClient}
	case errors.Is(cause, mcp.ErrSessionEnded):
		return call.Cancellation{By: call.CancelledBySession, Reason: "the session has ended"}
	case errors.Is(cause, tasks.ErrLost):
		return call.Cancellation{By: call.CancelledByServer, Reason: cause.Error()}
	case errors.Is(cause, errShutdown), errors.Is(cause, tasks.ErrStopped):
		return call.Cancellation{By: call.CancelledByServer, Reason: "the server is shutting down"}
	case errors.Is(cause, context.Canceled):
		return call.Cancellation{By: call.CancelledByConnection, Reason: "the connection was closed"}
	}
	return call.Cancellation{}
}

// callGroup cancels all its calls at shutdown. The zero value is ready for use.
type callGroup struct {
	mu    sync.Mutex
	cause error // nil before the shutdown
	last  uint64
	calls map[uint64]*lazyctx.Context
}

// add adds a call, or cancels it if the group has ended. [callGroup.remove]
// removes it by the returned number.
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

// cancelAll cancels all present and later calls.
func (l *callGroup) cancelAll(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cause = cause
	for _, call := range l.calls {
		call.Cancel(cause)
	}
}
