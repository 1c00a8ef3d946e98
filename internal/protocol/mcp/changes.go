package mcp

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/mcpd/mcpd/call"
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

	mu    sync.Mutex
	feeds map[*feed]struct{} // those that hear of lists
	// byTopic are those that hear of resources and tasks, touched the URIs of
	// resources among these that have changed and were not told of yet.
	byTopic map[topic]map[*feed]struct{}
	touched map[string]struct{}
	// leave ends what was begun when the first feed wanted to hear of a resource, by URI.
	leave   map[string]func()
	timer   *time.Timer
	pending bool
	stopped bool
	telling sync.WaitGroup
}

// watch follows the backend until stop is called.
func watch(b Backend, quiet time.Duration) *changes {
	c := &changes{
		backend: b, quiet: quiet,
		feeds: map[*feed]struct{}{}, byTopic: map[topic]map[*feed]struct{}{}, touched: map[string]struct{}{}, leave: map[string]func(){},
	}
	c.unwatch = b.Watch(c.changed)
	if tasks, ok := b.(TaskBackend); ok {
		states, done := c.unwatch, tasks.WatchTasks(c.taskChanged)
		c.unwatch = func() { states(); done() }
	}
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

// changed is called by the backend after each published state, with the URIs
// of resources whose contents are others now.
func (c *changes) changed(uris []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, uri := range uris {
		if len(c.byTopic[topic{name: uri}]) > 0 {
			c.touched[uri] = struct{}{}
		}
	}
	if c.pending || c.stopped || len(c.feeds) == 0 && len(c.touched) == 0 {
		return
	}
	c.pending = true
	c.telling.Add(1)
	c.timer = time.AfterFunc(c.quiet, c.tell)
}

// taskChanged is called by the backend after each change of a task, of which
// those are told at once who want to hear of it.
func (c *changes) taskChanged(id string) {
	t := topic{isTask: true, name: id}
	for _, l := range c.listenersTo(t) {
		c.update(l.feed, t)
	}
}

// tell looks at the lists of each listener anew, and tells of resources those
// that may read them.
func (c *changes) tell() {
	defer c.telling.Done()
	c.looking.Lock()
	defer c.looking.Unlock()
	listeners, touched := c.begin()
	c.tellOfLists(listeners)
	for _, uri := range touched {
		for _, l := range c.listenersTo(topic{name: uri}) {
			if c.backend.Serves(context.Background(), l.caller, uri) {
				c.update(l.feed, topic{name: uri})
			}
		}
	}
}

// listener is a feed with what it wants at the moment.
type listener struct {
	feed   *feed
	caller identity.Caller
	lists  kindSet
}

// tellOfLists tells each listener of all its lists at once: two kinds share a
// notification, which is for one change not to come twice.
func (c *changes) tellOfLists(listeners []listener) {
	differ := make([]kindSet, len(listeners))
	for k := range call.Kind(kinds) {
		c.look(k, listeners, differ)
	}
	for i, l := range listeners {
		c.tellKinds(l.feed, differ[i])
	}
}

// look adds the kind to what differs for those listeners whose list of it is
// another than the one they know. One that is not private is that of all.
func (c *changes) look(k call.Kind, listeners []listener, differ []kindSet) {
	list := List{Private: true}
	for i, l := range listeners {
		if !l.lists.has(k) {
			continue
		}
		if list.Private {
			list = c.backend.List(context.Background(), k, l.caller)
		}
		if c.compare(l.feed, k, list.Hash) {
			differ[i] |= setOf(k)
		}
	}
}

// begin lets the next change be seen, and returns what there is to look at.
func (c *changes) begin() (listeners []listener, touched []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending = false
	for f := range c.feeds {
		listeners = append(listeners, listener{f, f.caller, f.lists})
	}
	for uri := range c.touched {
		touched = append(touched, uri)
	}
	clear(c.touched)
	slices.Sort(touched)
	return listeners, touched
}

// listenersTo returns those that want to hear of a topic.
func (c *changes) listenersTo(t topic) (listeners []listener) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for f := range c.byTopic[t] {
		listeners = append(listeners, listener{f, f.caller, f.lists})
	}
	return listeners
}

// compare reports whether a listener's list is another than the one it knows,
// and has it know this one.
func (c *changes) compare(f *feed, k call.Kind, hash string) (differs bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := f.hashes[k]
	f.hashes[k] = hash
	return known != "" && known != hash
}

// tellKinds tells a listener that its lists of the kinds have changed.
func (c *changes) tellKinds(f *feed, differ kindSet) {
	if differ == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	f.news.lists |= differ
	f.wake()
}

// update tells a listener that a topic has changed, if it still wants to hear.
func (c *changes) update(f *feed, t topic) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, wanted := f.topics[t]; !wanted || slices.Contains(f.news.topics, t) {
		return
	}
	f.news.topics = append(f.news.topics, t)
	f.wake()
}
