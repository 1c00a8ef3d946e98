package upstream

import (
	"crypto/rand"
	"errors"
	"time"
)

// parked is a call that waits for the client that made it, at a server that has not ended
// it.
type parked struct {
	call *Call
	by   string
	late *time.Timer
}

// maxParked is how many calls wait at once, and maxParkedBy how many of one caller.
const (
	maxParked   = 1024
	maxParkedBy = 128
)

// parkTime is how long a call waits at most.
const parkTime = 15 * time.Minute

// errUnanswered is why a call ends that has waited for too long, and errCrowded why one ends
// that finds no place to wait.
var (
	errUnanswered = errors.New("the client has not answered in time")
	errCrowded    = errors.New("too many calls wait for their clients")
)

// Park keeps a call until [Fleet.Resume] goes on with it by the handle, which nobody can
// guess. One that nobody goes on with is cancelled. by is text that stands for who made the
// call, and for nobody else: one caller takes the places of no other. Where there is none
// left the call is cancelled, and the handle is "".
func (f *Fleet) Park(c *Call, by string) (handle string) {
	c.attach(nil)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || len(f.parked) >= maxParked || f.parkedBy(by) >= maxParkedBy {
		c.Cancel(errCrowded)
		return ""
	}
	handle = rand.Text()
	f.parked[handle] = parked{c, by, time.AfterFunc(parkTime, func() {
		if late := f.Resume(handle, nil); late != nil {
			late.Cancel(errUnanswered)
		}
	})}
	return handle
}

// parkedBy returns how many calls of a caller wait. Its caller holds mu.
func (f *Fleet) parkedBy(by string) (n int) {
	for _, p := range f.parked {
		if p.by == by {
			n++
		}
	}
	return n
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
	p.call.attach(l)
	return p.call
}
