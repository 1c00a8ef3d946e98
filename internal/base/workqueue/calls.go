package workqueue

import (
	"context"
	"sync"
	"sync/atomic"
)

// Calls counts what is under way, and waits for it when no more shall begin.
// The zero value is ready for use.
type Calls struct {
	running  atomic.Int64
	draining atomic.Bool

	mu   sync.Mutex
	idle chan struct{}
}

// Begin counts one more and returns how many are under way. Every Begin needs
// its End, also while draining.
func (c *Calls) Begin() int64 { return c.running.Add(1) }

// End counts one less.
func (c *Calls) End() {
	if c.running.Add(-1) == 0 && c.draining.Load() {
		c.wake()
	}
}

// Running returns how many are under way.
func (c *Calls) Running() int64 { return c.running.Load() }

// Draining reports whether [Calls.StartDrain] has been called.
func (c *Calls) Draining() bool { return c.draining.Load() }

// StartDrain marks that no more shall begin, and reports whether that is new.
func (c *Calls) StartDrain() bool { return !c.draining.Swap(true) }

// Drain waits until nothing is under way, or until ctx is done; then it
// returns the error of ctx. [Calls.StartDrain] comes first.
func (c *Calls) Drain(ctx context.Context) error {
	for {
		idle := c.waiter()
		if c.running.Load() == 0 {
			return nil
		}
		select {
		case <-idle:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// waiter returns a channel that is closed when the count next reaches zero.
func (c *Calls) waiter() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.idle == nil {
		c.idle = make(chan struct{})
	}
	return c.idle
}

func (c *Calls) wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.idle != nil {
		close(c.idle)
		c.idle = nil
	}
}
