// Package watchdog checks running work periodically.
//
// A timer for each of many short calls would be expensive: setting a timer wakes a
// thread, which costs more than most calls. A [Watchdog] has one timer for all of them,
// which is stopped while there are none.
package watchdog

import (
	"sync"
	"time"
)

// Tick is the interval of checks, and so the maximum delay of a check.
const Tick = 5 * time.Millisecond

// Watched is work that a [Watchdog] checks. It must be comparable.
type Watched interface {
	// Look is called at each tick, one call at a time, and reports whether to call it
	// again. It must not block or call the watchdog.
	Look() bool
}

// Watchdog checks running work. It is safe for concurrent use, and the zero Watchdog is
// ready for use.
type Watchdog struct {
	mu      sync.Mutex
	timer   *time.Timer
	armed   bool // the timer will fire
	busy    bool // work was added since the last tick
	watched map[Watched]struct{}
}

// Watch checks x from the next tick on, until [Watchdog.Unwatch] is called or Look
// returns false.
func (w *Watchdog) Watch(x Watched) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watched == nil {
		w.watched = map[Watched]struct{}{}
	}
	w.watched[x], w.busy = struct{}{}, true
	if !w.armed {
		w.arm()
	}
}

// arm sets the timer to the next tick, which is the same for all watchdogs, so that
// several wake one thread. The caller holds mu.
func (w *Watchdog) arm() {
	rest := Tick - time.Duration(time.Now().UnixNano())%Tick
	if w.timer == nil {
		w.timer = time.AfterFunc(rest, w.look)
	} else {
		w.timer.Reset(rest)
	}
	w.armed = true
}

// Unwatch stops checking x, even during a running tick.
func (w *Watchdog) Unwatch(x Watched) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.watched, x)
}

func (w *Watchdog) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for x := range w.watched {
		if !x.Look() {
			delete(w.watched, x)
		}
	}
	if w.armed = w.busy || len(w.watched) > 0; w.armed {
		w.arm()
	}
	w.busy = false
}
