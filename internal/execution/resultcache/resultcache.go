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

// inFlightCall is a running call. ok and value are set before done is closed.
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
func (s *Cache[V]) Do(ctx context.Context, c Lookup, run func() (Computed[V], error)) (v V, before bool, err error) {
	for {
		value, running, found := s.lookup(c)
		switch {
		case found:
			return value, true, nil
		case running == nil:
			v, err = s.execute(c, run)
			return v, false, err
		}
		select {
		case <-running.done:
			if running.ok {
				return running.value, true, nil
			}
		case <-ctx.Done():
			return v, false, ctx.Err()
		}
	}
}

// lookup returns the cached value, or the running call. If there is neither, it registers the
// caller as the running call.
func (s *Cache[V]) lookup(c Lookup) (value V, running *inFlightCall[V], found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.entries[c.Key]; e != nil {
		if isFresh(e.began, c) {
			s.lru.MoveToFront(e.lruElem)
			s.byItem[c.Item].MoveToFront(e.itemElem)
			return e.value, nil, true
		}
		s.remove(e)
	}
	if f := s.inFlight[c.Key]; f != nil && isFresh(f.began, c) {
		return value, f, false
	}
	s.inFlight[c.Key] = &inFlightCall[V]{began: c.StartTime, done: make(chan struct{})}
	return value, nil, false
}

// isFresh reports whether the result of a call that started at began is valid for c. A clock that
// is set back extends no lifetime.
func isFresh(began time.Time, c Lookup) bool {
	age := c.StartTime.Sub(began)
	return age < c.TTL && age > -c.TTL
}

// execute runs a call that others may wait for.
func (s *Cache[V]) execute(c Lookup, run func() (Computed[V], error)) (V, error) {
	s.mu.Lock()
	own := s.inFlight[c.Key]
	s.mu.Unlock()
	var made Computed[V]
	defer func() { s.complete(c, own, made) }() // also if run panics
	result, err := run()
	if err == nil {
		made = result
	}
	return result.Value, err
}

// complete ends a running call, and caches its result if possible.
func (s *Cache[V]) complete(c Lookup, own *inFlightCall[V], made Computed[V]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inFlight[c.Key] == own {
		delete(s.inFlight, c.Key)
	}
	own.ok, own.value = made.Cacheable, made.Value
	close(own.done)
	if made.Cacheable && made.Size <= MaxResult {
		s.add(c, made)
	}
}

// add adds an entry, and removes entries beyond the bounds; mu is held.
func (s *Cache[V]) add(c Lookup, made Computed[V]) {
	if old := s.entries[c.Key]; old != nil {
		if old.began.After(c.StartTime) {
			return // this call was slower
		}
		s.remove(old)
	}
	e := &entry[V]{key: c.Key, value: made.Value, began: c.StartTime, size: made.Size + overhead}
	siblings := s.byItem[c.Item]
	if siblings == nil {
		siblings = list.New()
		s.byItem[c.Item] = siblings
	}
	s.entries[c.Key], e.lruElem, e.itemElem = e, s.lru.PushFront(e), siblings.PushFront(e)
	s.bytes += e.size
	if siblings.Len() > MaxPerItem {
		s.remove(siblings.Back().Value.(*entry[V]))
	}
	for s.bytes > MaxBytes {
		s.remove(s.lru.Back().Value.(*entry[V]))
	}
}

// remove removes an entry; mu is held.
func (s *Cache[V]) remove(e *entry[V]) {
	delete(s.entries, e.key)
	s.lru.Remove(e.lruElem)
	siblings := s.byItem[e.key.Item]
	if siblings.Remove(e.itemElem); siblings.Len() == 0 {
		delete(s.byItem, e.key.Item)
	}
	s.bytes -= e.size
}

// Retain removes the results of all items that are not listed.
func (s *Cache[V]) Retain(of map[[32]byte]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := s.lru.Front(); e != nil; {
		next := e.Next()
		if kept := e.Value.(*entry[V]); !of[kept.key.Item] {
			s.remove(kept)
		}
		e = next
	}
}

// Len returns the number of cached results, and their bytes.
func (s *Cache[V]) Len() (results, bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.entries), s.bytes
}
