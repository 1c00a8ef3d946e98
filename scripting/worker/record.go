package worker

import (
	"encoding/binary"
	"sync/atomic"
	"time"

	"github.com/mcpd/mcpd/scripting"
)

// record is what the calls of a program say of it. Calls of programs that are proven
// share no process with others. That tells programs apart, not what they are given:
// one that computes for ever for some arguments costs others, once more each time
// that it was well-behaved for long.
type record uint8

const (
	unknown record = iota
	// unruly: a call did not end by itself, or took what it may not have. Until it is
	// proven again, the record counts the calls that did end.
	unruly
	// proven: calls end by themselves.
	proven = unruly + probation
	// quick: the last also ended soon, and waited for nothing.
	quick = proven + 1
)

const (
	// probation is how many calls in a row must end by themselves until a program is
	// proven again.
	probation = 16
	// soon is how long a call that is quick is in its process at most.
	soon = 2 * time.Millisecond
	// holds is for how many looks a call computes that says something when it is ended:
	// one that came too late is ended soon.
	holds = 2
	// sets and places bound of how many programs something is known.
	sets   = 1024
	places = 8
)

func (r record) isProven() bool { return r >= proven }

// after returns the record once another call has said something.
func (r record) after(said record) record {
	if said.isProven() && r >= unruly && r < proven {
		return r + 1
	}
	return said
}

// records are what is known of programs, as many as there is room for. Each has its
// place in one set, by its hash, where it takes that of another when all are taken. They
// are read without a lock, and written by one goroutine at a time.
type records struct {
	sets [sets][places]atomic.Uint64 // what is left of a hash, and the record in the last byte
}

// find returns what is known of a program, the place of that, and what the place has
// beside it. It has something else where nothing is known.
func (r *records) find(program [32]byte) (known record, place *atomic.Uint64, of uint64) {
	set := &r.sets[binary.LittleEndian.Uint16(program[:])%sets]
	of = binary.LittleEndian.Uint64(program[2:]) &^ 0xff
	for i := range set {
		if at := set[i].Load(); at == 0 || at&^0xff == of {
			return record(at), &set[i], of
		}
	}
	return unknown, &set[program[31]%places], of
}

// of returns what is known of a program.
func (r *records) of(program [32]byte) record {
	known, _, _ := r.find(program)
	return known
}

// learn takes in what a call says of its program.
func (r *records) learn(program [32]byte, said record) {
	if known, place, of := r.find(program); said != unknown && said != known {
		place.Store(of | uint64(known.after(said)))
	}
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
