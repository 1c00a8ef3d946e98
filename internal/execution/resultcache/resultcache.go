// Package resultcache caches the results of calls.
//
// A [Cache] stores results by [Key]. If several callers make the same call at once, one of them
// runs it and the others wait, each until its own ctx ends. If the running call fails or is
// abandoned, another caller runs it. The cache is bounded in results per item, and in bytes in
// total.
//
// It does not inspect results. The key decides who may share a result, and the caller what is
// cacheable.
//
// It is implemented here, as singleflight with an LRU has no bound in bytes or per item, and one
// failure fails every waiter.
package resultcache

import (
	"container/list"
	"context"
	"sync"
	"time"
)

const (
	// MaxBytes bounds all results and keys together, and MaxResult one result.
	MaxBytes  = 64 << 20
	MaxResult = 1 << 20
	// MaxPerItem bounds the results per item.
	MaxPerItem = 1024
	// overhead is the size of an entry in addition to its result.
	overhead = 512
)

// Key identifies results. Equal keys must mean that the callers may share the result.
type Key struct {
	// Item is a hash of the called item, including everything that its results depend on.
	Item [32]byte
	// Arguments is a hash of the arguments, and of the caller if results depend on it.
	Arguments [32]byte
}

// Lookup is one call with a key.
type Lookup struct {
	Key
	// StartTime is the start time of the call, and TTL the lifetime of its result from then on.
	StartTime time.Time
	TTL       time.Duration
}

// Computed is the result of a call, its size, and whether it may be cached.
type Computed[V any] struct {
	Value V
	Size  int
	// Cacheable reports that the value may be reused. Any other value is returned to its own caller
	// only.
	Cacheable bool
	// Age is the age of the value at the start of the call, if an earlier call has made it.
	Age time.Duration
}

// Cache stores results. It is safe for concurrent use.
type Cache[V any] struct {
	// Guarded by mu.
	mu       sync.Mutex
	entries  map[Key]*entry[V]
	inFlight map[Key]*inFlightCall[V]
	// lru has all entries, and byItem the entries of each item; the most recently used come first.
	lru    *list.List
	byItem map[[32]byte]*list.List
	bytes  int
}

type entry[V any] struct {
	key               Key
	value             V
	began             time.Time
	size              int
	lruElem, itemElem *list.Element
}

// inFlightCall is a running call. ok and value are set before done is closed, and so is began if the
// value is older than the call.
type inFlightCall[V any] struct {
	began time.Time
	done  chan struct{}
	ok    bool
	value V
}

// New returns an empty cache.
func New[V any]() *Cache[V] {
	return &Cache[V]{entries: map[Key]*entry[V]{}, inFlight: map[Key]*inFlightCall[V]{}, lru: list.New(), byItem: map[[32]byte]*list.List{}}
}

// Do returns the cached result of a call, or waits for the same call if it is running; then before
// is true, and the value is shared and must not be modified. Otherwise it returns the result of
// run. If ctx ends while Do waits, it returns the error of ctx.
func (c *Cache[V]) Do(ctx context.Context, l Lookup, run func() (Computed[V], error)) (v V, before bool, err error) {
	for {
		value, running, found := c.lookup(l)
		switch {
		case found:
			return value, true, nil
		case running == nil:
			v, err = c.execute(l, run)
			return v, false, err
		}
		select {
		case <-running.done:
			if running.ok && isFresh(running.began, l) {
				return running.value, true, nil
			}
		case <-ctx.Done():
			return v, false, ctx.Err()
		}
	}
}

// lookup returns the cached value, or the running call. If there is neither, it registers the
// caller as the running call.
func (c *Cache[V]) lookup(l Lookup) (value V, running *inFlightCall[V], found bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.entries[l.Key]; e != nil {
		if isFresh(e.began, l) {
			c.lru.MoveToFront(e.lruElem)
			c.byItem[l.Item].MoveToFront(e.itemElem)
			return e.value, nil, true
		}
		c.remove(e)
	}
	if f := c.inFlight[l.Key]; f != nil && isFresh(f.began, l) {
		return value, f, false
	}
	c.inFlight[l.Key] = &inFlightCall[V]{began: l.StartTime, done: make(chan struct{})}
	return value, nil, false
}

// isFresh reports whether the result of a call that started at began is valid for l. A clock that
// is set back extends no lifetime.
func isFresh(began time.Time, l Lookup) bool {
	age := l.StartTime.Sub(began)
	return age < l.TTL && age > -l.TTL
}

// execute runs a call that others may wait for.
func (c *Cache[V]) execute(l Lookup, run func() (Computed[V], error)) (V, error) {
	c.mu.Lock()
	own := c.inFlight[l.Key]
	c.mu.Unlock()
	var made Computed[V]
	defer func() { c.complete(l, own, made) }() // also if run panics
	result, err := run()
	if err == nil {
		made = result
	}
	return result.Value, err
}

// complete ends a running call, and caches its result if possible.
func (c *Cache[V]) complete(l Lookup, own *inFlightCall[V], made Computed[V]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inFlight[l.Key] == own {
		delete(c.inFlight, l.Key)
	}
	own.ok, own.value = made.Cacheable, made.Value
	l.StartTime = l.StartTime.Add(-made.Age)
	own.began = l.StartTime
	close(own.done)
	if made.Cacheable && made.Size <= MaxResult {
		c.add(l, made)
	}
}

// add adds an entry, and removes entries beyond the bounds; mu is held.
func (c *Cache[V]) add(l Lookup, made Computed[V]) {
	if old := c.entries[l.Key]; old != nil {
		if old.began.After(l.StartTime) {
			return // this call was slower
		}
		c.remove(old)
	}
	e := &entry[V]{key: l.Key, value: made.Value, began: l.StartTime, size: made.Size + overhead}
	siblings := c.byItem[l.Item]
	if siblings == nil {
		siblings = list.New()
		c.byItem[l.Item] = siblings
	}
	c.entries[l.Key], e.lruElem, e.itemElem = e, c.lru.PushFront(e), siblings.PushFront(e)
	c.bytes += e.size
	if siblings.Len() > MaxPerItem {
		c.remove(siblings.Back().Value.(*entry[V]))
	}
	for c.bytes > MaxBytes {
		c.remove(c.lru.Back().Value.(*entry[V]))
	}
}

// remove removes an entry; mu is held.
func (c *Cache[V]) remove(e *entry[V]) {
	delete(c.entries, e.key)
	c.lru.Remove(e.lruElem)
	siblings := c.byItem[e.key.Item]
	if siblings.Remove(e.itemElem); siblings.Len() == 0 {
		delete(c.byItem, e.key.Item)
	}
	c.bytes -= e.size
}

// Retain removes the results of all items that are not listed.
func (c *Cache[V]) Retain(items map[[32]byte]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for e := c.lru.Front(); e != nil; {
		next := e.Next()
		if kept := e.Value.(*entry[V]); !items[kept.key.Item] {
			c.remove(kept)
		}
		e = next
	}
}

// Len returns the number of cached results, and their bytes.
func (c *Cache[V]) Len() (results, bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.entries), c.bytes
}
