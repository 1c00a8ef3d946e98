// Package lazyctx bounds work that mostly ends at once: a [WithTimeout] has a
// timer, and a [WithCancel] is known to its parent, only when somebody waits for
// the end of the context.
//
// It is written by hand: a context of the standard library starts its timer at once,
// which a call that ends in microseconds would pay for.
package lazyctx

import (
	"context"
	"sync"
	"time"
)

// WithTimeout is [context.WithTimeout], but that it costs next to nothing as
// long as nobody asks for what needs a timer: Done, Value, or a context made of
// this one.
func WithTimeout(parent context.Context, timeout time.Duration) *Context {
	return &Context{parent: parent, at: time.Now().Add(timeout)}
}

// WithCancel is [context.WithCancelCause], but that it costs next to nothing as
// long as nobody asks for its Done, its Value, its cause, or a context made of
// it.
func WithCancel(parent context.Context) *Context { return &Context{parent: parent} }

// Context is a context that becomes one of the standard library when it must.
// [Context.Cancel] must be called in the end.
type Context struct {
	// fixed at creation
	parent context.Context
	at     time.Time // zero: there is no deadline but that of the parent

	mu    sync.Mutex
	over  bool // it was cancelled
	cause error
	real  context.Context // nil while nobody needs it
	end   context.CancelCauseFunc
}

// Deadline returns when the context ends at the latest.
func (c *Context) Deadline() (time.Time, bool) {
	if at, ok := c.parent.Deadline(); ok && (c.at.IsZero() || at.Before(c.at)) {
		return at, true
	}
	return c.at, !c.at.IsZero()
}

// Done returns a channel that is closed when the context ends.
func (c *Context) Done() <-chan struct{} { return c.become().Done() }

// Value returns a value of the parent. It makes the context real, as contexts
// that are made of this one look for their parent by it.
func (c *Context) Value(key any) any { return c.become().Value(key) }

// Err returns why the context has ended, and nil before.
func (c *Context) Err() error {
	if c.lasts() {
		return nil
	}
	return c.become().Err()
}

// lasts reports whether the context surely has not ended.
func (c *Context) lasts() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.real == nil && !c.over && c.parent.Err() == nil && (c.at.IsZero() || time.Now().Before(c.at))
}

func (c *Context) become() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.real != nil {
		return c.real
	}
	switch {
	case c.over || c.at.IsZero():
		c.real, c.end = context.WithCancelCause(c.parent)
	default:
		var end context.CancelFunc
		c.real, end = context.WithDeadline(c.parent, c.at)
		c.end = func(error) { end() }
	}
	if c.over {
		c.end(c.cause)
	}
	return c.real
}

// Cancel ends the context, unless it has ended. The cause of one that has a
// timeout is always its error.
func (c *Context) Cancel(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return
	}
	c.over, c.cause = true, cause
	if c.end != nil {
		c.end(cause)
	}
}
