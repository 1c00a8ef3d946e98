package worker

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"
)

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

// has reports whether there is one by a program.
func (o *offences) has(program [32]byte, look int64) bool {
	if !o.isRecent(look) {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return look < o.until[program]
}

// add adds one at a look.
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
