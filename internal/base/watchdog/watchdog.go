// Package watchdog looks, now and then, at what is under way.
//
// To wait for the end of each of many short calls would take a timer for each,
// and to set one wakes a thread, which costs more than most calls do. A
// [Watchdog] has one timer for all of them, and rests while there are none.
package watchdog

import (
	"sync"
	"time"
)

// Tick is how often a [Watchdog] looks: what it is to notice, it notices that
// much late at most.
const Tick = 5 * time.Millisecond

// Watched is what a [Watchdog] looks at. It must be comparable.
type Watched interface {
	// Look is called at each tick, one at a time, and reports whether it is to be
	// called again. It must neither block nor call the watchdog.
	Look() bool
}

// Watchdog looks after what is under way, from any goroutine. The zero Watchdog
// is ready for use.
type Watchdog struct {
	mu      sync.Mutex
	timer   *time.Timer
	armed   bool // the timer will fire
	busy    bool // something began since it last did
	watched map[Watched]struct{}
}

// Watch has x looked at from the next tick on, until [Watchdog.Unwatch] is
// called or its Look reports that this is enough.
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

// arm has the timer fire at the next tick, which is the same for all watchdogs:
// several then wake one thread. The caller holds mu.
func (w *Watchdog) arm() {
	rest := Tick - time.Duration(time.Now().UnixNano())%Tick
	if w.timer == nil {
		w.timer = time.AfterFunc(rest, w.look)
	} else {
		w.timer.Reset(rest)
	}
	w.armed = true
}

// Unwatch has x looked at no more, not even by a look that is under way.
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
