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
type notifier struct {
	// fixed at creation
	backend  Backend
	debounce time.Duration
	unwatch  func()

	// looking is held while lists are looked at and compared, so that no
	// listener is set back to an older one.
	compareMu sync.Mutex

	mu    sync.Mutex
	feeds map[*feed]struct{} // those that hear of lists
	// byTopic are those that hear of resources and tasks, touched the URIs of
	// resources among these that have changed and were not told of yet.
	byTopic     map[topic]map[*feed]struct{}
	changedURIs map[string]struct{}
	// leave ends what was begun when the first feed wanted to hear of a resource, by URI.
	unwatchByURI map[string]func()
	timer        *time.Timer
	pending      bool
	stopped      bool
	running      sync.WaitGroup
}

func newNotifier(b Backend, quiet time.Duration) *notifier {
	c := &notifier{
		backend: b, debounce: quiet,
		feeds: map[*feed]struct{}{}, byTopic: map[topic]map[*feed]struct{}{}, changedURIs: map[string]struct{}{}, unwatchByURI: map[string]func(){},
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
func (c *notifier) stop() {
	c.mu.Lock()
	first := !c.stopped
	c.stopped = true
	if c.pending && c.timer.Stop() {
		c.pending = false
		c.running.Done()
	}
	c.mu.Unlock()
	if first {
		c.unwatch()
	}
	c.running.Wait()
}

// changed is called by the backend after each published state, with the URIs
// of resources whose contents are others now.
func (c *notifier) changed(uris []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, uri := range uris {
		if len(c.byTopic[topic{name: uri}]) > 0 {
			c.changedURIs[uri] = struct{}{}
		}
	}
	if c.pending || c.stopped || len(c.feeds) == 0 && len(c.changedURIs) == 0 {
		return
	}
	c.pending = true
	c.running.Add(1)
	c.timer = time.AfterFunc(c.debounce, c.flush)
}

// taskChanged is called by the backend after each change of a task, of which
// those are told at once who want to hear of it.
func (c *notifier) taskChanged(id string) {
	t := topic{isTask: true, name: id}
	for _, l := range c.listenersTo(t) {
		c.notifyTopic(l.feed, t)
	}
}

// tell looks at the lists of each listener anew, and tells of resources those
// that may read them.
func (c *notifier) flush() {
	defer c.running.Done()
	c.compareMu.Lock()
	defer c.compareMu.Unlock()
	listeners, touched := c.takeChanged()
	// Each listener hears of all its lists at once: two kinds share a notification, which
	// must not come twice for one change.
	differ := make([]kindSet, len(listeners))
	for k := range call.Kind(kinds) {
		c.compareLists(k, listeners, differ)
	}
	for i, l := range listeners {
		c.notifyLists(l.feed, differ[i])
	}
	for _, uri := range touched {
		for _, l := range c.listenersTo(topic{name: uri}) {
			if c.backend.CanRead(context.Background(), l.caller, uri) {
				c.notifyTopic(l.feed, topic{name: uri})
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

// look adds the kind to what differs for those listeners whose list of it is
// another than the one they know. One that is not private is that of all.
func (c *notifier) compareLists(k call.Kind, listeners []listener, differ []kindSet) {
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
func (c *notifier) takeChanged() (listeners []listener, touched []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending = false
	for f := range c.feeds {
		listeners = append(listeners, listener{f, f.caller, f.lists})
	}
	for uri := range c.changedURIs {
		touched = append(touched, uri)
	}
	clear(c.changedURIs)
	slices.Sort(touched)
	return listeners, touched
}

func (c *notifier) listenersTo(t topic) (listeners []listener) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for f := range c.byTopic[t] {
		listeners = append(listeners, listener{f, f.caller, f.lists})
	}
	return listeners
}

// compare reports whether a listener's list is another than the one it knows,
// and has it know this one.
func (c *notifier) compare(f *feed, k call.Kind, hash string) (differs bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := f.hashes[k]
	f.hashes[k] = hash
	return known != "" && known != hash
}

// tellKinds tells a listener that its lists of the kinds have changed.
func (c *notifier) notifyLists(f *feed, differ kindSet) {
	if differ == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	f.pending.lists |= differ
	f.wake()
}

// update tells a listener that a topic has changed, if it still wants to hear.
func (c *notifier) notifyTopic(f *feed, t topic) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, wanted := f.topics[t]; !wanted || slices.Contains(f.pending.topics, t) {
		return
	}
	f.pending.topics = append(f.pending.topics, t)
	f.wake()
}

// listen begins to compare the lists that the caller sees with those the
// listener knows: seen are the hashes of those its client was given last;
// where one is empty, the listener knows the present list. A feed that listens
// already begins anew; each listen is taken back by mute, or all by remove.
func (c *notifier) listen(ctx context.Context, f *feed, caller identity.Caller, lists kindSet, seen [kinds]string) {
	c.mu.Lock()
	f.caller, f.lists, f.hashes = caller, lists, seen
	f.listening++
	if !f.ended {
		c.feeds[f] = struct{}{}
	}
	c.mu.Unlock()

	onFreshStack(func() {
		c.compareMu.Lock()
		defer c.compareMu.Unlock()
		var differ kindSet
		for k := range call.Kind(kinds) {
			if lists.has(k) && c.compare(f, k, c.backend.List(ctx, k, caller).Hash) {
				differ |= setOf(k)
			}
		}
		c.notifyLists(f, differ)
	})
}

// aside does something on a stack of its own: goroutines that wait for as long as
// their clients stay keep the stack that they once had. It panics as do does.
func onFreshStack(do func()) {
	failed := make(chan any, 1)
	go func() {
		defer func() { failed <- recover() }()
		do()
	}()
	if cause := <-failed; cause != nil {
		panic(cause)
	}
}

// identify tells whose feed it is, before anything is compared for it.
func (c *notifier) setCaller(f *feed, caller identity.Caller) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f.caller = caller
}

// mute takes back one listen. What the feed is still to be told stays, and so
// do the resources it wants to hear of.
func (c *notifier) unlisten(f *feed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.listening--; f.listening == 0 {
		delete(c.feeds, f)
	}
}

// subscribe has a feed hear of a topic; false means that it hears of too many.
func (c *notifier) subscribe(f *feed, t topic) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := f.topics[t]; known || f.ended {
		return true
	}
	if len(f.topics) >= maxSubscriptions {
		return false
	}
	if f.topics == nil {
		f.topics = map[topic]struct{}{}
	}
	f.topics[t] = struct{}{}
	if c.byTopic[t] == nil {
		c.byTopic[t] = map[*feed]struct{}{}
		if !t.isTask {
			c.unwatchByURI[t.name] = c.backend.WatchResource(t.name)
		}
	}
	c.byTopic[t][f] = struct{}{}
	return true
}

// unsubscribe takes back a subscribe; one that never was is as good as taken back.
func (c *notifier) unsubscribe(f *feed, t topic) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unsubscribeLocked(f, t)
}

// forget is unsubscribe for those that hold mu.
func (c *notifier) unsubscribeLocked(f *feed, t topic) {
	delete(f.topics, t)
	delete(c.byTopic[t], f)
	if len(c.byTopic[t]) == 0 {
		delete(c.byTopic, t)
		if !t.isTask {
			delete(c.changedURIs, t.name)
			if leave := c.unwatchByURI[t.name]; leave != nil {
				leave()
				delete(c.unwatchByURI, t.name)
			}
		}
	}
}

func (c *notifier) remove(f *feed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f.ended = true
	delete(c.feeds, f)
	for t := range f.topics {
		c.unsubscribeLocked(f, t)
	}
}

// take returns what the feed is to be told, which it is then no more.
func (c *notifier) take(f *feed) (n notices) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, f.pending = f.pending, notices{}
	return n
}

// follow sends what the feed is told, as frames, at each ring, until over is
// closed, and returns nil then. When ctx has ended or send fails, it returns
// that error.
func (c *notifier) forward(ctx context.Context, f *feed, b signal, over <-chan struct{}, frames func(notices) []Frame, send func(Frame) error) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-over:
			return context.Cause(ctx)
		case <-b:
		}
		for _, frame := range frames(c.take(f)) {
			if err := send(frame); err != nil {
				return err
			}
		}
	}
}
