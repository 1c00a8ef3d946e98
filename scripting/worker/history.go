package worker

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpd/mcpd/scripting"
)

// record is what calls say of their program. Calls of proven programs share no process
// with others. An owner whose call of a proven program does not end by itself loses that
// for a while (see [offences]).
type rating uint8

const (
	unrated    rating = iota // nothing is known
	misbehaved               // a call did not end by itself, or took what it may not have
	trusted                  // a call has ended by itself
	fast                     // proven, and the last call ended soon without waiting
)

const (
	// soon is how long a call that is quick is in its process at most.
	fastTime = 2 * time.Millisecond
	// holds is for how many looks a call computes that says something when it is ended:
	// one that came too late is ended soon.
	stuckTicks = 2
	// maxRecent bounds the programs of one generation of a history.
	maxRecent = 4096
)

func (r rating) isTrusted() bool { return r >= trusted }

// history remembers which programs are proven: the last 4096 at least, and twice as many
// at most. It is safe for concurrent use.
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

// learn takes in that a call of a program has ended by itself.
func (h *history) update(program [32]byte, said rating) {
	h.mu.RLock()
	known := h.recent[program]
	h.mu.RUnlock()
	if !said.isTrusted() || said == known {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.recent == nil || known == unrated && len(h.recent) >= maxRecent {
		h.recent, h.old = map[[32]byte]rating{}, h.recent
	}
	h.recent[program] = said
}

// says returns what the stay of a call in a process says of its program, at a look.
// That is nothing where it ended while the call waited for its host, hardly was
// there, for what others did or may have done there, or since the client wanted no more
// and the body obeyed.
func (x *execution) rate(look int64, out scripting.Outcome, dead *exitError, err error) rating {
	since := x.runningSince.Load()
	held := since != 0 && look-since >= stuckTicks
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
	// remembered is for how many looks an offence counts.
	offenceTicks = int64(10 * time.Second / tickInterval)
	// maxOffences bounds the programs that are remembered of an owner.
	maxOffences = 256
)

// offences are the programs by which calls of an owner have lately cost a process, or taken
// what they may not have. For that owner they count as not proven, and its calls of programs
// that are not proven share no process with those of others, which then need not be run
// again for it. It is safe for concurrent use.
type offences struct {
	last atomic.Int64 // the look until which the last one counts

	mu    sync.Mutex
	until map[[32]byte]int64 // the look until which one by a program counts
}

// isRecent reports whether there is an offence that counts at a look.
func (o *offences) isRecent(look int64) bool { return look < o.last.Load() }

func (o *offences) has(program [32]byte, look int64) bool {
	if !o.isRecent(look) {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return look < o.until[program]
}

func (o *offences) add(program [32]byte, look int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last.Store(look + offenceTicks)
	if o.until == nil {
		o.until = map[[32]byte]int64{}
	}
	if len(o.until) >= maxOffences {
		maps.DeleteFunc(o.until, func(_ [32]byte, until int64) bool { return until <= look })
	}
	if _, known := o.until[program]; known || len(o.until) < maxOffences {
		o.until[program] = look + offenceTicks
	}
}
