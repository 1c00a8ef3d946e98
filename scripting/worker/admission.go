package worker

import (
	"sync"
	"time"
)

// admission lets calls begin as long as not too many compute. Those that wait
// for their host do not count: what is scarce are the processors. A call that
// finds no room waits for its turn in its lane; one that would begin too late, by the
// pace at which turns come there, is refused at once: it would end in vain, and make
// others late.
type admission struct {
	// fixed at creation
	most     int
	patience time.Duration // that of calls without a deadline, and the least

	mu sync.Mutex
	// proven has the calls of programs that are: they may take all the room. Others may
	// take three quarters of it, however long they compute.
	proven, others lane
}

// newAdmission returns the admission of so many calls at once.
func newAdmission(most, processors int, patience time.Duration) *admission {
	a := &admission{most: most, patience: patience}
	a.proven = newLane(a, most, processors)
	a.others = newLane(a, max(most*3/4, 1), processors)
	return a
}

// of returns the lane for the calls of programs with a record.
func (a *admission) of(r record) *lane {
	if r.isProven() {
		return &a.proven
	}
	return &a.others
}

// waiting counts the calls that wait to begin.
func (a *admission) waiting() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.proven.waiting) + len(a.others.waiting)
}

// full reports whether as many calls compute as may. The caller holds mu.
func (a *admission) full() bool {
	return a.proven.meter.computing+a.others.meter.computing >= a.most
}

// fill has calls begin as long as there is room, and refuses those whose turn would
// come too late. The caller holds mu.
func (a *admission) fill(now time.Time) {
	for l := a.next(); l != nil; l = a.next() {
		l.begin(now)
	}
	a.proven.shed(now)
	a.others.shed(now)
}

// next returns the lane whose first call has waited longest, of those that have room
// for one; nil when none has. The caller holds mu.
func (a *admission) next() (next *lane) {
	for _, l := range [...]*lane{&a.proven, &a.others} {
		if len(l.waiting) > 0 && l.hasRoom() && (next == nil || l.waiting[0].since.Before(next.waiting[0].since)) {
			next = l
		}
	}
	return next
}
