package mcp

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/mcpd/mcpd/internal/base/jsontext"
	"github.com/mcpd/mcpd/internal/base/lazyctx"
	"github.com/mcpd/mcpd/internal/base/truncate"
)

// maxInflight bounds the requests that one client has under way at once.
const maxInflight = 256

// Cancelled is the cause of a context that the client cancelled by
// notifications/cancelled: its request is not answered any more.
type Cancelled struct {
	// Reason is what the client says of it, cut where it is long; it may be empty.
	Reason string
}

// Error does not tell the reason, which may be any text.
func (c *Cancelled) Error() string { return "cancelled by the client" }

// ErrSessionEnded is the cause of a context that ended with its session: its
// request is not answered any more either.
var ErrSessionEnded = errors.New("the session has ended")

// maxReason bounds what is kept of the reason of a cancellation, in bytes.
const maxReason = truncate.Least

// isCancelled reports whether the client waits for no answer to the request of a
// context.
func isCancelled(ctx context.Context) bool {
	if ctx.Err() == nil {
		return false
	}
	cause := context.Cause(ctx)
	_, cancelled := errors.AsType[*Cancelled](cause)
	return cancelled || errors.Is(cause, ErrSessionEnded)
}

// inflight knows the requests of one client that are under way, so that the
// client can cancel them by id.
type inflight struct {
	mu   sync.Mutex
	byID map[string]*lazyctx.Context
}

// add registers a request; end takes it out again and frees its context, once.
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

// cancel ends the request with the id; an unknown id is ignored. reason is a JSON
// value, and counts where it is a string.
func (f *inflight) cancel(id, reason []byte) {
	f.mu.Lock()
	call := f.byID[idKey(id)]
	f.mu.Unlock()
	if call != nil {
		said, _ := jsontext.Text(reason)
		call.Cancel(&Cancelled{Reason: strings.Clone(truncate.Text(said, maxReason))})
	}
}

func (f *inflight) cancelAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, call := range f.byID {
		call.Cancel(ErrSessionEnded)
	}
}

// idKey returns the same key for ids that are equal, however they are written.
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

// work counts what is under way, so that an end can be announced to it and
// awaited.
type drainGroup struct {
	// ending is closed by end: what may take forever then comes to its end.
	ending chan struct{}
	// idle is closed once end was called and nothing is under way any more.
	idle chan struct{}

	mu    sync.Mutex
	n     int
	ended bool
}

func newDrainGroup() *drainGroup {
	return &drainGroup{ending: make(chan struct{}), idle: make(chan struct{})}
}

// begin counts one more; false means that nothing new may begin.
func (w *drainGroup) add() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return false
	}
	w.n++
	return true
}

// done takes back one begin.
func (w *drainGroup) done() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.n--
	w.closeIdle()
}

// end lets nothing new begin. It may be called more than once.
func (w *drainGroup) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return
	}
	w.ended = true
	close(w.ending)
	w.closeIdle()
}

// settle closes idle when it is time. The caller holds mu.
func (w *drainGroup) closeIdle() {
	if w.ended && w.n == 0 {
		close(w.idle)
	}
}

// wait waits until nothing is under way, or for ctx.
func (w *drainGroup) wait(ctx context.Context) error {
	select {
	case <-w.idle:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
