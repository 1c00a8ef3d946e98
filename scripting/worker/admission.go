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
// finds no room waits for its turn; one that would wait for too long, by the pace
// at which turns come, is refused at once: it would come late, and make others
// late.
type admission struct {
	// fixed at creation
	most     int
	patience time.Duration

	mu        sync.Mutex
	computing int
	waiting   []turn      // the one that has waited longest first
	ends      []time.Time // of the last calls, as long as others have waited; four times most at most
}

// unpaced is how many calls may wait, for each that may compute, before the pace
// is known: most are over soon.
const unpaced = 8

// turn is a call that waits to begin.
type turn struct {
	since time.Time
	come  chan struct{} // closed when it has begun
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
	now := time.Now()
	if !patient && a.late(now) {
		a.mu.Unlock()
		return scripting.ErrOverloaded
	}
	t := turn{now, make(chan struct{})}
	a.waiting = append(a.waiting, t)
	a.mu.Unlock()
	select {
	case <-t.come:
		return nil
	case <-ctx.Done():
		a.give(t)
		return ctx.Err()
	}
}

// late reports whether the turn of a call that comes now would come too late. The
// caller holds mu.
func (a *admission) late(now time.Time) bool {
	n := len(a.waiting)
	switch {
	case n == 0:
		return false
	case now.Sub(a.waiting[0].since) > a.patience:
		return true
	case len(a.ends) < 2*a.most: // what began at once may end at once
		return n >= unpaced*a.most
	}
	pace := now.Sub(a.ends[0]) / time.Duration(len(a.ends))
	return time.Duration(n+1)*pace > a.patience
}

// give gives a turn up that is not wanted any more.
func (a *admission) give(t turn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range a.waiting {
		if a.waiting[i].come == t.come {
			a.waiting = append(a.waiting[:i], a.waiting[i+1:]...)
			return
		}
	}
	a.left() // it had come in the meantime
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
	a.ends = append(a.ends, time.Now())
	for len(a.waiting) > 0 && a.computing < a.most {
		close(a.waiting[0].come)
		a.waiting = a.waiting[1:]
		a.computing++
	}
}
