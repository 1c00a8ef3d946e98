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

// admit begins a call once there is room for it to compute (see [lane.enterLocked]), and returns
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

func (a *admission) computing() int { return a.proven.computing + a.others.computing }

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

// lane queues the calls of one owner that wait to compute: either those of proven programs
// or the others.
type lane struct {
	// fixed at creation
	owner *owner
	room  *admission
	class *class

	// guarded by the mutex of the room
	computing int
	waiting   []turn        // the oldest first
	begun     int           // calls that have waited and begun
	pace      time.Duration // the time from one turn to the next; 0 if unknown
	isFresh   bool          // the pace was measured since the queue was last empty
}

// A pace is known after turnsEach turns for each call that may compute at once: the first
// wait for processes and compilers. That of an earlier queue counts once crowdEach calls wait
// for each of those.
const (
	turnsEach = 2
	crowdEach = 4
)

func newLane(o *owner, c *class) lane { return lane{owner: o, room: o.room, class: c} }

// turn is a call that waits to begin.
type turn struct {
	since   time.Time
	before  int           // how many of the lane had waited and begun by then
	has     time.Duration // from then on to its deadline; 0 for none
	patient bool          // it is never refused
	come    chan error    // is sent nil when it has begun, or that it is refused
}

// latest returns when a call that may be refused begins at the latest: when two thirds of
// its time are over.
func (t turn) latest() time.Time { return t.since.Add(t.has - t.has/3) }

// enterLocked begins a call. [lane.leave] must be called when it waits or ends,
// unless there is an error: that of ctx, or [scripting.ErrOverloaded], which who
// is patient does not get. The caller holds the mutex of the room, which enterLocked unlocks.
func (l *lane) enterLocked(ctx context.Context, patient bool) error {
	if len(l.waiting) == 0 && l.hasRoom() {
		l.grant()
		l.room.mu.Unlock()
		return nil
	}
	t := turn{since: time.Now(), before: l.begun, patient: patient, come: make(chan error, 1)}
	if until, ok := ctx.Deadline(); ok {
		t.has = max(until.Sub(t.since), 1)
	}
	if l.late(t) || !patient && !l.room.makeRoom(l.owner) {
		l.room.mu.Unlock()
		return scripting.ErrOverloaded
	}
	l.isFresh = l.isFresh && len(l.waiting) > 0
	l.waiting = append(l.waiting, t)
	l.line(t, 1)
	l.room.mu.Unlock()
	return l.await(ctx, t)
}

// hasRoom reports whether another call of the lane may compute: there is room for it, or
// its owner has less than its share of that. The caller holds mu.
func (l *lane) hasRoom() bool {
	a, o := l.room, l.owner
	if l.class.computing < l.class.most && a.computing() < a.most {
		return true
	}
	return o.computing < o.share(a.most) && l.computing < o.share(l.class.most) &&
		a.computing() < 2*a.most && l.class.computing < 2*l.class.most
}

// grant has a call compute that begins. The caller holds mu.
func (l *lane) grant() {
	l.compute(1)
	l.room.grants++
	l.owner.granted = l.room.grants
}

// compute notes that so many calls more compute. The caller holds mu.
func (l *lane) compute(by int) {
	l.computing += by
	l.class.computing += by
	l.owner.change(by, 0)
}

// line notes that a call waits, by 1, or does no more, by -1. The caller holds mu.
func (l *lane) line(t turn, by int) {
	l.owner.change(0, by)
	if !t.patient {
		l.owner.refusable += by
		l.room.refusable += by
	}
}

func (l *lane) await(ctx context.Context, t turn) error {
	var latest <-chan time.Time
	if t.has > 0 && !t.patient {
		timer := time.NewTimer(t.latest().Sub(t.since))
		defer timer.Stop()
		latest = timer.C
	}
	select {
	case err := <-t.come:
		return err
	case <-latest:
		if l.give(t) {
			return scripting.ErrOverloaded
		}
		return <-t.come
	case <-ctx.Done():
		if !l.give(t) && <-t.come == nil {
			l.leave()
		}
		return ctx.Err()
	}
}

// give gives a turn up that is not wanted any more, and reports whether it had not
// come in the meantime.
func (l *lane) give(t turn) bool {
	l.room.mu.Lock()
	defer l.room.mu.Unlock()
	i := slices.IndexFunc(l.waiting, func(other turn) bool { return other.come == t.come })
	if i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
		l.line(t, -1)
	}
	return i >= 0
}

// late reports whether a call that comes now is refused because it would begin too late:
// after a third of its time, by the age of the queue or by its pace. The rest of its time
// is for the call itself. The caller holds mu.
func (l *lane) late(t turn) bool {
	queued := len(l.waiting)
	if t.patient || queued == 0 {
		return false
	}
	wait := t.since.Sub(l.waiting[0].since)
	if l.isFresh || queued >= crowdEach*l.class.most {
		wait = max(wait, time.Duration(queued+1)*l.pace)
	}
	return wait > max(l.room.patience, t.has/3)
}

// resume has a call compute that goes on: it is not refused any more.
func (l *lane) resume() {
	l.room.mu.Lock()
	defer l.room.mu.Unlock()
	l.compute(1)
}

// leave has a call wait for its host.
func (l *lane) leave() {
	l.room.mu.Lock()
	defer l.room.mu.Unlock()
	l.leaveLocked()
}

// end is leave for a call that has ended, which has begun by [admission.admit].
func (l *lane) end() {
	l.room.mu.Lock()
	defer l.room.mu.Unlock()
	l.owner.calls--
	l.leaveLocked()
}

// leaveLocked gives the turn of a call to those that wait. The caller holds mu.
func (l *lane) leaveLocked() {
	l.compute(-1)
	l.room.fill()
}

// begin begins the first call that waits, and measures the pace by how many have begun
// while it waited. The caller holds mu.
func (l *lane) begin() {
	t := l.waiting[0]
	l.waiting[0] = turn{}
	l.waiting = l.waiting[1:]
	l.line(t, -1)
	l.grant()
	l.begun++
	turns := l.begun - t.before
	switch pace := time.Since(t.since) / time.Duration(turns); {
	case l.isFresh:
		l.pace += (pace - l.pace) / 8
	case turns >= turnsEach*l.class.most:
		l.pace, l.isFresh = pace, true
	}
	t.come <- nil
}

// refuse refuses a call that waits. The caller holds mu.
func (l *lane) refuse(i int) {
	t := l.waiting[i]
	l.waiting = slices.Delete(l.waiting, i, i+1)
	l.line(t, -1)
	t.come <- scripting.ErrOverloaded
}
