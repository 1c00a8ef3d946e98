package console

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/mcpd/mcpd/internal/ops/control"
)

// Bounds of the feed.
const (
	maxFeed     = 2000
	askedFeed   = 1000 // recent calls when the stream starts
	feedBackoff = time.Second
)

// feed has the latest calls of the server. It reads one stream, from the first page that needs it
// until the console is closed, and starts a new one when the stream ends.
type feed struct {
	// fixed at creation
	ctx     context.Context
	backend Backend
	now     func() time.Time
	once    sync.Once
	busy    sync.WaitGroup

	// guarded by mu
	mu      sync.Mutex
	calls   []numbered // oldest first
	known   map[string]bool
	last    uint64
	problem string        // why there is no stream; "" if there is one
	changed chan struct{} // closed at the next change
}

// numbered is a call with its number in the feed.
type numbered struct {
	N uint64
	control.Call
}

func newFeed(ctx context.Context, b Backend, now func() time.Time) *feed {
	return &feed{ctx: ctx, backend: b, now: now, known: map[string]bool{}, changed: make(chan struct{}), problem: "connecting"}
}

// close waits until the stream has ended. The context of the feed must be done.
func (f *feed) close() {
	f.once.Do(func() {}) // no stream starts later
	f.busy.Wait()
}

// start reads the stream, with the values of a context.
func (f *feed) start(ctx context.Context) {
	f.once.Do(func() {
		ctx, cancel := withEnd(ctx, f.ctx)
		f.busy.Go(func() {
			defer cancel()
			for f.ctx.Err() == nil {
				err := f.read(ctx)
				f.mu.Lock()
				f.problem = err.Error()
				if errors.Is(err, io.EOF) {
					f.problem = "the server ended the stream"
				}
				f.notify()
				f.mu.Unlock()
				select {
				case <-f.ctx.Done():
				case <-time.After(feedBackoff):
				}
			}
		})
	})
}

// withEnd returns a context with the values of one and the end of another. The other one refers to it
// until the function is called.
func withEnd(values, end context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(values))
	stop := context.AfterFunc(end, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// read reads one stream until it ends.
func (f *feed) read(ctx context.Context) error {
	request, err := control.NewRequest(control.Calls, control.CallQuery{Limit: askedFeed})
	if err != nil {
		return err
	}
	stream, err := f.backend.Open(ctx, request)
	if err != nil {
		return err
	}
	defer stream.Close()
	defer context.AfterFunc(ctx, func() { _ = stream.Close() })()
	f.mu.Lock()
	f.problem = ""
	f.notify()
	f.mu.Unlock()
	for {
		var row control.Call
		if err := stream.Receive(&row); err != nil {
			return err
		}
		f.add(row)
	}
}

// add adds a call, unless an earlier stream had it.
func (f *feed) add(row control.Call) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.known[row.CallID] {
		return
	}
	f.known[row.CallID] = true
	f.last++
	f.calls = append(f.calls, numbered{f.last, row})
	if len(f.calls) > maxFeed {
		delete(f.known, f.calls[0].CallID)
		f.calls = slices.Delete(f.calls, 0, 1)
	}
	f.notify()
}

// notify wakes all waiters; mu is held.
func (f *feed) notify() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// after returns the calls after a number, oldest first, and a channel that is closed at the next
// change. problem says why calls are missing.
func (f *feed) after(n uint64) (calls []numbered, problem string, changed <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at, _ := slices.BinarySearchFunc(f.calls, n+1, func(c numbered, n uint64) int {
		if c.N < n {
			return -1
		}
		return int(min(c.N-n, 1))
	})
	return slices.Clone(f.calls[at:]), f.problem, f.changed
}

// find returns a call, and the calls of its tree.
func (f *feed) find(id string) (found *control.Call, tree []control.Call) {
	calls, _, _ := f.after(0)
	for i := range calls {
		if calls[i].CallID == id {
			found = &calls[i].Call
		}
	}
	if found == nil {
		return nil, nil
	}
	root := found.RootID
	if root == "" {
		root = id
	}
	for _, c := range calls {
		if c.CallID == root || c.RootID == root {
			tree = append(tree, c.Call)
		}
	}
	slices.SortStableFunc(tree, func(a, b control.Call) int { return a.Depth - b.Depth })
	return found, tree
}
