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
	fleet   *upstream.Fleet
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

func (f *resourceWatches) add(uri string, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.watchers[uri] += n; f.watchers[uri] == 0 {
		delete(f.watchers, uri)
	}
	f.subscribe(uri)
}

// setCatalog sets the catalog that maps resources to servers.
func (f *resourceWatches) setCatalog(c *catalog.Catalog) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.serving = c
	for uri := range f.watchers {
		f.subscribe(uri)
	}
}

// subscribe subscribes to a resource at the server that offers it, and at no other. The caller
// holds mu.
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

// updated records that a server reports a change of a resource. Reports about resources of
// other servers are ignored.
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
