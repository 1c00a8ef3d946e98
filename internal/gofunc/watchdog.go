package gofunc

import (
	"context"
	"sync"
	"time"

	"github.com/mcpd/mcpd/internal/catalog"
)

// tick is how often a Watchdog looks: a function that goes on past the end of
// its context is left at most two ticks late.
const tick = 5 * time.Millisecond

// Watchdog looks after functions that run on the goroutine of their call. To
// start another goroutine for each would wake a thread, which costs more than
// most functions do; only those that are under way for two ticks get one, which
// waits for their end. The zero Watchdog is ready for use, and rests while no
// functions run.
type Watchdog struct {
	mu    sync.Mutex
	timer *time.Timer
	armed bool  // the timer will fire
	busy  bool  // a function began since it last did
	first *stay // of those that nobody waits for
}

// stay is the time that a function holds the goroutine of its call.
type stay struct {
	// fixed at creation
	ctx  context.Context
	late catalog.Late

	// guarded by the mutex of the watchdog
	state      state
	prev, next *stay
	waiter     *waiter // nil while nobody waits
}

type state uint8

const (
	begun   state = iota
	seen          // it was under way at a tick
	ended         // the function has returned
	expired       // the context has ended before
)

// waiter is who waits for the end of a stay.
type waiter struct {
	ended chan struct{} // closed once the function has returned
	told  chan struct{} // closed once late has
}

// begin adds a stay.
func (w *Watchdog) begin(s *stay) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.next = w.first; s.next != nil {
		s.next.prev = s
	}
	w.first, w.busy = s, true
	if w.armed {
		return
	}
	w.armed = true
	if w.timer == nil {
		w.timer = time.AfterFunc(tick, w.look)
	} else {
		w.timer.Reset(tick)
	}
}

// end ends a stay, and reports whether what came of the function still counts.
// It does not when late was told, which then has returned.
func (w *Watchdog) end(s *stay) bool {
	w.mu.Lock()
	waiter, late := s.waiter, s.state == expired
	if !late {
		s.state = ended
	}
	if waiter == nil {
		w.remove(s)
	}
	w.mu.Unlock()
	switch {
	case late:
		<-waiter.told
	case waiter != nil:
		close(waiter.ended)
	}
	return !late
}

// remove takes out a stay that nobody waits for, which then holds on to no other:
// a function may go on for ever. The caller holds mu.
func (w *Watchdog) remove(s *stay) {
	if s.next != nil {
		s.next.prev = s.prev
	}
	if s.prev != nil {
		s.prev.next = s.next
	} else {
		w.first = s.next
	}
	s.prev, s.next = nil, nil
}

// look has somebody wait for the functions that were under way at the tick
// before, too.
func (w *Watchdog) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	var next *stay
	for s := w.first; s != nil; s = next {
		next = s.next
		if s.state == begun {
			s.state = seen
			continue
		}
		w.remove(s)
		s.waiter = &waiter{make(chan struct{}), make(chan struct{})}
		go w.await(s, s.waiter)
	}
	if w.armed = w.busy || w.first != nil; w.armed {
		w.timer.Reset(tick)
	}
	w.busy = false
}

// await waits for the end of a function, or of its context.
func (w *Watchdog) await(s *stay, waiter *waiter) {
	select {
	case <-waiter.ended:
	case <-s.ctx.Done():
		if w.expire(s) {
			defer close(waiter.told)
			s.late.Late(s.ctx, s.ctx.Err())
		}
	}
}

// expire reports whether the context of a stay has ended before its function.
func (w *Watchdog) expire(s *stay) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.state == ended {
		return false
	}
	s.state = expired
	return true
}
