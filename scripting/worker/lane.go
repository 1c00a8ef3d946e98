package worker

import (
	"context"
	"slices"
	"time"

	"github.com/mcpd/mcpd/scripting"
)

// lane is where the calls of an owner wait for their turn, either those of programs that
// are proven or the others, and what is known of those that have had it.
type lane struct {
	// fixed at creation
	owner *owner
	room  *admission
	class *class
	most  int // of the calls of the class that compute at once

	// guarded by the mutex of the room
	waiting []turn // the one that has waited longest first
	meter   meter
	turns   int // how many have come since others wait
}

// turnsEach is of how many turns a pace is made at least, for each call that may
// compute at once.
const turnsEach = 2

func newLane(o *owner, c *class) lane {
	return lane{owner: o, room: o.room, class: c, most: c.most, meter: meter{processors: o.room.processors, window: 4 * c.most, at: time.Now()}}
}

// turn is a call that waits to begin.
type turn struct {
	since   time.Time
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
	now := time.Now()
	if len(l.waiting) == 0 && l.hasRoom() {
		l.grant(now)
		l.room.mu.Unlock()
		return nil
	}
	t := turn{since: now, patient: patient, come: make(chan error, 1)}
	if until, ok := ctx.Deadline(); ok {
		t.has = max(until.Sub(now), 1)
	}
	if l.late(t) || !patient && !l.room.makeRoom(l.owner) {
		l.room.mu.Unlock()
		return scripting.ErrOverloaded
	}
	l.waiting = append(l.waiting, t)
	l.line(t, 1)
	l.room.mu.Unlock()
	return l.await(ctx, t)
}

// hasRoom reports whether another call of the lane may compute: there is room for it, or
// its owner has less than its share of that. The caller holds mu.
func (l *lane) hasRoom() bool {
	a, o := l.room, l.owner
	if l.class.computing < l.most && a.computing() < a.most {
		return true
	}
	return o.computing < o.share(a.most) && l.meter.computing < o.share(l.most) &&
		a.computing() < 2*a.most && l.class.computing < 2*l.most
}

// grant has a call compute that begins. The caller holds mu.
func (l *lane) grant(now time.Time) {
	l.compute(now, 1)
	l.room.grants++
	l.owner.granted = l.room.grants
}

// compute notes that so many calls more compute. The caller holds mu.
func (l *lane) compute(now time.Time, by int) {
	l.meter.change(now, by)
	l.class.computing += by
	l.room.at = now
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

// late reports whether a call that comes now would begin too late: after a third of
// its time. The rest is for the call, and for a pace that changes. The caller holds mu.
func (l *lane) late(t turn) bool {
	if t.patient {
		return false
	}
	wait := l.still(t.since)
	if len(l.waiting) > 0 {
		wait = max(wait, t.since.Sub(l.waiting[0].since), time.Duration(len(l.waiting)+1)*l.pace(t.since))
	}
	return wait > max(l.room.patience, t.has/3)
}

// pace returns the time from one turn to the next: that since calls wait, or that
// of the calls before, when so many wait that they would be late by it. It is 0
// before it is known: what began at once may end at once, and the first calls wait
// for processes and compilers. The caller holds mu.
func (l *lane) pace(now time.Time) time.Duration {
	switch {
	case l.known():
		return l.meter.cost(now, l.turns)
	case len(l.waiting) >= 4*l.most && l.meter.measured() >= turnsEach*l.most:
		return l.meter.cost(now, 4*l.most)
	}
	return 0
}

// known reports whether the pace is that of the queue. The caller holds mu.
func (l *lane) known() bool { return l.turns >= turnsEach*l.most }

// resume has a call compute that goes on: it is not refused any more.
func (l *lane) resume() {
	l.room.mu.Lock()
	defer l.room.mu.Unlock()
	l.compute(time.Now(), 1)
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

// leaveLocked takes a call out of those that compute. While others wait, their turns are
// counted in its place: none comes of it where more compute than may, as some
// went on that had waited. The caller holds mu.
func (l *lane) leaveLocked() {
	now := time.Now()
	l.compute(now, -1)
	if len(l.waiting) == 0 {
		l.meter.ended()
		l.turns = 0
	}
	l.room.fill(now)
	l.owner.proven.shed(now)
	l.owner.others.shed(now)
}

// begin begins the first call that waits. The caller holds mu.
func (l *lane) begin(now time.Time) {
	t := l.waiting[0]
	l.waiting[0] = turn{}
	l.waiting = l.waiting[1:]
	l.line(t, -1)
	l.grant(now)
	l.meter.ended()
	l.turns++
	t.come <- nil
}

// refuse refuses a call that waits. The caller holds mu.
func (l *lane) refuse(i int) {
	t := l.waiting[i]
	l.waiting = slices.Delete(l.waiting, i, i+1)
	l.line(t, -1)
	t.come <- scripting.ErrOverloaded
}

// shed refuses those that wait and are pressed whose turn would come too late: they
// have come before the pace was known, or it has changed. The caller holds mu.
func (l *lane) shed(now time.Time) {
	if len(l.waiting) == 0 || !l.known() {
		return
	}
	pace := l.pace(now)
	kept := l.waiting[:0]
	for _, t := range l.waiting {
		if t.isPressed() && !now.Add(time.Duration(len(kept)+1)*pace).Before(t.latest()) {
			l.line(t, -1)
			t.come <- scripting.ErrOverloaded
			continue
		}
		kept = append(kept, t)
	}
	clear(l.waiting[len(kept):])
	l.waiting = kept
}
