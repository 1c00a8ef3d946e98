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
	MaxEach = 1024
	// overhead is what an entry counts beside its result.
	overhead = 512
)

// Key tells results apart. Equal keys must mean that either of two callers may
// have the result of the other.
type Key struct {
	// Of is what was called, with everything that its results depend on.
	Of [32]byte
	// Call is how, and for whom.
	Call [32]byte
}

// Call is one call under a key.
type Call struct {
	Key
	// Began is when the call began, and TTL how long its result may be given
	// again, counted from there.
	Began time.Time
	TTL   time.Duration
}

type Made[V any] struct {
	Value V
	Size  int
	// Keep says that the value may be given again. What is not kept is given to
	// nobody but the call that made it.
	Keep bool
}

// Store keeps results. It is safe for concurrent use.
type Store[V any] struct {
	// Guarded by mu.
	mu      sync.Mutex
	entries map[Key]*entry[V]
	flights map[Key]*flight[V]
	// recent are all entries and of those of each thing that is called, the
	// ones that were asked for last in front.
	recent *list.List
	of     map[[32]byte]*list.List
	bytes  int
}

type entry[V any] struct {
	key         Key
	value       V
	began       time.Time
	size        int
	all, beside *list.Element
}

// flight is a call that runs. ok and value are set before done is closed.
type flight[V any] struct {
	began time.Time
	done  chan struct{}
	ok    bool
	value V
}

func New[V any]() *Store[V] {
	return &Store[V]{entries: map[Key]*entry[V]{}, flights: map[Key]*flight[V]{}, recent: list.New(), of: map[[32]byte]*list.List{}}
}

// Do returns the result that is kept for a call, or that of the same call which
// runs already, and reports that it was made before. Otherwise it returns what
// run makes. A value that was made before is shared, and must not be changed.
// It waits no longer than ctx lasts, and then returns its error.
func (s *Store[V]) Do(ctx context.Context, c Call, run func() (Made[V], error)) (v V, before bool, err error) {
	for {
		value, running, found := s.look(c)
		switch {
		case found:
			return value, true, nil
		case running == nil:
			v, err = s.lead(c, run)
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
func (s *Store[V]) look(c Call) (value V, running *flight[V], found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.entries[c.Key]; e != nil {
		if fresh(e.began, c) {
			s.recent.MoveToFront(e.all)
			s.of[c.Of].MoveToFront(e.beside)
			return e.value, nil, true
		}
		s.remove(e)
	}
	if f := s.flights[c.Key]; f != nil && fresh(f.began, c) {
		return value, f, false
	}
	s.flights[c.Key] = &flight[V]{began: c.Began, done: make(chan struct{})}
	return value, nil, false
}

// fresh reports whether a result of a call that began at a time is for another
// one. A clock that was set back makes nothing last longer.
func fresh(began time.Time, c Call) bool {
	age := c.Began.Sub(began)
	return age < c.TTL && age > -c.TTL
}

// lead runs a call that others may wait for.
func (s *Store[V]) lead(c Call, run func() (Made[V], error)) (V, error) {
	s.mu.Lock()
	own := s.flights[c.Key]
	s.mu.Unlock()
	var made Made[V]
	defer func() { s.land(c, own, made) }() // also when run panics
	result, err := run()
	if err == nil {
		made = result
	}
	return result.Value, err
}

// land ends a call that has run, and keeps its result when it is one to keep.
func (s *Store[V]) land(c Call, own *flight[V], made Made[V]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flights[c.Key] == own {
		delete(s.flights, c.Key)
	}
	own.ok, own.value = made.Keep, made.Value
	close(own.done)
	if made.Keep && made.Size <= MaxResult {
		s.keep(c, made)
	}
}

// keep adds an entry, and removes those for which there is no room; mu is held.
func (s *Store[V]) keep(c Call, made Made[V]) {
	if old := s.entries[c.Key]; old != nil {
		if old.began.After(c.Began) {
			return // a slow call comes late
		}
		s.remove(old)
	}
	e := &entry[V]{key: c.Key, value: made.Value, began: c.Began, size: made.Size + overhead}
	mine := s.of[c.Of]
	if mine == nil {
		mine = list.New()
		s.of[c.Of] = mine
	}
	s.entries[c.Key], e.all, e.beside = e, s.recent.PushFront(e), mine.PushFront(e)
	s.bytes += e.size
	if mine.Len() > MaxEach {
		s.remove(mine.Back().Value.(*entry[V]))
	}
	for s.bytes > MaxBytes {
		s.remove(s.recent.Back().Value.(*entry[V]))
	}
}

// remove takes an entry out; mu is held.
func (s *Store[V]) remove(e *entry[V]) {
	delete(s.entries, e.key)
	s.recent.Remove(e.all)
	mine := s.of[e.key.Of]
	if mine.Remove(e.beside); mine.Len() == 0 {
		delete(s.of, e.key.Of)
	}
	s.bytes -= e.size
}

// Keep forgets the results of everything that is not among those that are named.
func (s *Store[V]) Keep(of map[[32]byte]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := s.recent.Front(); e != nil; {
		next := e.Next()
		if kept := e.Value.(*entry[V]); !of[kept.key.Of] {
			s.remove(kept)
		}
		e = next
	}
}

func (s *Store[V]) Len() (results, bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.entries), s.bytes
}
