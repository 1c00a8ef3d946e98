package worker

import (
	"sync"

	"github.com/mcpd/mcpd/internal/watchdog"
)

// role is what a process reads by. The goroutine that reads runs calls itself. When a call
// waits for its host, or is under way for two ticks, the lease passes to a new goroutine, so
// that what comes in is never held up for long.
type role struct {
	pipeReader
	watchdog watchdog.Watchdog // looks at what the goroutine does

	mu   sync.Mutex
	runs uint64 // the lease of the goroutine, while it runs a call
	seen uint64 // that at the last tick, for the same call
}

// readAll reads until there is nothing more, or a frame is wrong, and returns why.
// Goroutines that have passed the lease may still run.
func (r *role) readAll() error {
	ended := make(chan error, 1)
	r.failed = func(err error) { ended <- err }
	lease, _ := r.acquire()
	go r.read(lease)
	return <-ended
}

// begin says that the goroutine with a lease runs a call from now on.
func (r *role) begin(lease uint64) {
	r.mu.Lock()
	r.runs, r.seen = lease, 0
	r.mu.Unlock()
	r.watchdog.Watch(r)
}

// end says that it runs its call no more.
func (r *role) end(lease uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.runs == lease {
		r.runs = 0
	}
}

// Look passes the lease on for a call that was under way at the tick before, too.
func (r *role) Look() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.runs != 0 && r.runs == r.seen {
		r.pass(r.runs)
		r.runs = 0
	}
	r.seen = r.runs
	return r.runs != 0
}
