package mcp

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mcpd/mcpd/internal/base/jsontext"
	"github.com/mcpd/mcpd/internal/base/lazyctx"
	"github.com/mcpd/mcpd/internal/base/truncate"
)

// maxInflight bounds the concurrent requests of one client.
const maxInflight = 256

// Cancelled is the cause of a context that the client cancelled with
// notifications/cancelled. Its request gets no response.
type Cancelled struct {
	// Reason is the client's reason, truncated if it is long; it may be empty.
	Reason string
}

// Error omits the reason, which may be any text.
func (c *Cancelled) Error() string { return "cancelled by the client" }

// ErrSessionEnded is the cause of a context that ended with its session. Its
// request gets no response either.
var ErrSessionEnded = errors.New("the session has ended")

// maxReason bounds the stored reason of a cancellation, in bytes.
const maxReason = truncate.Least

// isCancelled reports whether the client no longer waits for the response to
// the request with this context.
func isCancelled(ctx context.Context) bool {
	if ctx.Err() == nil {
		return false
	}
	cause := context.Cause(ctx)
	_, cancelled := errors.AsType[*Cancelled](cause)
	return cancelled || errors.Is(cause, ErrSessionEnded)
}

// inflight holds the running requests of one client, so that the client can
// cancel them by id.
type inflight struct {
	mu   sync.Mutex
	byID map[string]*lazyctx.Context
}

// add registers a request. end removes it and releases its context; it may be
// called more than once.
func (f *inflight) add(ctx context.Context, id []byte) (_ context.Context, end func(), _ *fault) {
	key := idKey(id)
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, taken := f.byID[key]; taken {
		return nil, nil, malformed("a request with this id is under way")
	}
	if len(f.byID) >= maxInflight {
		return nil, nil, newFault(codeInternal, Unavailable, "too many requests are under way; wait for some to end")
	}
	if f.byID == nil {
		f.byID = map[string]*lazyctx.Context{}
	}
	call := lazyctx.WithCancel(ctx)
	f.byID[key] = call
	ended := false
	return call, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if !ended {
			ended = true
			delete(f.byID, key)
			call.Cancel(nil)
		}
	}, nil
}

// cancel cancels the request with the id; it ignores an unknown id. reason is a
// JSON value, and used if it is a string.
func (f *inflight) cancel(id, reason []byte) {
	f.mu.Lock()
	call := f.byID[idKey(id)]
	f.mu.Unlock()
	if call != nil {
		text, _ := jsontext.Text(reason)
		call.Cancel(&Cancelled{Reason: strings.Clone(truncate.Text(text, maxReason))})
	}
}

func (f *inflight) cancelAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, call := range f.byID {
		call.Cancel(ErrSessionEnded)
	}
}

// idKey returns the same key for equal ids, however they are written.
func idKey(id []byte) string {
	if bytes.IndexByte(id, '\\') >= 0 {
		return `"` + string(jsontext.Unquote(id))
	}
	return string(bytes.TrimSuffix(id, []byte{'"'}))
}

func (f *inflight) len() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.byID)
}

// drainGroup counts running work, so that it can be ended and waited for. Each
// message passes it, so it has no mutex, on which calls would queue.
type drainGroup struct {
	// ending is closed by end: work without a time limit must then end.
	ending chan struct{}
	// idle is closed after end, when no work is running.
	idle chan struct{}

	state     atomic.Int64 // the number of units of work, and drainEnded after end
	closeIdle sync.Once
}

const drainEnded = 1 << 62

func newDrainGroup() *drainGroup {
	return &drainGroup{ending: make(chan struct{}), idle: make(chan struct{})}
}

// add counts one more unit of work. It returns false after end.
func (g *drainGroup) add() bool {
	if g.state.Add(1) < drainEnded {
		return true
	}
	g.done()
	return false
}

// done undoes one add.
func (g *drainGroup) done() {
	if g.state.Add(-1) == drainEnded {
		g.closeIdle.Do(func() { close(g.idle) })
	}
}

// end rejects new work. It may be called more than once.
func (g *drainGroup) end() {
	before := g.state.Or(drainEnded)
	if before >= drainEnded {
		return
	}
	close(g.ending)
	if before == 0 {
		g.closeIdle.Do(func() { close(g.idle) })
	}
}

// wait waits until no work is running, or for ctx.
func (g *drainGroup) wait(ctx context.Context) error {
	select {
	case <-g.idle:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
