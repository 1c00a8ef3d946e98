package httpguard

import (
	"sync"
	"time"
)

// clock ends bodies that take too long to come. Most are there at once, so that
// it looks at what is left now and then, instead of setting a deadline for each.
type clock struct {
	every time.Duration // fixed at creation

	mu     sync.Mutex
	bodies map[*boundBody]struct{} // that have not come whole
	timer  *time.Timer
	armed  bool
}

// newClock returns a clock for bodies that may take so long. It is late by an
// eighth of that at most, and never by more than a second.
func newClock(most time.Duration) *clock {
	c := &clock{every: min(max(most/8, time.Millisecond), time.Second), bodies: map[*boundBody]struct{}{}}
	c.timer = time.AfterFunc(time.Hour, c.look)
	c.timer.Stop()
	return c
}

func (c *clock) add(b *boundBody) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bodies[b] = struct{}{}
	if !c.armed {
		c.armed = true
		c.timer.Reset(c.every)
	}
}

// remove reports whether the body was still looked at: it had not been removed
// before, nor ended.
func (c *clock) remove(b *boundBody) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.bodies[b]
	delete(c.bodies, b)
	return ok
}

// end ends a body, unless it has come whole or was ended before.
func (c *clock) end(b *boundBody) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.bodies[b]; ok {
		c.cut(b, time.Now())
	}
}

// cut has reading a body fail; mu is held, so that it hits no request but this one.
func (c *clock) cut(b *boundBody, now time.Time) {
	delete(c.bodies, b)
	_ = b.deadlines.SetReadDeadline(now)
}

// look ends the bodies whose time is up. It is the function of timer, which
// rests while there are no bodies.
func (c *clock) look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	for b := range c.bodies {
		if now.After(b.until) || b.hold.stalled(now) >= slowTime {
			c.cut(b, now)
		}
	}
	if c.armed = len(c.bodies) > 0; c.armed {
		c.timer.Reset(c.every)
	}
}
