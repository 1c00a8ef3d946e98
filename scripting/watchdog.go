package scripting

import (
	"sync"
	"time"
)

// tick is how often a watchdog looks: a script is interrupted that much late.
const tick = 5 * time.Millisecond

// watchdog interrupts the scripts of runs whose context has ended. To wait for
// each of them would take a timer for each, and to set one wakes a thread, which
// costs more than most bodies do; this looks at all of them now and then, and
// rests while nothing runs. The zero watchdog is ready for use.
type watchdog struct {
	mu    sync.Mutex
	timer *time.Timer
	armed bool // the timer will fire
	busy  bool // a run began since it last did
	first *run // of those that are watched
}

// watch has the watchdog look after a run until unwatch is called.
func (w *watchdog) watch(r *run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.next = w.first; r.next != nil {
		r.next.previous = r
	}
	w.first, w.busy, r.watched = r, true, true
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

// unwatch ends the watch: the run is interrupted no more once it returns.
func (w *watchdog) unwatch(r *run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.remove(r)
}

// remove takes out a run that is watched. The caller holds mu.
func (w *watchdog) remove(r *run) {
	if !r.watched {
		return
	}
	if r.next != nil {
		r.next.previous = r.previous
	}
	if r.previous != nil {
		r.previous.next = r.next
	} else {
		w.first = r.next
	}
	r.previous, r.next, r.watched = nil, nil, false
}

// look interrupts the runs whose context has ended.
func (w *watchdog) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	var next *run
	for r := w.first; r != nil; r = next {
		next = r.next
		if r.ctx.Err() != nil {
			w.remove(r)
			r.interrupt()
		}
	}
	if w.armed = w.busy || w.first != nil; w.armed {
		w.timer.Reset(tick)
	}
	w.busy = false
}
