package gofunc

import (
	"context"
	"sync"

	"github.com/mcpd/mcpd/internal/base/watchdog"
	"github.com/mcpd/mcpd/internal/execution/catalog"
)

// Watchdog looks after functions that run on the goroutine of their call. To
// start another goroutine for each would wake a thread, which costs more than
// most functions do; only those that are under way for two ticks get one, which
// waits for their end: a function that goes on past the end of its context is
// left at most two ticks late. The zero Watchdog is ready for use.
type Watchdog struct{ watchdog watchdog.Watchdog }

// stay is the time that a function holds the goroutine of its call.
type stay struct {
	// fixed at creation
	ctx  context.Context
	late catalog.Late

	mu     sync.Mutex
	state  state
	waiter *waiter // nil while nobody waits
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

func (w *Watchdog) begin(s *stay) { w.watchdog.Watch(s) }

// end ends a stay, and reports whether what came of the function still counts.
// It does not when late was told, which then has returned.
func (w *Watchdog) end(s *stay) bool {
	w.watchdog.Unwatch(s)
	s.mu.Lock()
	waiter, late := s.waiter, s.state == expired
	if !late {
		s.state = ended
	}
	s.mu.Unlock()
	switch {
	case late:
		<-waiter.told
	case waiter != nil:
		close(waiter.ended)
	}
	return !late
}

// Look has somebody wait for a function that was under way at the tick before,
// too. The watchdog then holds on to it no more: it may go on for ever.
func (s *stay) Look() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == begun {
		s.state = seen
		return true
	}
	s.waiter = &waiter{make(chan struct{}), make(chan struct{})}
	go s.await(s.waiter)
	return false
}

// await waits for the end of a function, or of its context.
func (s *stay) await(waiter *waiter) {
	select {
	case <-waiter.ended:
	case <-s.ctx.Done():
		if s.expire() {
			defer close(waiter.told)
			s.late.Late(s.ctx, s.ctx.Err())
		}
	}
}

// expire reports whether the context has ended before the function.
func (s *stay) expire() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == ended {
		return false
	}
	s.state = expired
	return true
}
