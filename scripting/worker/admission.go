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

	mu        sync.Mutex
	computing int
	waiting   []turn      // the one that has waited longest first
	ends      []time.Time // of the last calls, as long as others have waited; four times most at most
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
	if len(a.waiting) == 0 && a.computing < a.most {
		a.computing++
		a.mu.Unlock()
		return nil
	}
	t := turn{since: time.Now(), patient: patient, come: make(chan error, 1)}
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

// late reports whether a call that comes now would begin too late: after half of
// its time. The caller holds mu.
func (a *admission) late(t turn) bool {
	if len(a.waiting) == 0 || t.patient {
		return false
	}
	wait := max(t.since.Sub(a.waiting[0].since), time.Duration(len(a.waiting)+1)*a.pace(t.since))
	return wait > max(a.patience, t.until.Sub(t.since)/2)
}

// pace returns the time from one turn to the next, 0 before it is known: what
// began at once may end at once. The caller holds mu.
func (a *admission) pace(now time.Time) time.Duration {
	if len(a.ends) < 2*a.most {
		return 0
	}
	return now.Sub(a.ends[0]) / time.Duration(len(a.ends))
}

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
	a.computing++
}

// leave has a call wait for its host, or end.
func (a *admission) leave() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.left()
}

// left is leave for who holds mu.
func (a *admission) left() {
	a.computing--
	if len(a.waiting) == 0 {
		a.ends = a.ends[:0]
		return
	}
	if len(a.ends) == 4*a.most {
		a.ends = slices.Delete(a.ends, 0, 1)
	}
	now := time.Now()
	a.ends = append(a.ends, now)
	for len(a.waiting) > 0 && a.computing < a.most {
		a.waiting[0].come <- nil
		a.waiting = slices.Delete(a.waiting, 0, 1)
		a.computing++
	}
	a.shed(now)
}

// shed refuses the last that wait, as long as their turn would come when their
// time is over: they have come before the pace was known. The caller holds mu.
func (a *admission) shed(now time.Time) {
	pace := a.pace(now)
	for n := len(a.waiting); n > 0; n-- {
		last := a.waiting[n-1]
		if last.patient || last.until.IsZero() || now.Add(time.Duration(n)*pace).Before(last.until) {
			return
		}
		last.come <- scripting.ErrOverloaded
		a.waiting = a.waiting[:n-1]
	}
}
