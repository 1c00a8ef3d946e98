package worker

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/mcpd/mcpd/scripting"
)

// admission limits the number of calls that compute at once. Calls that wait for their host do not
// count: processors are scarce. A call without capacity waits in a queue of its owner, first in,
// first out. A call that would start too late, judged by the waiting time of others, is refused at
// once: otherwise it would fail anyway and delay others.
//
// Owners share the capacity. If it is exhausted, an owner with less than its share still starts
// calls, and the owner with the fewest running calls gets the next turn. So the calls of one owner
// delay the calls of another at most by their share.
type admission struct {
	// fixed at creation
	maxQueueTime   time.Duration // for calls without a deadline; minimum for others
	maxRunning     int           // running calls, unless an owner has less than its share
	maxWaiting     int           // waiting calls that may be refused
	maxWaitingEach int           // maxWaiting of one owner

	mu sync.Mutex
	// trusted has the calls of trusted programs, which may use all the capacity. Other calls may
	// use three quarters of it.
	trusted, others class
	owners          map[uint64]*owner
	sweepAt         int      // number of owners at which those without calls are dropped
	active          int      // owners with running or waiting calls
	waitingOwners   []*owner // owners with waiting calls
	waiting         int      // waiting calls
	sheddable       int      // waiting calls that may be refused
	starts          uint64   // calls that have started
}

// class counts the calls of all owners of one of the two classes.
type class struct {
	limit   int // running calls; see admission.maxRunning
	running int
}

// waitEach is how many calls may wait for each call that may run. One owner may have half of them.
const waitEach = 256

// newAdmission returns an admission that runs at most limit calls at once.
func newAdmission(limit int, maxQueueTime time.Duration) *admission {
	return &admission{
		maxQueueTime: maxQueueTime, maxRunning: limit, maxWaiting: waitEach * limit, maxWaitingEach: waitEach * limit / 2,
		trusted: class{limit: limit}, others: class{limit: max(limit*3/4, 1)},
		owners: map[uint64]*owner{}, sweepAt: keptOwners,
	}
}

// admit waits until the call may compute (see [queue.acquireLocked]), and returns its queue. The
// caller must call [queue.finish] when the call ends.
func (a *admission) admit(ctx context.Context, c scripting.Call, r rating, tick int64) (*queue, error) {
	noShedding := c.NoShedding || c.Tree != nil
	if c.Tree != nil {
		done, err := c.Tree.Acquire(ctx)
		if err != nil {
			return nil, err
		}
		defer done()
	}
	a.mu.Lock()
	o := a.owner(c.Owner, tick)
	if r.isTrusted() && o.offenses.has(c.Program.Hash(), tick) {
		r = misbehaved
	}
	o.calls++
	q := o.queueFor(r)
	if err := q.acquireLocked(ctx, noShedding); err != nil {
		a.mu.Lock()
		o.calls--
		a.mu.Unlock()
		return nil, err
	}
	return q, nil
}

func (a *admission) running() int { return a.trusted.running + a.others.running }

func (a *admission) waitingCalls() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.waiting
}

// startWaiting starts waiting calls while there is capacity. The caller holds mu.
func (a *admission) startWaiting() {
	for q := a.next(); q != nil; q = a.next() {
		q.startNext()
	}
}

// next returns the queue with the next call to start: of the owner with the fewest running calls,
// then of the owner whose last turn is longest ago. It returns nil if no waiting call has capacity.
// The caller holds mu.
func (a *admission) next() *queue {
	var next *queue
	for _, o := range a.waitingOwners {
		q := o.next()
		if q != nil && (next == nil || o.precedes(next.owner)) {
			next = q
		}
	}
	return next
}

// shedExcess refuses the last call of the owner with the most waiting calls, if there are too many.
// It reports whether a call of o may wait; the refused call may be this one. The caller holds mu.
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

// queue has the waiting calls of one owner, either of trusted programs or of others.
type queue struct {
	// fixed at creation
	owner     *owner
	admission *admission
	class     *class

	// guarded by the mutex of the admission
	running  int
	waiting  []queuedCall  // oldest first
	started  int           // calls that have waited and started
	interval time.Duration // time from one start to the next; 0 if unknown
	isFresh  bool          // the interval was measured since the queue was last empty
}

// An interval is known after startsEach starts for each call that may run: the first calls wait for
// processes and compilers. The interval of an earlier queue counts if reuseEach calls wait for each
// call that may run.
const (
	startsEach = 2
	reuseEach  = 4
)

func newQueue(o *owner, c *class) queue { return queue{owner: o, admission: o.admission, class: c} }

// queuedCall is a call that waits for its start.
type queuedCall struct {
	since         time.Time
	startedBefore int           // value of queue.started when the call was queued
	remaining     time.Duration // time until its deadline; 0 for none
	noShedding    bool          // must not be refused
	result        chan error    // receives nil when the call starts, or the refusal
}

// latest returns the time at which a call is refused if it has not started: two thirds of its time.
func (c queuedCall) latest() time.Time { return c.since.Add(c.remaining - c.remaining/3) }

// acquireLocked starts a call, or waits for its turn. The caller must call [queue.release] when the
// call waits or ends. The error is the error of ctx or, unless noShedding is set,
// [scripting.ErrOverloaded]. The caller holds the mutex of the admission; acquireLocked unlocks it.
func (q *queue) acquireLocked(ctx context.Context, noShedding bool) error {
	if len(q.waiting) == 0 && q.hasCapacity() {
		q.start()
		q.admission.mu.Unlock()
		return nil
	}
	c := queuedCall{since: time.Now(), startedBefore: q.started, noShedding: noShedding, result: make(chan error, 1)}
	if until, ok := ctx.Deadline(); ok {
		c.remaining = max(until.Sub(c.since), 1)
	}
	if q.wouldExpire(c) || !noShedding && !q.admission.shedExcess(q.owner) {
		q.admission.mu.Unlock()
		return scripting.ErrOverloaded
	}
	q.isFresh = q.isFresh && len(q.waiting) > 0
	q.waiting = append(q.waiting, c)
	q.countWaiting(c, 1)
	q.admission.mu.Unlock()
	return q.await(ctx, c)
}

// hasCapacity reports whether another call of the queue may run: there is capacity, or its owner
// has less than its share. The caller holds mu.
func (q *queue) hasCapacity() bool {
	a, o := q.admission, q.owner
	if q.class.running < q.class.limit && a.running() < a.maxRunning {
		return true
	}
	return o.running < o.share(a.maxRunning) && q.running < o.share(q.class.limit) &&
		a.running() < 2*a.maxRunning && q.class.running < 2*q.class.limit
}

// start counts a call that starts. The caller holds mu.
func (q *queue) start() {
	q.countRunning(1)
	q.admission.starts++
	q.owner.lastStart = q.admission.starts
}

// countRunning updates the numbers of running calls. The caller holds mu.
func (q *queue) countRunning(by int) {
	q.running += by
	q.class.running += by
	q.owner.count(by, 0)
}

// countWaiting updates the numbers of waiting calls by 1 or -1. The caller holds mu.
func (q *queue) countWaiting(c queuedCall, by int) {
	q.owner.count(0, by)
	if !c.noShedding {
		q.owner.sheddable += by
		q.admission.sheddable += by
	}
}

func (q *queue) await(ctx context.Context, c queuedCall) error {
	var latest <-chan time.Time
	if c.remaining > 0 && !c.noShedding {
		timer := time.NewTimer(c.latest().Sub(c.since))
		defer timer.Stop()
		latest = timer.C
	}
	select {
	case err := <-c.result:
		return err
	case <-latest:
		if q.withdraw(c) {
			return scripting.ErrOverloaded
		}
		return <-c.result
	case <-ctx.Done():
		if !q.withdraw(c) && <-c.result == nil {
			q.release()
		}
		return ctx.Err()
	}
}

// withdraw removes a waiting call, and reports whether it was still waiting.
func (q *queue) withdraw(c queuedCall) bool {
	q.admission.mu.Lock()
	defer q.admission.mu.Unlock()
	i := slices.IndexFunc(q.waiting, func(other queuedCall) bool { return other.result == c.result })
	if i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
		q.countWaiting(c, -1)
	}
	return i >= 0
}

// wouldExpire reports whether a new call would start too late: after a third of its time, judged by
// the age of the queue or its interval. The rest of the time is for the call itself. The caller
// holds mu.
func (q *queue) wouldExpire(c queuedCall) bool {
	queued := len(q.waiting)
	if c.noShedding || queued == 0 {
		return false
	}
	wait := c.since.Sub(q.waiting[0].since)
	if q.isFresh || queued >= reuseEach*q.class.limit {
		wait = max(wait, time.Duration(queued+1)*q.interval)
	}
	return wait > max(q.admission.maxQueueTime, c.remaining/3)
}

// reacquire counts a call that computes again after waiting for its host. It is never refused.
func (q *queue) reacquire() {
	q.admission.mu.Lock()
	defer q.admission.mu.Unlock()
	q.countRunning(1)
}

// release gives up the turn of a call that waits for its host.
func (q *queue) release() {
	q.admission.mu.Lock()
	defer q.admission.mu.Unlock()
	q.releaseLocked()
}

// finish is release for a call that has ended. The call was started by [admission.admit].
func (q *queue) finish() {
	q.admission.mu.Lock()
	defer q.admission.mu.Unlock()
	q.owner.calls--
	q.releaseLocked()
}

// releaseLocked gives up a turn and starts waiting calls. The caller holds mu.
func (q *queue) releaseLocked() {
	q.countRunning(-1)
	q.admission.startWaiting()
}

// startNext starts the first waiting call. It measures the interval by the number of calls that
// started while this one waited. The caller holds mu.
func (q *queue) startNext() {
	c := q.waiting[0]
	q.waiting[0] = queuedCall{}
	q.waiting = q.waiting[1:]
	q.countWaiting(c, -1)
	q.start()
	q.started++
	turns := q.started - c.startedBefore
	switch pace := time.Since(c.since) / time.Duration(turns); {
	case q.isFresh:
		q.interval += (pace - q.interval) / 8
	case turns >= startsEach*q.class.limit:
		q.interval, q.isFresh = pace, true
	}
	c.result <- nil
}

// shed refuses a waiting call. The caller holds mu.
func (q *queue) shed(i int) {
	c := q.waiting[i]
	q.waiting = slices.Delete(q.waiting, i, i+1)
	q.countWaiting(c, -1)
	c.result <- scripting.ErrOverloaded
}
