package worker

import (
	"context"
	"slices"
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
	maxQueueTime   time.Duration // that of calls without a deadline, and the least
	maxRunning     int           // calls that compute at once, as long as no owner has less than its share
	maxWaiting     int           // calls that wait and may be refused
	maxWaitingEach int           // those of one owner

	mu sync.Mutex
	// proven has the calls of programs that are: they may take all the room. Others may
	// take three quarters of it, however long they compute.
	trusted, others class
	owners          map[uint64]*owner
	sweepAt         int      // how many owners there are when those without calls are dropped
	active          int      // owners with calls that compute or wait
	waitingOwners   []*owner // owners with calls that wait
	waiting         int      // calls that wait
	sheddable       int      // those of them that may be refused
	starts          uint64   // calls that have begun
}

// class is what all owners together have of one of the two kinds of calls.
type class struct {
	limit   int // that compute at once, as admission.most
	running int
}

// waitEach is how many calls may wait for each that may compute. One owner may have half of
// them.
const waitEach = 256

// newAdmission returns the admission of so many calls at once.
func newAdmission(most int, patience time.Duration) *admission {
	return &admission{
		maxQueueTime: patience, maxRunning: most, maxWaiting: waitEach * most, maxWaitingEach: waitEach * most / 2,
		trusted: class{limit: most}, others: class{limit: max(most*3/4, 1)},
		owners: map[uint64]*owner{}, sweepAt: keptOwners,
	}
}

// admit begins a call once there is room for it to compute (see [lane.enterLocked]), and returns
// the lane that it has begun in. [lane.end] must be called when the call ends.
func (a *admission) admit(ctx context.Context, c scripting.Call, r rating, look int64) (*queue, error) {
	patient := c.NoShedding || c.Tree != nil
	if c.Tree != nil {
		done, err := c.Tree.Acquire(ctx)
		if err != nil {
			return nil, err
		}
		defer done()
	}
	a.mu.Lock()
	o := a.owner(c.Owner, look)
	if r.isTrusted() && o.offences.has(c.Program.Hash(), look) {
		r = misbehaved
	}
	o.calls++
	l := o.queueFor(r)
	if err := l.acquireLocked(ctx, patient); err != nil {
		a.mu.Lock()
		o.calls--
		a.mu.Unlock()
		return nil, err
	}
	return l, nil
}

func (a *admission) running() int { return a.trusted.running + a.others.running }

func (a *admission) waitingCalls() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.waiting
}

// fill has calls begin as long as there is room. The caller holds mu.
func (a *admission) startWaiting() {
	for l := a.next(); l != nil; l = a.next() {
		l.startNext()
	}
}

// next returns the lane whose first call begins next: of the owners that there is room
// for the one that computes least, and of several of those the one whose last turn is
// longest ago. It is nil when no call that waits has room. The caller holds mu.
func (a *admission) next() *queue {
	var next *queue
	for _, o := range a.waitingOwners {
		l := o.next()
		if l != nil && (next == nil || o.precedes(next.owner)) {
			next = l
		}
	}
	return next
}

// makeRoom refuses the call that came last of the owner with the most calls that wait,
// when as many wait as may. It reports whether a call of o may wait: the refused one may
// be that. The caller holds mu.
func (a *admission) shedExcess(o *owner) bool {
	if o.sheddable >= a.maxWaitingEach {
		return false
	}
	if a.sheddable < a.maxWaiting {
		return true
	}
	most := o
	for _, other := range a.waitingOwners {
		if other.sheddable > most.sheddable {
			most = other
		}
	}
	return most != o && most.shedLast()
}

// lane queues the calls of one owner that wait to compute: either those of proven programs
// or the others.
type queue struct {
	// fixed at creation
	owner     *owner
	admission *admission
	class     *class

	// guarded by the mutex of the room
	running  int
	waiting  []queuedCall  // the oldest first
	started  int           // calls that have waited and begun
	interval time.Duration // the time from one turn to the next; 0 if unknown
	isFresh  bool          // the pace was measured since the queue was last empty
}

// A pace is known after turnsEach turns for each call that may compute at once: the first
// wait for processes and compilers. That of an earlier queue counts once crowdEach calls wait
// for each of those.
const (
	startsEach = 2
	reuseEach  = 4
)

func newQueue(o *owner, c *class) queue { return queue{owner: o, admission: o.admission, class: c} }

// turn is a call that waits to begin.
type queuedCall struct {
	since         time.Time
	startedBefore int           // how many of the lane had waited and begun by then
	remaining     time.Duration // from then on to its deadline; 0 for none
	noShedding    bool          // it is never refused
	result        chan error    // is sent nil when it has begun, or that it is refused
}

// latest returns when a call that may be refused begins at the latest: when two thirds of
// its time are over.
func (t queuedCall) latest() time.Time { return t.since.Add(t.remaining - t.remaining/3) }

// enterLocked begins a call. [lane.leave] must be called when it waits or ends,
// unless there is an error: that of ctx, or [scripting.ErrOverloaded], which who
// is patient does not get. The caller holds the mutex of the room, which enterLocked unlocks.
func (l *queue) acquireLocked(ctx context.Context, patient bool) error {
	if len(l.waiting) == 0 && l.hasCapacity() {
		l.start()
		l.admission.mu.Unlock()
		return nil
	}
	t := queuedCall{since: time.Now(), startedBefore: l.started, noShedding: patient, result: make(chan error, 1)}
	if until, ok := ctx.Deadline(); ok {
		t.remaining = max(until.Sub(t.since), 1)
	}
	if l.wouldExpire(t) || !patient && !l.admission.shedExcess(l.owner) {
		l.admission.mu.Unlock()
		return scripting.ErrOverloaded
	}
	l.isFresh = l.isFresh && len(l.waiting) > 0
	l.waiting = append(l.waiting, t)
	l.countWaiting(t, 1)
	l.admission.mu.Unlock()
	return l.await(ctx, t)
}

// hasRoom reports whether another call of the lane may compute: there is room for it, or
// its owner has less than its share of that. The caller holds mu.
func (l *queue) hasCapacity() bool {
	a, o := l.admission, l.owner
	if l.class.running < l.class.limit && a.running() < a.maxRunning {
		return true
	}
	return o.running < o.share(a.maxRunning) && l.running < o.share(l.class.limit) &&
		a.running() < 2*a.maxRunning && l.class.running < 2*l.class.limit
}

// grant has a call compute that begins. The caller holds mu.
func (l *queue) start() {
	l.countRunning(1)
	l.admission.starts++
	l.owner.lastStart = l.admission.starts
}

// compute notes that so many calls more compute. The caller holds mu.
func (l *queue) countRunning(by int) {
	l.running += by
	l.class.running += by
	l.owner.count(by, 0)
}

// line notes that a call waits, by 1, or does no more, by -1. The caller holds mu.
func (l *queue) countWaiting(t queuedCall, by int) {
	l.owner.count(0, by)
	if !t.noShedding {
		l.owner.sheddable += by
		l.admission.sheddable += by
	}
}

func (l *queue) await(ctx context.Context, t queuedCall) error {
	var latest <-chan time.Time
	if t.remaining > 0 && !t.noShedding {
		timer := time.NewTimer(t.latest().Sub(t.since))
		defer timer.Stop()
		latest = timer.C
	}
	select {
	case err := <-t.result:
		return err
	case <-latest:
		if l.withdraw(t) {
			return scripting.ErrOverloaded
		}
		return <-t.result
	case <-ctx.Done():
		if !l.withdraw(t) && <-t.result == nil {
			l.release()
		}
		return ctx.Err()
	}
}

// give gives a turn up that is not wanted any more, and reports whether it had not
// come in the meantime.
func (l *queue) withdraw(t queuedCall) bool {
	l.admission.mu.Lock()
	defer l.admission.mu.Unlock()
	i := slices.IndexFunc(l.waiting, func(other queuedCall) bool { return other.result == t.result })
	if i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
		l.countWaiting(t, -1)
	}
	return i >= 0
}

// late reports whether a call that comes now is refused because it would begin too late:
// after a third of its time, by the age of the queue or by its pace. The rest of its time
// is for the call itself. The caller holds mu.
func (l *queue) wouldExpire(t queuedCall) bool {
	queued := len(l.waiting)
	if t.noShedding || queued == 0 {
		return false
	}
	wait := t.since.Sub(l.waiting[0].since)
	if l.isFresh || queued >= reuseEach*l.class.limit {
		wait = max(wait, time.Duration(queued+1)*l.interval)
	}
	return wait > max(l.admission.maxQueueTime, t.remaining/3)
}

// resume has a call compute that goes on: it is not refused any more.
func (l *queue) reacquire() {
	l.admission.mu.Lock()
	defer l.admission.mu.Unlock()
	l.countRunning(1)
}

// leave has a call wait for its host.
func (l *queue) release() {
	l.admission.mu.Lock()
	defer l.admission.mu.Unlock()
	l.releaseLocked()
}

// end is leave for a call that has ended, which has begun by [admission.admit].
func (l *queue) finish() {
	l.admission.mu.Lock()
	defer l.admission.mu.Unlock()
	l.owner.calls--
	l.releaseLocked()
}

// leaveLocked gives the turn of a call to those that wait. The caller holds mu.
func (l *queue) releaseLocked() {
	l.countRunning(-1)
	l.admission.startWaiting()
}

// begin begins the first call that waits, and measures the pace by how many have begun
// while it waited. The caller holds mu.
func (l *queue) startNext() {
	t := l.waiting[0]
	l.waiting[0] = queuedCall{}
	l.waiting = l.waiting[1:]
	l.countWaiting(t, -1)
	l.start()
	l.started++
	turns := l.started - t.startedBefore
	switch pace := time.Since(t.since) / time.Duration(turns); {
	case l.isFresh:
		l.interval += (pace - l.interval) / 8
	case turns >= startsEach*l.class.limit:
		l.interval, l.isFresh = pace, true
	}
	t.result <- nil
}

// refuse refuses a call that waits. The caller holds mu.
func (l *queue) shed(i int) {
	t := l.waiting[i]
	l.waiting = slices.Delete(l.waiting, i, i+1)
	l.countWaiting(t, -1)
	t.result <- scripting.ErrOverloaded
}
