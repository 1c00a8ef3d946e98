package overlay

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/federation/upstream"
)

// resourceWatches are the watched resources; each is subscribed at the server that offers it.
// They are safe for concurrent use.
type resourceWatches struct {
	// Fixed at creation.
	pool    *upstream.Pool
	pending chan struct{} // holds a token while changes are pending

	mu         sync.Mutex
	serving    *catalog.Catalog  // nil before the first catalog
	watchers   map[string]int    // number of watchers, by URI
	subscribed map[string]string // the subscribed server, by URI
	changed    map[string]struct{}
}

// WatchResource subscribes to changes of a resource at its server, if the server supports that,
// until leave is called. It does not wait for the server.
func (f *Federation) WatchResource(uri string) (leave func()) {
	f.watches.add(uri, 1)
	return sync.OnceFunc(func() { f.watches.add(uri, -1) })
}

// Watched returns the watched resources that servers offer.
func (f *Federation) Watched() []string {
	f.watches.mu.Lock()
	defer f.watches.mu.Unlock()
	return slices.Sorted(maps.Keys(f.watches.subscribed))
}

func (w *resourceWatches) add(uri string, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watchers[uri] += n; w.watchers[uri] == 0 {
		delete(w.watchers, uri)
	}
	w.subscribe(uri)
}

// setCatalog sets the catalog that maps resources to servers.
func (w *resourceWatches) setCatalog(c *catalog.Catalog) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.serving = c
	for uri := range w.watchers {
		w.subscribe(uri)
	}
}

// subscribe subscribes to a resource at the server that offers it, and at no other. The caller
// holds mu.
func (w *resourceWatches) subscribe(uri string) {
	var server string
	if w.watchers[uri] > 0 {
		if e, _ := w.serving.Read(uri); e != nil {
			server = e.Upstream
		}
	}
	current := w.subscribed[uri]
	if current == server {
		return
	}
	delete(w.subscribed, uri)
	if current != "" {
		w.pool.Unsubscribe(current, uri)
	}
	if server != "" {
		w.subscribed[uri] = server
		w.pool.Subscribe(server, uri)
	}
}

// updated records that a server reports a change of a resource. Reports about resources of
// other servers are ignored.
func (w *resourceWatches) updated(server, uri string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.subscribed[uri] != server {
		return
	}
	w.changed[uri] = struct{}{}
	select {
	case w.pending <- struct{}{}:
	default:
	}
}

func (w *resourceWatches) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	uris := slices.Sorted(maps.Keys(w.changed))
	clear(w.changed)
	return uris
}

// The bounds of the interval between notifications. The interval is intervalFactor times as
// long as the last one took to process.
const (
	minInterval    = 100 * time.Millisecond
	maxInterval    = 5 * time.Second
	intervalFactor = 4
)

// notifyLoop reports changed offers and changed resources until the federation is closed.
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
