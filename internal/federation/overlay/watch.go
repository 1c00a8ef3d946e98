package overlay

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/federation/upstream"
)

// followed are the resources that somebody here wants to hear of, each told of by the
// server that offers it. They are safe for concurrent use.
type resourceWatches struct {
	// Fixed at creation.
	fleet   *upstream.Fleet
	pending chan struct{} // holds a token while there is something to tell

	mu         sync.Mutex
	serving    *catalog.Catalog  // nil before there is one
	watchers   map[string]int    // how often each is wanted, by URI
	subscribed map[string]string // which server tells of each, by URI
	changed    map[string]struct{}
}

// Follow has the server that offers a resource tell when it changes, as far as it can,
// until leave is called. It does not wait for the server.
func (f *Federation) WatchResource(uri string) (leave func()) {
	f.watches.add(uri, 1)
	return sync.OnceFunc(func() { f.watches.add(uri, -1) })
}

func (f *resourceWatches) add(uri string, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.watchers[uri] += n; f.watchers[uri] == 0 {
		delete(f.watchers, uri)
	}
	f.subscribe(uri)
}

// serve notes which catalog says who offers what.
func (f *resourceWatches) setCatalog(c *catalog.Catalog) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.serving = c
	for uri := range f.watchers {
		f.subscribe(uri)
	}
}

// place subscribes to a resource at the server that offers it, and nowhere else. Its
// caller holds mu.
func (f *resourceWatches) subscribe(uri string) {
	var server string
	if f.watchers[uri] > 0 {
		if e, _ := f.serving.Read(uri); e != nil {
			server = e.Upstream
		}
	}
	current := f.subscribed[uri]
	if current == server {
		return
	}
	delete(f.subscribed, uri)
	if current != "" {
		f.fleet.Unsubscribe(current, uri)
	}
	if server != "" {
		f.subscribed[uri] = server
		f.fleet.Subscribe(server, uri)
	}
}

// updated notes that a server says that a resource has changed. That of another server is
// none of its business.
func (f *resourceWatches) updated(server, uri string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.subscribed[uri] != server {
		return
	}
	f.changed[uri] = struct{}{}
	select {
	case f.pending <- struct{}{}:
	default:
	}
}

func (f *resourceWatches) take() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	uris := slices.Sorted(maps.Keys(f.changed))
	clear(f.changed)
	return uris
}

// The bounds of how long nothing more is told: share times as long as it took to take in
// what was told.
const (
	minInterval    = 100 * time.Millisecond
	maxInterval    = 5 * time.Second
	intervalFactor = 4
)

// tell tells of what servers offer, and of what has changed of it, until the federation is
// closed.
func (f *Federation) notifyLoop() {
	for {
		var took time.Duration
		select {
		case <-f.closed:
			return
		case <-f.listChanged:
			took = f.relist()
		case <-f.watches.pending:
			began := time.Now()
			f.update(f.watches.take())
			took = time.Since(began)
		}
		select {
		case <-f.closed:
			return
		case <-time.After(min(max(intervalFactor*took, minInterval), maxInterval)):
		}
	}
}
