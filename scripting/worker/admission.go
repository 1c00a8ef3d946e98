package worker

import (
	"context"
	"sync"
	"time"

	"github.com/mcpd/mcpd/scripting"
)

// admission lets calls begin as long as not too many compute. Those that wait
// for their host do not count: what is scarce are the processors. A call that
// finds no room waits for its turn; once the one that has waited longest has done
// so for too long, those that come are refused at once, since they would only
// make all others late.
type admission struct {
	// fixed at creation
	most     int
	patience time.Duration

	mu        sync.Mutex
	computing int
	waiting   []turn // the one that has waited longest first
}

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
	if !patient && len(a.waiting) > 0 && now.Sub(a.waiting[0].since) > a.patience {
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
	for len(a.waiting) > 0 && a.computing < a.most {
		close(a.waiting[0].come)
		a.waiting = a.waiting[1:]
		a.computing++
	}
}
