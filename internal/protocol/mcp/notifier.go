package mcp

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
)

// notifier sends change notifications to feeds. It has no permanent goroutine:
// it runs in the goroutine of a timer, once for all changes within the debounce
// time.
type notifier struct {
	// fixed at creation
	backend  Backend
	debounce time.Duration
	unwatch  func()

	// compareMu is held while lists are read and compared, so that no listener is
	// reset to an older list.
	compareMu sync.Mutex

	mu    sync.Mutex
	feeds map[*feed]struct{} // feeds that are notified of lists
	// byTopic are the feeds that are notified of resources and tasks. changedURIs
	// are the changed resources among them that are not notified yet.
	byTopic     map[topic]map[*feed]struct{}
	changedURIs map[string]struct{}
	// unwatchByURI ends the backend's watch of a resource, by URI.
	unwatchByURI map[string]func()
	timer        *time.Timer
	pending      bool
	stopped      bool
	running      sync.WaitGroup
}

func newNotifier(b Backend, quiet time.Duration) *notifier {
	n := &notifier{
		backend: b, debounce: quiet,
		feeds: map[*feed]struct{}{}, byTopic: map[topic]map[*feed]struct{}{}, changedURIs: map[string]struct{}{}, unwatchByURI: map[string]func(){},
	}
	n.unwatch = b.Watch(n.changed)
	if tasks, ok := b.(TaskBackend); ok {
		states, done := n.unwatch, tasks.WatchTasks(n.taskChanged)
		n.unwatch = func() { states(); done() }
	}
	return n
}

// stop ends the watch and waits until no notification is in progress. It may be
// called more than once.
func (n *notifier) stop() {
	n.mu.Lock()
	first := !n.stopped
	n.stopped = true
	if n.pending && n.timer.Stop() {
		n.pending = false
		n.running.Done()
	}
	n.mu.Unlock()
	if first {
		n.unwatch()
	}
	n.running.Wait()
}

// changed is called by the backend after each published state, with the URIs of
// resources whose contents changed.
func (n *notifier) changed(uris []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, uri := range uris {
		if len(n.byTopic[topic{name: uri}]) > 0 {
			n.changedURIs[uri] = struct{}{}
		}
	}
	if n.pending || n.stopped || len(n.feeds) == 0 && len(n.changedURIs) == 0 {
		return
	}
	n.pending = true
	n.running.Add(1)
	n.timer = time.AfterFunc(n.debounce, n.flush)
}

// taskChanged is called by the backend after each change of a task. It notifies
// the feeds of the task at once.
func (n *notifier) taskChanged(id string) {
	t := topic{isTask: true, name: id}
	for _, l := range n.listenersTo(t) {
		n.notifyTopic(l.feed, t)
	}
}

// flush compares the lists of each listener again, and notifies changed
// resources to the callers that may read them.
func (n *notifier) flush() {
	defer n.running.Done()
	n.compareMu.Lock()
	defer n.compareMu.Unlock()
	listeners, changed := n.takeChanged()
	// Each listener is notified of all its lists at once: two kinds share one
	// notification, which must not be sent twice for one change.
	differ := make([]kindSet, len(listeners))
	for k := range call.Kind(kinds) {
		n.compareLists(k, listeners, differ)
	}
	for i, l := range listeners {
		n.notifyLists(l.feed, differ[i])
	}
	for _, uri := range changed {
		for _, l := range n.listenersTo(topic{name: uri}) {
			if n.backend.CanRead(context.Background(), l.caller, uri) {
				n.notifyTopic(l.feed, topic{name: uri})
			}
		}
	}
}

// listener is a feed with its present caller and lists.
type listener struct {
	feed   *feed
	caller identity.Caller
	lists  kindSet
}

// compareLists adds the kind to differ for each listener whose list of it
// changed. All callers share a list that is not private.
func (n *notifier) compareLists(k call.Kind, listeners []listener, differ []kindSet) {
	list := List{Private: true}
	for i, l := range listeners {
		if !l.lists.has(k) {
			continue
		}
		if list.Private {
			list = n.backend.List(context.Background(), k, l.caller)
		}
		if n.compare(l.feed, k, list.Hash) {
			differ[i] |= setOf(k)
		}
	}
}

// takeChanged allows the next flush and returns what this one must compare.
func (n *notifier) takeChanged() (listeners []listener, changed []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pending = false
	for f := range n.feeds {
		listeners = append(listeners, listener{f, f.caller, f.lists})
	}
	for uri := range n.changedURIs {
		changed = append(changed, uri)
	}
	clear(n.changedURIs)
	slices.Sort(changed)
	return listeners, changed
}

func (n *notifier) listenersTo(t topic) (listeners []listener) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for f := range n.byTopic[t] {
		listeners = append(listeners, listener{f, f.caller, f.lists})
	}
	return listeners
}

// compare reports whether the listener's list differs from the last known one,
// and stores it.
func (n *notifier) compare(f *feed, k call.Kind, hash string) (differs bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	known := f.hashes[k]
	f.hashes[k] = hash
	return known != "" && known != hash
}

// notifyLists notifies a listener that its lists of the kinds have changed.
func (n *notifier) notifyLists(f *feed, differ kindSet) {
	if differ == 0 {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	f.pending.lists |= differ
	f.wake()
}

// notifyTopic notifies a listener that a topic has changed, if it is still
// subscribed.
func (n *notifier) notifyTopic(f *feed, t topic) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, subscribed := f.topics[t]; !subscribed || slices.Contains(f.pending.topics, t) {
		return
	}
	f.pending.topics = append(f.pending.topics, t)
	f.wake()
}

// listen starts comparing the lists that the caller sees. seen are the hashes
// of the lists that the client received last; an empty hash means the present
// list. A feed that listens already starts again. unlisten undoes one listen;
// remove undoes all.
func (n *notifier) listen(ctx context.Context, f *feed, caller identity.Caller, lists kindSet, seen [kinds]string) {
	n.mu.Lock()
	f.caller, f.lists, f.hashes = caller, lists, seen
	f.listening++
	if !f.ended {
		n.feeds[f] = struct{}{}
	}
	n.mu.Unlock()

	onFreshStack(func() {
		n.compareMu.Lock()
		defer n.compareMu.Unlock()
		var differ kindSet
		for k := range call.Kind(kinds) {
			if lists.has(k) && n.compare(f, k, n.backend.List(ctx, k, caller).Hash) {
				differ |= setOf(k)
			}
		}
		n.notifyLists(f, differ)
	})
}

// onFreshStack calls do in a new goroutine and waits: a goroutine that lives as
// long as its client would otherwise keep the grown stack. It panics if do
// does.
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

// setCaller sets the caller of a feed before anything is compared for it.
func (n *notifier) setCaller(f *feed, caller identity.Caller) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f.caller = caller
}

// unlisten undoes one listen. Pending notifications and subscriptions remain.
func (n *notifier) unlisten(f *feed) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if f.listening--; f.listening == 0 {
		delete(n.feeds, f)
	}
}

// subscribe subscribes a feed to a topic. It returns false if the feed has too
// many topics.
func (n *notifier) subscribe(f *feed, t topic) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
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
	if n.byTopic[t] == nil {
		n.byTopic[t] = map[*feed]struct{}{}
		if !t.isTask {
			n.unwatchByURI[t.name] = n.backend.WatchResource(t.name)
		}
	}
	n.byTopic[t][f] = struct{}{}
	return true
}

// unsubscribe undoes subscribe; without a subscription it does nothing.
func (n *notifier) unsubscribe(f *feed, t topic) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.unsubscribeLocked(f, t)
}

// unsubscribeLocked is unsubscribe for callers that hold mu.
func (n *notifier) unsubscribeLocked(f *feed, t topic) {
	delete(f.topics, t)
	delete(n.byTopic[t], f)
	if len(n.byTopic[t]) == 0 {
		delete(n.byTopic, t)
		if !t.isTask {
			delete(n.changedURIs, t.name)
			if leave := n.unwatchByURI[t.name]; leave != nil {
				leave()
				delete(n.unwatchByURI, t.name)
			}
		}
	}
}

func (n *notifier) remove(f *feed) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f.ended = true
	delete(n.feeds, f)
	for t := range f.topics {
		n.unsubscribeLocked(f, t)
	}
}

// take returns the pending notifications of the feed and clears them.
func (n *notifier) take(f *feed) (pending notices) {
	n.mu.Lock()
	defer n.mu.Unlock()
	pending, f.pending = f.pending, notices{}
	return pending
}

// forward sends the pending notifications of the feed, as frames, at each
// signal. It returns nil when done is closed, and an error when ctx ends or
// send fails.
func (n *notifier) forward(ctx context.Context, f *feed, b signal, done <-chan struct{}, frames func(notices) []Frame, send func(Frame) error) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-done:
			return context.Cause(ctx)
		case <-b:
		}
		for _, frame := range frames(n.take(f)) {
			if err := send(frame); err != nil {
				return err
			}
		}
	}
}
