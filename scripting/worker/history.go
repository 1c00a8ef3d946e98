package worker

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpd/mcpd/scripting"
)

// record is what calls say of their program. Calls of proven programs share no process
// with others. An owner whose call of a proven program does not end by itself loses that
// for a while (see [offences]).
type record uint8

const (
	unknown record = iota // nothing is known
	unruly                // a call did not end by itself, or took what it may not have
	proven                // a call has ended by itself
	quick                 // proven, and the last call ended soon without waiting
)

const (
	// soon is how long a call that is quick is in its process at most.
	soon = 2 * time.Millisecond
	// holds is for how many looks a call computes that says something when it is ended:
	// one that came too late is ended soon.
	holds = 2
	// maxRecent bounds the programs of one generation of a history.
	maxRecent = 4096
)

func (r record) isProven() bool { return r >= proven }

// history remembers which programs are proven: the last 4096 at least, and twice as many
// at most. It is safe for concurrent use.
type history struct {
	mu          sync.RWMutex
	recent, old map[[32]byte]record
}

func (h *history) of(program [32]byte) record {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if r, known := h.recent[program]; known {
		return r
	}
	return h.old[program]
}

// learn takes in that a call of a program has ended by itself.
func (h *history) learn(program [32]byte, said record) {
	h.mu.RLock()
	known := h.recent[program]
	h.mu.RUnlock()
	if !said.isProven() || said == known {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.recent == nil || known == unknown && len(h.recent) >= maxRecent {
		h.recent, h.old = map[[32]byte]record{}, h.recent
	}
	h.recent[program] = said
}

// says returns what the stay of a call in a process says of its program, at a look.
// That is nothing where it ended while the call waited for its host, hardly was
// there, for what others did or may have done there, or since the client wanted no more
// and the body obeyed.
func (f *flight) says(look int64, out scripting.Outcome, dead *deathError, err error) record {
	since := f.since.Load()
	held := since != 0 && look-since >= holds
	switch {
	case err != nil, dead != nil && dead.missed:
		return unknown
	case dead != nil:
		if since != 0 && dead.left == 1 && dead.suspects(f) || held && dead.cause == endOverdue && f.guard.ctx.Err() != nil {
			return unruly
		}
		return unknown
	case out.Failure != nil:
		switch out.Failure.Kind {
		case scripting.Limit:
			return unruly
		case scripting.Timeout:
			if held {
				return unruly
			}
			return unknown
		case scripting.Canceled, scripting.HostPanic, scripting.Nondeterministic:
			return unknown
		}
	}
	if f.quick {
		return quick
	}
	return proven
}

const (
	// remembered is for how many looks an offence counts.
	remembered = int64(10 * time.Second / look)
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
	o.last.Store(look + remembered)
	if o.until == nil {
		o.until = map[[32]byte]int64{}
	}
	if len(o.until) >= maxOffences {
		maps.DeleteFunc(o.until, func(_ [32]byte, until int64) bool { return until <= look })
	}
	if _, known := o.until[program]; known || len(o.until) < maxOffences {
		o.until[program] = look + remembered
	}
}

// owner has the calls of one [scripting.Call.Owner]. What is not
// said to be guarded otherwise is guarded by the mutex of the admission.
type owner struct {
	room           *admission
	proven, others lane
	calls          int // that have not ended, those that wait for their host too
	computing      int
	waiting        int
	refusable      int    // those that wait and may be refused
	granted        uint64 // the number of its last call that has begun
	offences       offences

	// inProcess counts the calls that have a process, and placed is the number of the last
	// that waited for one. Both are guarded by the mutex of the executor.
	inProcess int
	placed    uint64
}

// keptOwners is how many owners are kept before those are dropped that have neither calls
// nor recent offences: what is known of their calls is lost.
const keptOwners = 256

// owner returns the owner with an id, at a look. The caller holds mu.
func (a *admission) owner(id uint64, look int64) *owner {
	if o := a.owners[id]; o != nil {
		return o
	}
	if len(a.owners) >= a.sweepAt {
		for id, o := range a.owners {
			if o.calls == 0 && !o.offences.isRecent(look) {
				delete(a.owners, id)
			}
		}
		a.sweepAt = 2*len(a.owners) + keptOwners
	}
	o := &owner{room: a}
	o.proven, o.others = newLane(o, &a.proven), newLane(o, &a.others)
	a.owners[id] = o
	return o
}

// lane returns the one for the calls of programs with a record.
func (o *owner) lane(r record) *lane {
	if r.isProven() {
		return &o.proven
	}
	return &o.others
}

// next returns the lane whose first call has waited longest, of those that have room
// for one; nil when none has.
func (o *owner) next() (next *lane) {
	for _, l := range [...]*lane{&o.proven, &o.others} {
		if len(l.waiting) > 0 && l.hasRoom() && (next == nil || l.waiting[0].since.Before(next.waiting[0].since)) {
			next = l
		}
	}
	return next
}

// before reports whether a turn is due to o before another owner.
func (o *owner) before(other *owner) bool {
	if o.computing != other.computing {
		return o.computing < other.computing
	}
	return o.granted < other.granted
}

// share is how many of the calls that may compute are due to each owner.
func (o *owner) share(most int) int {
	owners := o.room.active
	if !o.isActive() {
		owners++ // its call makes it so
	}
	return max(most/max(owners, 1), 1)
}

func (o *owner) isActive() bool { return o.computing > 0 || o.waiting > 0 }

// change notes that so many calls more compute and wait.
func (o *owner) change(computing, waiting int) {
	was := o.isActive()
	waited := o.waiting > 0
	o.computing += computing
	o.waiting += waiting
	o.room.waiting += waiting
	switch is := o.isActive(); {
	case is && !was:
		o.room.active++
	case was && !is:
		o.room.active--
	}
	switch waits := o.waiting > 0; {
	case waits && !waited:
		o.room.lines = append(o.room.lines, o)
	case waited && !waits:
		o.room.lines = slices.DeleteFunc(o.room.lines, func(other *owner) bool { return other == o })
	}
}

// refuseLast refuses the call that came last of those that wait and may be refused. It
// reports whether there was one.
func (o *owner) refuseLast() bool {
	var from *lane
	last := -1
	for _, l := range [...]*lane{&o.proven, &o.others} {
		for i, t := range slices.Backward(l.waiting) {
			if !t.patient {
				if from == nil || t.since.After(from.waiting[last].since) {
					from, last = l, i
				}
				break
			}
		}
	}
	if from == nil {
		return false
	}
	from.refuse(last)
	return true
}
