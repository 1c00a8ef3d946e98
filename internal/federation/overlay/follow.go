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
type followed struct {
	// Fixed at creation.
	fleet   *upstream.Fleet
	stirred chan struct{} // holds a token while there is something to tell

	mu      sync.Mutex
	serving *catalog.Catalog  // nil before there is one
	counts  map[string]int    // how often each is wanted, by URI
	at      map[string]string // which server tells of each, by URI
	changed map[string]struct{}
}

// Follow has the server that offers a resource tell when it changes, as far as it can,
// until leave is called. It does not wait for the server.
func (f *Federation) Follow(uri string) (leave func()) {
	f.followed.count(uri, 1)
	return sync.OnceFunc(func() { f.followed.count(uri, -1) })
}

func (f *followed) count(uri string, more int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.counts[uri] += more; f.counts[uri] == 0 {
		delete(f.counts, uri)
	}
	f.place(uri)
}

// serve notes which catalog says who offers what.
func (f *followed) serve(c *catalog.Catalog) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.serving = c
	for uri := range f.counts {
		f.place(uri)
	}
}

// place subscribes to a resource at the server that offers it, and nowhere else. Its
// caller holds mu.
func (f *followed) place(uri string) {
	var server string
	if f.counts[uri] > 0 {
		if e, _ := f.serving.Read(uri); e != nil {
			server = e.Upstream
		}
	}
	before := f.at[uri]
	if before == server {
		return
	}
	delete(f.at, uri)
	if before != "" {
		f.fleet.Unsubscribe(before, uri)
	}
	if server != "" {
		f.at[uri] = server
		f.fleet.Subscribe(server, uri)
	}
}

// updated notes that a server says that a resource has changed. That of another server is
// none of its business.
func (f *followed) updated(server, uri string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.at[uri] != server {
		return
	}
	f.changed[uri] = struct{}{}
	select {
	case f.stirred <- struct{}{}:
	default:
	}
}

func (f *followed) take() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	uris := slices.Sorted(maps.Keys(f.changed))
	clear(f.changed)
	return uris
}

// The bounds of how long nothing more is told: share times as long as it took to take in
// what was told.
const (
	leastPause = 100 * time.Millisecond
	mostPause  = 5 * time.Second
	share      = 4
)

// tell tells of what servers offer, and of what has changed of it, until the federation is
// closed.
func (f *Federation) tell() {
	for {
		var took time.Duration
		select {
		case <-f.ended:
			return
		case <-f.listed:
			took = f.relist()
		case <-f.followed.stirred:
			began := time.Now()
			f.update(f.followed.take())
			took = time.Since(began)
		}
		select {
		case <-f.ended:
			return
		case <-time.After(min(max(share*took, leastPause), mostPause)):
		}
	}
}
