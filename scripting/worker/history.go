package worker

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpd/mcpd/scripting"
)

// rating classifies a program by its calls. Trusted programs share no process with others. If a
// call of a trusted program does not end by itself, the program is not trusted for this owner for a
// while (see [offenses]).
type rating uint8

const (
	unrated    rating = iota
	misbehaved        // a call did not end by itself, or exceeded a limit
	trusted           // a call ended by itself
	fast              // trusted, and the last call ended soon without waiting
)

const (
	// fastTime is the maximum time in a process of a fast call.
	fastTime = 2 * time.Millisecond
	// stuckTicks is how many ticks a call must compute before its end is held against it: a call
	// that started just before its deadline ends early.
	stuckTicks = 2
	// maxRecent is the number of programs in one generation of a history.
	maxRecent = 4096
)

func (r rating) isTrusted() bool { return r >= trusted }

// history remembers ratings: at least the last 4096, at most twice as many. It is safe for
// concurrent use.
type history struct {
	mu          sync.RWMutex
	recent, old map[[32]byte]rating
}

func (h *history) lookup(program [32]byte) rating {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if r, known := h.recent[program]; known {
		return r
	}
	return h.old[program]
}

// update records that a call of a program has ended by itself.
func (h *history) update(program [32]byte, observed rating) {
	h.mu.RLock()
	known := h.recent[program]
	h.mu.RUnlock()
	if !observed.isTrusted() || observed == known {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.recent == nil || known == unrated && len(h.recent) >= maxRecent {
		h.recent, h.old = map[[32]byte]rating{}, h.recent
	}
	h.recent[program] = observed
}

// rate returns the rating of a program by one attempt of a call. The program stays unrated if the
// process exited while the call waited for its host or had hardly started, if other calls may be
// the cause, or if the client canceled the call and the script stopped.
func (x *execution) rate(tick int64, out scripting.Outcome, dead *exitError, err error) rating {
	since := x.runningSince.Load()
	held := since != 0 && tick-since >= stuckTicks
	switch {
	case err != nil, dead != nil && dead.notStarted:
		return unrated
	case dead != nil:
		if since != 0 && dead.calls == 1 && dead.isSuspect(x) || held && dead.cause == exitTimeout && x.guard.ctx.Err() != nil {
			return misbehaved
		}
		return unrated
	case out.Failure != nil:
		switch out.Failure.Kind {
		case scripting.Limit:
			return misbehaved
		case scripting.Timeout:
			if held {
				return misbehaved
			}
			return unrated
		case scripting.Canceled, scripting.HostPanic, scripting.Nondeterministic:
			return unrated
		}
	}
	if x.fast {
		return fast
	}
	return trusted
}

const (
	// offenseTicks is how many ticks an offense counts.
	offenseTicks = int64(10 * time.Second / tickInterval)
	// maxOffenses limits the programs that are remembered for one owner.
	maxOffenses = 256
)

// offenses are the programs with calls of an owner that recently cost a process or exceeded a
// limit. These programs are not trusted for the owner, and its calls of untrusted programs share no
// process with other owners, whose calls then need not run again. It is safe for concurrent use.
type offenses struct {
	last atomic.Int64 // tick until which the last offense counts

	mu    sync.Mutex
	until map[[32]byte]int64 // tick until which the offense of a program counts
}

// isRecent reports whether an offense counts at a tick.
func (o *offenses) isRecent(tick int64) bool { return tick < o.last.Load() }

func (o *offenses) has(program [32]byte, tick int64) bool {
	if !o.isRecent(tick) {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return tick < o.until[program]
}

func (o *offenses) add(program [32]byte, tick int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last.Store(tick + offenseTicks)
	if o.until == nil {
		o.until = map[[32]byte]int64{}
	}
	if len(o.until) >= maxOffenses {
		maps.DeleteFunc(o.until, func(_ [32]byte, until int64) bool { return until <= tick })
	}
	if _, known := o.until[program]; known || len(o.until) < maxOffenses {
		o.until[program] = tick + offenseTicks
	}
}
