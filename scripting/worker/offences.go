package worker

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// remembered is for how many looks an offence counts, unless as many calls of the owner
	// as prove a program end by themselves before.
	remembered = int64(10 * time.Second / look)
	// maxOffences bounds the programs that are remembered of an owner.
	maxOffences = 16
)

// offences are the programs by which calls of an owner have lately cost a process, or taken
// what they may not have. For that owner alone they count as not proven, whatever calls of
// others say of them; and its calls of programs that are not proven share no process with
// those of others: these need not be run again for it. It is safe for concurrent use.
type offences struct {
	last atomic.Int64 // the look until which the last one counts

	mu       sync.Mutex
	programs [maxOffences]offence
}

// offence is one program.
type offence struct {
	program [32]byte
	until   int64
	ended   int // calls of it that have ended by themselves since
}

// isRecent reports whether there is an offence that counts at a look.
func (o *offences) isRecent(look int64) bool { return look < o.last.Load() }

// has reports whether there is one by a program.
func (o *offences) has(program [32]byte, look int64) bool {
	if !o.isRecent(look) {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, p := range o.programs {
		if p.program == program {
			return look < p.until
		}
	}
	return false
}

// add adds one at a look, in the place of the oldest if there is no other. It reports
// whether there was none by the program.
func (o *offences) add(program [32]byte, look int64) (isNew bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	place := &o.programs[0]
	for i := range o.programs {
		if p := &o.programs[i]; p.program == program {
			place = p
			break
		} else if p.until < place.until {
			place = p
		}
	}
	isNew = place.program != program || place.until <= look
	*place = offence{program: program, until: look + remembered}
	o.last.Store(place.until)
	return isNew
}

// end takes in that a call of a program has ended by itself, at a look.
func (o *offences) end(program [32]byte, look int64) {
	if !o.isRecent(look) {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range o.programs {
		p := &o.programs[i]
		if p.program != program {
			continue
		}
		if p.ended++; p.ended >= probation {
			p.until = 0
		}
		return
	}
}
