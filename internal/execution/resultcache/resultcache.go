// Package resultcache keeps the results of calls for those who make the same
// call again.
//
// A [Store] holds results by a [Key]: what was called, and how. Of those who make
// the same call at once, one runs and the others wait, each as long as it will;
// when the one that runs fails, or goes, another of them runs. What is kept is
// bounded for each thing that is called, and in bytes for all of them.
//
// It never looks into a result, and does not decide what may be kept, or for
// whom: keys do.
//
// It is written by hand: singleflight with an LRU has no bound in bytes or for each
// thing, and one failure fails every waiter.
package resultcache

import (
	"container/list"
	"context"
	"sync"
	"time"
)

const (
	// MaxBytes is that of all results and keys together, MaxResult that of one.
	MaxBytes  = 64 << 20
	MaxResult = 1 << 20
	// MaxEach is how many results of one thing that is called are kept.
	MaxPerItem = 1024
	// overhead is what an entry counts beside its result.
	overhead = 512
)

// Key tells results apart. Equal keys must mean that either of two callers may
// have the result of the other.
type Key struct {
	// Of is what was called, with everything that its results depend on.
	Item [32]byte
	// Call is how, and for whom.
	Arguments [32]byte
}

// Call is one call under a key.
type Lookup struct {
	Key
	// Began is when the call began, and TTL how long its result may be given
	// again, counted from there.
	StartTime time.Time
	TTL       time.Duration
}

type Computed[V any] struct {
	Value V
	Size  int
	// Keep says that the value may be given again. What is not kept is given to
	// nobody but the call that made it.
	Cacheable bool
}

// Store keeps results. It is safe for concurrent use.
type Cache[V any] struct {
	// Guarded by mu.
	mu       sync.Mutex
	entries  map[Key]*entry[V]
	inFlight map[Key]*inFlightCall[V]
	// recent are all entries and of those of each thing that is called, the
	// ones that were asked for last in front.
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

// flight is a call that runs. ok and value are set before done is closed.
type inFlightCall[V any] struct {
	began time.Time
	done  chan struct{}
	ok    bool
	value V
}

func New[V any]() *Cache[V] {
	return &Cache[V]{entries: map[Key]*entry[V]{}, inFlight: map[Key]*inFlightCall[V]{}, lru: list.New(), byItem: map[[32]byte]*list.List{}}
}

// Do returns the result that is kept for a call, or that of the same call which
// runs already, and reports that it was made before. Otherwise it returns what
// run makes. A value that was made before is shared, and must not be changed.
// It waits no longer than ctx lasts, and then returns its error.
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

// look returns the value that is kept, or the call that runs already. With
// neither, the caller is the one that runs.
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

// fresh reports whether a result of a call that began at a time is for another
// one. A clock that was set back makes nothing last longer.
func isFresh(began time.Time, c Lookup) bool {
	age := c.StartTime.Sub(began)
	return age < c.TTL && age > -c.TTL
}

// lead runs a call that others may wait for.
func (s *Cache[V]) execute(c Lookup, run func() (Computed[V], error)) (V, error) {
	s.mu.Lock()
	own := s.inFlight[c.Key]
	s.mu.Unlock()
	var made Computed[V]
	defer func() { s.complete(c, own, made) }() // also when run panics
	result, err := run()
	if err == nil {
		made = result
	}
	return result.Value, err
}

// land ends a call that has run, and keeps its result when it is one to keep.
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

// keep adds an entry, and removes those for which there is no room; mu is held.
func (s *Cache[V]) add(c Lookup, made Computed[V]) {
	if old := s.entries[c.Key]; old != nil {
		if old.began.After(c.StartTime) {
			return // a slow call comes late
		}
		s.remove(old)
	}
	e := &entry[V]{key: c.Key, value: made.Value, began: c.StartTime, size: made.Size + overhead}
	mine := s.byItem[c.Item]
	if mine == nil {
		mine = list.New()
		s.byItem[c.Item] = mine
	}
	s.entries[c.Key], e.lruElem, e.itemElem = e, s.lru.PushFront(e), mine.PushFront(e)
	s.bytes += e.size
	if mine.Len() > MaxPerItem {
		s.remove(mine.Back().Value.(*entry[V]))
	}
	for s.bytes > MaxBytes {
		s.remove(s.lru.Back().Value.(*entry[V]))
	}
}

// remove takes an entry out; mu is held.
func (s *Cache[V]) remove(e *entry[V]) {
	delete(s.entries, e.key)
	s.lru.Remove(e.lruElem)
	mine := s.byItem[e.key.Item]
	if mine.Remove(e.itemElem); mine.Len() == 0 {
		delete(s.byItem, e.key.Item)
	}
	s.bytes -= e.size
}

// Keep forgets the results of everything that is not among those that are named.
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

func (s *Cache[V]) Len() (results, bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.entries), s.bytes
}
