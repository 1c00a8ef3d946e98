package worker

import (
	"context"
	"slices"
	"time"

	"github.com/mcpd/mcpd/scripting"
)

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

// isPressed reports whether the call is refused when its turn does not come in time.
func (t turn) isPressed() bool { return t.has > 0 && !t.patient }

// latest returns when a call that is pressed begins at the latest: when two thirds of
// its time are over.
func (t turn) latest() time.Time { return t.since.Add(t.has - t.has/3) }

// enter begins a call. [lane.leave] must be called when it waits or ends,
// unless there is an error: that of ctx, or [scripting.ErrOverloaded], which who
// is patient does not get.
func (l *lane) enter(ctx context.Context, patient bool) error {
	l.room.mu.Lock()
	return l.enterLocked(ctx, patient)
}

// enterLocked is enter for a caller that holds the mutex of the room, which it unlocks.
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

// await waits for the turn of a call.
func (l *lane) await(ctx context.Context, t turn) error {
	var latest <-chan time.Time
	if t.isPressed() {
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
