// Package lazyctx provides contexts for work that usually ends quickly. A [WithTimeout]
// starts its timer, and a [WithCancel] registers with its parent, only when something
// waits for the end of the context.
//
// It is written by hand because a context of the standard library starts its timer
// immediately, which is too expensive for calls that take microseconds.
package lazyctx

import (
	"context"
	"sync"
	"time"
)

// WithTimeout is [context.WithTimeout], but nearly free until something needs the
// timer: Done, Value, or a derived context.
func WithTimeout(parent context.Context, timeout time.Duration) *Context {
	return &Context{parent: parent, at: time.Now().Add(timeout)}
}

// WithCancel is [context.WithCancelCause], but nearly free until something uses Done,
// Value, the cause, or a derived context.
func WithCancel(parent context.Context) *Context { return &Context{parent: parent} }

// Detachable is [WithCancel], but [Context.Detach] can make the context outlive its
// parent. It has the values of the parent, but not its deadline.
func Detachable(parent context.Context) *Context {
	return &Context{parent: parent, detachable: true}
}

// Context is a context that creates a standard context on demand. [Context.Cancel] must
// be called.
type Context struct {
	// fixed at creation
	parent     context.Context
	at         time.Time // zero means only the deadline of the parent
	detachable bool

	mu       sync.Mutex
	over     bool // it was cancelled
	detached bool // it outlives the parent
	cause    error
	real     context.Context // nil until it is needed
	end      context.CancelCauseFunc
	unfollow func() bool // stops following the end of the parent; nil if the standard context follows
}

// Deadline returns the deadline of the context.
func (c *Context) Deadline() (time.Time, bool) {
	if c.detachable {
		return time.Time{}, false
	}
	if at, ok := c.parent.Deadline(); ok && (c.at.IsZero() || at.Before(c.at)) {
		return at, true
	}
	return c.at, !c.at.IsZero()
}

// Done returns a channel that is closed when the context ends.
func (c *Context) Done() <-chan struct{} { return c.become().Done() }

// Value returns a value of the parent. It creates the standard context, because derived
// contexts use Value to find their parent.
func (c *Context) Value(key any) any { return c.become().Value(key) }

// Err returns the reason for the end of the context, or nil before.
func (c *Context) Err() error {
	if c.lasts() {
		return nil
	}
	return c.become().Err()
}

// lasts reports whether the context has certainly not ended.
func (c *Context) lasts() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.real == nil && !c.over && (c.detached || c.parent.Err() == nil) && (c.at.IsZero() || time.Now().Before(c.at))
}

func (c *Context) become() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.real != nil {
		return c.real
	}
	switch {
	case c.detachable:
		c.real, c.end = context.WithCancelCause(context.WithoutCancel(c.parent))
		c.follow()
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

// follow ends a detachable context with its parent. The caller holds mu.
func (c *Context) follow() {
	switch {
	case c.over || c.detached:
	case c.parent.Err() != nil:
		c.end(context.Cause(c.parent))
	default:
		end := c.end
		c.unfollow = context.AfterFunc(c.parent, func() { end(context.Cause(c.parent)) })
	}
}

// Detach makes a detachable context outlive its parent, unless the context has ended
// already. From then on only [Context.Cancel] ends it.
func (c *Context) Detach() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.detached = true
	if c.unfollow != nil {
		c.unfollow()
	}
}

// Cancel ends the context, unless it has ended. The cause of a context that timed out
// is its error.
func (c *Context) Cancel(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return
	}
	c.over, c.cause = true, cause
	if c.unfollow != nil {
		c.unfollow()
	}
	if c.end != nil {
		c.end(cause)
	}
}
