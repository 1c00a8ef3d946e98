package deadline

import (
	"context"
	"sync"
	"time"
)

// WithTimeout is [context.WithTimeout], but that it costs next to nothing as
// long as nobody asks for what needs a timer: Done, Value, or a context made of
// this one.
func WithTimeout(parent context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	b := &bounded{parent: parent, at: time.Now().Add(timeout)}
	return b, func() { b.cancel(nil) }
}

// WithCancel is [context.WithCancelCause], but that it costs next to nothing as
// long as nobody asks for its Done, its Value, its cause, or a context made of
// it.
func WithCancel(parent context.Context) (context.Context, context.CancelCauseFunc) {
	b := &bounded{parent: parent}
	return b, b.cancel
}

// bounded is a context that becomes one of the standard library when it must.
type bounded struct {
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
func (b *bounded) Deadline() (time.Time, bool) {
	if at, ok := b.parent.Deadline(); ok && (b.at.IsZero() || at.Before(b.at)) {
		return at, true
	}
	return b.at, !b.at.IsZero()
}

// Done returns a channel that is closed when the context ends.
func (b *bounded) Done() <-chan struct{} { return b.become().Done() }

// Value returns a value of the parent. It makes the context real, as contexts
// that are made of this one look for their parent by it.
func (b *bounded) Value(key any) any { return b.become().Value(key) }

// Err returns why the context has ended, and nil before.
func (b *bounded) Err() error {
	if b.lasts() {
		return nil
	}
	return b.become().Err()
}

// lasts reports whether the context surely has not ended.
func (b *bounded) lasts() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.real == nil && !b.over && b.parent.Err() == nil && (b.at.IsZero() || time.Now().Before(b.at))
}

func (b *bounded) become() context.Context {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.real != nil {
		return b.real
	}
	switch {
	case b.over || b.at.IsZero():
		b.real, b.end = context.WithCancelCause(b.parent)
	default:
		var end context.CancelFunc
		b.real, end = context.WithDeadline(b.parent, b.at)
		b.end = func(error) { end() }
	}
	if b.over {
		b.end(b.cause)
	}
	return b.real
}

func (b *bounded) cancel(cause error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over {
		return
	}
	b.over, b.cause = true, cause
	if b.end != nil {
		b.end(cause)
	}
}
