package worker

import (
	"time"

	"github.com/mcpd/mcpd/scripting"
)

// record is what the calls of a program say of it: the last of those that say
// anything.
type record uint8

const (
	unknown record = iota
	// unruly: the call did not end by itself, or took what it may not have.
	unruly
	// proven: it did. Calls of programs that are proven share no process with others: a
	// body that takes all of one for itself is known at the latest by its second call.
	proven
	// quick: it also ended soon, and waited for nothing.
	quick
)

const (
	// soon is how long a call that is quick is in its process at most.
	soon = 2 * time.Millisecond
	// maxRecords bounds of how many programs something is known.
	maxRecords = 4096
)

func (r record) isProven() bool { return r >= proven }

// learn takes in what a call says of its program. The caller holds mu.
func (e *Executor) learn(program [32]byte, said record) {
	known := e.records[program]
	if said == unknown || said == known {
		return
	}
	if known == unknown && len(e.records) >= maxRecords {
		clear(e.records)
	}
	e.records[program] = said
}

// says returns what the stay of a call in a process says of its program. That is
// nothing where it ended while the call waited for its host, or for what others
// did there.
func (f *flight) says(out scripting.Outcome, dead *deathError, err error) record {
	computes := f.since.Load() != 0
	switch {
	case dead != nil && (dead.suspects(f) || dead.cause == endOverdue && computes && f.guard.ctx.Err() != nil):
		return unruly
	case dead != nil, err != nil:
		return unknown
	case f.quick:
		return quick
	case out.Failure == nil:
		return proven
	}
	switch out.Failure.Kind {
	case scripting.Limit:
		return unruly
	case scripting.Timeout:
		if computes {
			return unruly
		}
		return unknown
	case scripting.Canceled:
		return unknown
	}
	return proven
}
