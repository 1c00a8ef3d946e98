// Package recent keeps the last calls of a server, for people who watch it.
//
// A [Ring] records nothing before the first [Ring.Start] or [Ring.Watch]. It holds no arguments, no
// results and no messages of calls. The pipeline adds a [Call] when the call ends.
package recent

import (
	"context"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Size is the number of calls that a [Ring] keeps.
const Size = 1024

// maxText bounds each text of a [Call] in bytes: clients choose some of them.
const maxText = 512

// Call is a call that has ended.
type Call struct {
	// Seq counts the calls of the ring from 1.
	Seq uint64
	// Time is when the call ended.
	Time     time.Time
	Duration time.Duration
	// CallID is unique to the leg; RootID is shared by all legs of a call. ParentID is the call
	// that made it, and Depth the number of calls above it.
	CallID, RootID, ParentID string
	Depth                    int
	// Kind is tool, resource, prompt or completion. Name has no values of the caller: for
	// a template it is the name of the template, and for an unknown resource it is empty.
	Kind, Name string
	// Principal, Issuer and AuthKind identify the caller. Agent is what the caller says about itself.
	Principal, Issuer, AuthKind, Agent string
	// Scopes and Groups belong to the principal. They must not be modified.
	Scopes, Groups []string
	// Via is the origin of the call: client, code, tool. Listener is the listener of the transport.
	Via, Listener string
	// Outcome is ok, input_required, rehearsed or an error code.
	Outcome string
	// CancelledBy is the party that cancelled the call, as in [call.Event]; "" if it was not cancelled.
	CancelledBy string
	// DeniedBy is the policy or limit that refused the call; Cached means that the result was cached.
	DeniedBy string
	Cached   bool
	// RequestID is the id that the client chose, or CallID. TraceID is empty without a trace.
	RequestID, TraceID string
	// Revision is the snapshot that served the call.
	Revision string
}

// Ring has the last [Size] calls of a server. It is safe for concurrent use. The zero Ring records
// nothing yet.
type Ring struct {
	recording atomic.Bool

	// guarded by mu
	mu    sync.Mutex
	calls []Call // the call with number n is at (n-1) % Size
	last  uint64 // number of the last call
	news  chan struct{}
}

// Start records calls from now on.
func (r *Ring) Start() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.calls == nil {
		r.calls, r.news = make([]Call, Size), make(chan struct{})
	}
	r.recording.Store(true)
}

// Recording reports whether calls are recorded. Callers check it before they build a [Call].
func (r *Ring) Recording() bool { return r.recording.Load() }

// Add records a call and sets its number. It does not wait for watchers.
func (r *Ring) Add(c Call) {
	if !r.Recording() {
		return
	}
	for _, text := range []*string{&c.CallID, &c.RootID, &c.ParentID, &c.Name, &c.Principal, &c.Issuer, &c.Agent, &c.Listener, &c.DeniedBy, &c.RequestID} {
		if len(*text) > maxText {
			*text = strings.ToValidUTF8(strings.Clone((*text)[:maxText]), "") + "…"
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	c.Seq = r.last + 1
	r.calls[r.last%Size] = c
	r.last = c.Seq
	close(r.news)
	r.news = make(chan struct{})
}

// Last returns the last n calls, the oldest first.
func (r *Ring) Last(n int) []Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.after(r.last - min(r.last, uint64(max(n, 0))))
}

// after returns the calls with numbers above seq that the ring still has.
func (r *Ring) after(seq uint64) []Call {
	seq = max(seq, r.last-min(r.last, Size))
	list := make([]Call, 0, r.last-seq)
	for ; seq < r.last; seq++ {
		list = append(list, r.calls[seq%Size])
	}
	return list
}

// Watch starts to record, and yields the last n calls and then each call that ends, until ctx is
// done. If the caller is slow, the oldest calls are left out, which shows in their numbers.
func (r *Ring) Watch(ctx context.Context, n int) iter.Seq[Call] {
	r.Start()
	r.mu.Lock()
	seen := r.last - min(r.last, uint64(max(n, 0)))
	r.mu.Unlock()
	return func(yield func(Call) bool) {
		for {
			r.mu.Lock()
			list, news := r.after(seen), r.news
			r.mu.Unlock()
			for _, c := range list {
				if seen = c.Seq; !yield(c) {
					return
				}
			}
			if len(list) > 0 {
				continue
			}
			select {
			case <-news:
			case <-ctx.Done():
				return
			}
		}
	}
}
