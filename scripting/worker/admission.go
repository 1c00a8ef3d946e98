package worker

import (
	"context"
	"sync"
	"time"

	"github.com/mcpd/mcpd/scripting"
)

// admission lets calls begin as long as not too many compute. Those that wait
// for their host do not count: what is scarce are the processors. A call that
// finds no room waits in a lane of its owner, in order. One that would begin too late, by
// what others have waited there, is refused at once: it would end in vain, and make others
// late.
//
// Room is shared between owners. While the room is full, an owner that has less than its
// share still begins calls, and turns go to the owner that computes least. The calls of
// one owner so delay those of another by their share at most.
type admission struct {
	// fixed at creation
	patience time.Duration // that of calls without a deadline, and the least
	most     int           // calls that compute at once, as long as no owner has less than its share
	mostWait int           // calls that wait and may be refused
	ownWait  int           // those of one owner

	mu sync.Mutex
	// proven has the calls of programs that are: they may take all the room. Others may
	// take three quarters of it, however long they compute.
	proven, others class
	owners         map[uint64]*owner
	sweepAt        int      // how many owners there are when those without calls are dropped
	active         int      // owners with calls that compute or wait
	lines          []*owner // owners with calls that wait
	waiting        int      // calls that wait
	refusable      int      // those of them that may be refused
	grants         uint64   // calls that have begun
}

// class is what all owners together have of one of the two kinds of calls.
type class struct {
	most      int // that compute at once, as admission.most
	computing int
}

// waitEach is how many calls may wait for each that may compute. One owner may have half of
// them.
const waitEach = 256

// newAdmission returns the admission of so many calls at once.
func newAdmission(most int, patience time.Duration) *admission {
	return &admission{
		patience: patience, most: most, mostWait: waitEach * most, ownWait: waitEach * most / 2,
		proven: class{most: most}, others: class{most: max(most*3/4, 1)},
		owners: map[uint64]*owner{}, sweepAt: keptOwners,
	}
}

// admit begins a call once there is room for it to compute (see [lane.enter]), and returns
// the lane that it has begun in. [lane.end] must be called when the call ends.
func (a *admission) admit(ctx context.Context, c scripting.Call, r record, look int64) (*lane, error) {
	patient := c.Patient || c.Kin != nil
	if c.Kin != nil {
		done, err := c.Kin.Turn(ctx)
		if err != nil {
			return nil, err
		}
		defer done()
	}
	a.mu.Lock()
	o := a.owner(c.Owner, look)
	if r.isProven() && o.offences.has(c.Program.Hash(), look) {
		r = unruly
	}
	o.calls++
	l := o.lane(r)
	if err := l.enterLocked(ctx, patient); err != nil {
		a.mu.Lock()
		o.calls--
		a.mu.Unlock()
		return nil, err
	}
	return l, nil
}

// computing counts the calls that compute.
func (a *admission) computing() int { return a.proven.computing + a.others.computing }

// waits counts the calls that wait to begin.
func (a *admission) waits() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.waiting
}

// fill has calls begin as long as there is room. The caller holds mu.
func (a *admission) fill() {
	for l := a.next(); l != nil; l = a.next() {
		l.begin()
	}
}

// next returns the lane whose first call begins next: of the owners that there is room
// for the one that computes least, and of several of those the one whose last turn is
// longest ago. It is nil when no call that waits has room. The caller holds mu.
func (a *admission) next() *lane {
	var next *lane
	for _, o := range a.lines {
		l := o.next()
		if l != nil && (next == nil || o.before(next.owner)) {
			next = l
		}
	}
	return next
}

// makeRoom refuses the call that came last of the owner with the most calls that wait,
// when as many wait as may. It reports whether a call of o may wait: the refused one may
// be that. The caller holds mu.
func (a *admission) makeRoom(o *owner) bool {
	if o.refusable >= a.ownWait {
		return false
	}
	if a.refusable < a.mostWait {
		return true
	}
	most := o
	for _, other := range a.lines {
		if other.refusable > most.refusable {
			most = other
		}
	}
	return most != o && most.refuseLast()
}
