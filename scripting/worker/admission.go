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
// finds no room waits for its turn; one that would begin too late, by the pace at
// which turns come, is refused at once: it would end in vain, and make others late.
type admission struct {
	// fixed at creation
	most     int
	patience time.Duration // that of calls without a deadline, and the least

	mu      sync.Mutex
	waiting []turn // the one that has waited longest first
	meter   meter  // guarded by mu
	ends    int    // how many calls have ended since others wait
}

// endsEach is of how many ends a pace is made at least, for each call that may
// compute at once.
const endsEach = 2

// newAdmission returns the admission of so many calls at once.
func newAdmission(most, processors int, patience time.Duration) *admission {
	return &admission{most: most, patience: patience, meter: meter{processors: processors, window: 4 * most, at: time.Now()}}
}

// turn is a call that waits to begin.
type turn struct {
	since   time.Time
	until   time.Time  // its deadline; zero for none
	patient bool       // it is never refused
	come    chan error // is sent nil when it has begun, or that it is refused
}

// enter begins a call. [admission.leave] must be called when it waits or ends,
// unless there is an error: that of ctx, or [scripting.ErrOverloaded], which who
// is patient does not get.
func (a *admission) enter(ctx context.Context, patient bool) error {
	a.mu.Lock()
	now := time.Now()
	if len(a.waiting) == 0 && a.meter.computing < a.most {
		a.meter.change(now, 1)
		a.mu.Unlock()
		return nil
	}
	t := turn{since: now, patient: patient, come: make(chan error, 1)}
	t.until, _ = ctx.Deadline()
	if a.late(t) {
		a.mu.Unlock()
		return scripting.ErrOverloaded
	}
	a.waiting = append(a.waiting, t)
	a.mu.Unlock()
	select {
	case err := <-t.come:
		return err
	case <-ctx.Done():
		a.give(t)
		return ctx.Err()
	}
}

// late reports whether a call that comes now would begin too late: after a third of
// its time. The rest is for the call, and for a pace that changes. The caller holds mu.
func (a *admission) late(t turn) bool {
	if len(a.waiting) == 0 || t.patient {
		return false
	}
	wait := max(t.since.Sub(a.waiting[0].since), time.Duration(len(a.waiting)+1)*a.pace(t.since))
	return wait > max(a.patience, t.until.Sub(t.since)/3)
}

// pace returns the time from one turn to the next: that since calls wait, or that
// of the calls before, when so many wait that they would be late by it. It is 0
// before it is known: what began at once may end at once, and the first calls wait
// for processes and compilers. The caller holds mu.
func (a *admission) pace(now time.Time) time.Duration {
	switch {
	case a.known():
		return a.meter.cost(now, a.ends)
	case len(a.waiting) >= 4*a.most && a.meter.measured() >= endsEach*a.most:
		return a.meter.cost(now, 4*a.most)
	}
	return 0
}

// known reports whether the pace is that of the queue. The caller holds mu.
func (a *admission) known() bool { return a.ends >= endsEach*a.most }

// give gives a turn up that is not wanted any more.
func (a *admission) give(t turn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range a.waiting {
		if a.waiting[i].come == t.come {
			a.waiting = slices.Delete(a.waiting, i, i+1)
			return
		}
	}
	if err := <-t.come; err == nil {
		a.left() // it had come in the meantime
	}
}

// resume has a call compute that goes on: it is not refused any more.
func (a *admission) resume() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.meter.change(time.Now(), 1)
}

// leave has a call wait for its host, or end.
func (a *admission) leave() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.left()
}

// left is leave for who holds mu.
func (a *admission) left() {
	now := time.Now()
	a.meter.change(now, -1)
	a.meter.ended()
	if len(a.waiting) == 0 {
		a.ends = 0
		return
	}
	a.ends++
	begin := min(len(a.waiting), a.most-a.meter.computing)
	for range begin {
		a.waiting[0].come <- nil
		a.waiting = a.waiting[1:]
	}
	a.meter.change(now, max(begin, 0))
	a.shed(now)
}

// shed refuses the last that wait, as long as their turn would come when two thirds of
// their time are over: they have come before the pace was known, or it has changed.
// The caller holds mu.
func (a *admission) shed(now time.Time) {
	if !a.known() {
		return
	}
	pace := a.pace(now)
	for n := len(a.waiting); n > 0; n-- {
		last := a.waiting[n-1]
		if last.patient || last.until.IsZero() || now.Add(time.Duration(n)*pace).Before(last.until.Add(last.since.Sub(last.until)/3)) {
			return
		}
		last.come <- scripting.ErrOverloaded
		a.waiting = a.waiting[:n-1]
	}
}
