package upstream

import (
	"crypto/rand"
	"errors"
	"time"
)

// parked are calls that wait for the clients that made them, at servers that have not
// ended them.
type parked struct {
	call *Call
	late *time.Timer
}

// maxParked is how many calls wait at once.
const maxParked = 1024

// parkTime is how long a call waits at most.
const parkTime = 15 * time.Minute

// errUnanswered is why a call ends that has waited for too long.
var errUnanswered = errors.New("the client has not answered in time")

// Park keeps a call until [Fleet.Resume] goes on with it by the handle, which nobody can
// guess. One that nobody goes on with is cancelled.
func (f *Fleet) Park(c *Call) (handle string) {
	c.Attach(nil)
	handle = rand.Text()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || len(f.parked) >= maxParked {
		c.Cancel(errUnanswered)
		return handle
	}
	f.parked[handle] = parked{c, time.AfterFunc(parkTime, func() {
		if late := f.Resume(handle, nil); late != nil {
			late.Cancel(errUnanswered)
		}
	})}
	return handle
}

// Resume returns the call of a handle, once, and has l hear of it from now on. It is nil
// where none waits.
func (f *Fleet) Resume(handle string, l Listener) *Call {
	f.mu.Lock()
	p, waits := f.parked[handle]
	delete(f.parked, handle)
	f.mu.Unlock()
	if !waits {
		return nil
	}
	p.late.Stop()
	p.call.Attach(l)
	return p.call
}
