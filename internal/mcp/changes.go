package mcp

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mcpd/mcpd/identity"
)

// changes tells feeds that what their callers may see has changed. It starts
// no goroutine of its own: it works in that of a timer, once for all changes
// that come within the quiet time.
type changes struct {
	// fixed at creation
	backend Backend
	quiet   time.Duration
	unwatch func()

	// looking is held while lists are looked at and compared, so that no
	// listener is set back to an older one.
	looking sync.Mutex

	mu      sync.Mutex
	feeds   map[*feed]struct{}
	timer   *time.Timer
	pending bool
	stopped bool
	telling sync.WaitGroup
}

// feed is one listener: a legacy session's stream, or a subscription.
type feed struct {
	caller identity.Caller
	// tools holds a value when the visible list is another than the listener
	// was last told of.
	tools chan struct{}
	// hash is that of the list told of last; guarded by changes.mu.
	hash string
}

// watch follows the backend until stop is called.
func watch(b Backend, quiet time.Duration) *changes {
	c := &changes{backend: b, quiet: quiet, feeds: map[*feed]struct{}{}}
	c.unwatch = b.Watch(c.changed)
	return c
}

// stop ends the watch and waits until no feed is being told. It may be called
// more than once.
func (c *changes) stop() {
	c.mu.Lock()
	first := !c.stopped
	c.stopped = true
	if c.pending && c.timer.Stop() {
		c.pending = false
		c.telling.Done()
	}
	c.mu.Unlock()
	if first {
		c.unwatch()
	}
	c.telling.Wait()
}

// add begins to listen for the caller. seen is the hash of the list that the
// client was given last; when it is empty, the listener knows the present list.
func (c *changes) add(ctx context.Context, caller identity.Caller, seen string) *feed {
	f := &feed{caller: caller, tools: make(chan struct{}, 1), hash: seen}
	c.mu.Lock()
	c.feeds[f] = struct{}{}
	c.mu.Unlock()

	c.looking.Lock()
	defer c.looking.Unlock()
	c.compare(f, c.backend.List(ctx, Tools, caller).Hash)
	return f
}

// remove stops listening.
func (c *changes) remove(f *feed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.feeds, f)
}

// changed is called by the backend after each published state.
func (c *changes) changed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pending || c.stopped || len(c.feeds) == 0 {
		return
	}
	c.pending = true
	c.telling.Add(1)
	c.timer = time.AfterFunc(c.quiet, c.tell)
}

// tell looks at the list of each listener anew. A list that is not private is
// that of all of them.
func (c *changes) tell() {
	defer c.telling.Done()
	c.looking.Lock()
	defer c.looking.Unlock()
	list := List{Private: true}
	for _, f := range c.begin() {
		if list.Private {
			list = c.backend.List(context.Background(), Tools, f.caller)
		}
		c.compare(f, list.Hash)
	}
}

// begin lets the next change be seen and returns the feeds of this moment.
func (c *changes) begin() []*feed {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending = false
	return slices.Collect(maps.Keys(c.feeds))
}

// compare tells a listener whose list is another than the one it knows.
func (c *changes) compare(f *feed, hash string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := f.hash
	f.hash = hash
	if known == "" || known == hash {
		return
	}
	select {
	case f.tools <- struct{}{}:
	default:
	}
}
