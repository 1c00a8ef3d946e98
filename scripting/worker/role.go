package worker

import (
	"bufio"
	"sync"

	"github.com/mcpd/mcpd/internal/watchdog"
)

// role is that of the goroutine which reads what comes in. That one runs calls
// itself, since to start another goroutine for each would wake a thread, which
// costs more than most calls do. When a call waits for its host, or is under way
// for two ticks, the role passes to a new goroutine, so that what comes in is
// never held up for long.
type role struct {
	// fixed at creation
	in    *bufio.Reader
	take  func(turn uint64, kind byte, content []byte) error
	ended chan error // has why reading has ended

	watchdog watchdog.Watchdog // looks at what the goroutine does

	mu   sync.Mutex
	turn uint64 // of the goroutine that has the role
	runs bool   // it runs a call
	seen bool   // it did at the last tick, and the same
}

// readAll reads until there is nothing more, or a frame is wrong, and returns
// why. Goroutines that have passed the role on may still run.
func (r *role) readAll() error {
	r.ended = make(chan error, 1)
	go r.read(0)
	return <-r.ended
}

// read reads frames while the turn has the role.
func (r *role) read(turn uint64) {
	for r.has(turn) {
		kind, content, err := readFrame(r.in, maxFrame)
		if err == nil {
			err = r.take(turn, kind, content)
		}
		if err != nil {
			r.ended <- err
			return
		}
	}
}

func (r *role) has(turn uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.turn == turn
}

// begin says that the turn runs a call from now on.
func (r *role) begin() {
	r.mu.Lock()
	r.runs, r.seen = true, false
	r.mu.Unlock()
	r.watchdog.Watch(r)
}

// end says that the turn runs its call no more.
func (r *role) end(turn uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.turn == turn {
		r.runs = false
	}
}

// pass has another goroutine read on, unless the turn has passed the role
// already.
func (r *role) pass(turn uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.turn == turn {
		r.passOn()
	}
}

// passOn is pass for who holds mu.
func (r *role) passOn() {
	r.turn++
	r.runs = false
	go r.read(r.turn)
}

// Look passes the role on for a call that was under way at the tick before, too.
func (r *role) Look() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.runs && r.seen {
		r.passOn()
	}
	r.seen = r.runs
	return r.runs
}
