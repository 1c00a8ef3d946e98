package lazyctx_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/mcpd/mcpd/internal/base/lazyctx"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type key struct{}

// ends are ways to end a context with a timeout of a second.
var ends = map[string]struct {
	want, cause error
	end         func(parent context.CancelCauseFunc, own context.CancelFunc)
}{
	"its time":         {context.DeadlineExceeded, context.DeadlineExceeded, func(context.CancelCauseFunc, context.CancelFunc) { time.Sleep(time.Second) }},
	"its cancellation": {context.Canceled, context.Canceled, func(_ context.CancelCauseFunc, own context.CancelFunc) { own() }},
	"its cancellation, seen late": {context.Canceled, context.Canceled, func(_ context.CancelCauseFunc, own context.CancelFunc) {
		own()
		time.Sleep(time.Second)
	}},
	"its parent": {context.Canceled, errParent, func(parent context.CancelCauseFunc, _ context.CancelFunc) { parent(errParent) }},
}

var errParent = errors.New("the parent ended")

// Ends unused contexts, and used ones, in all ways.
func TestContext_deadline(t *testing.T) {
	asked := map[string]func(context.Context){
		"nothing":     func(context.Context) {},
		"its end":     func(ctx context.Context) { ctx.Done() },
		"a value":     func(ctx context.Context) { ctx.Value(key{}) },
		"its outcome": func(ctx context.Context) { _ = ctx.Err() },
	}
	for how, test := range ends {
		for what, ask := range asked {
			t.Run(how+" after "+what, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					parent, cancelParent := context.WithCancelCause(context.WithValue(t.Context(), key{}, "value"))
					defer cancelParent(nil)
					ctx := lazyctx.WithTimeout(parent, time.Second)
					defer ctx.Cancel(nil)
					if ask(ctx); ctx.Err() != nil {
						t.Errorf("ended early with %v", ctx.Err())
					}
					test.end(cancelParent, func() { ctx.Cancel(nil) })
					synctest.Wait()
					if err, cause := ctx.Err(), context.Cause(ctx); !errors.Is(err, test.want) || !errors.Is(cause, test.cause) {
						t.Errorf("ended with %v, cause %v, want %v, cause %v", err, cause, test.want, test.cause)
					}
					<-ctx.Done()
					if ctx.Value(key{}) != "value" {
						t.Error("no value of the parent")
					}
				})
			})
		}
	}
}

// Cancels with and without a waiter.
func TestContext_cancel(t *testing.T) {
	for _, waited := range []bool{false, true} {
		parent, cancelParent := context.WithTimeout(t.Context(), time.Hour)
		defer cancelParent()
		ctx := lazyctx.WithCancel(parent)
		if at, ok := ctx.Deadline(); !ok || time.Until(at) > time.Hour {
			t.Errorf("no deadline of the parent: %v", at)
		}
		if waited {
			ctx.Done()
		}
		if ctx.Err() != nil {
			t.Errorf("ended with %v", ctx.Err())
		}
		ctx.Cancel(errParent)
		ctx.Cancel(nil)
		<-ctx.Done()
		if err, cause := ctx.Err(), context.Cause(ctx); !errors.Is(err, context.Canceled) || !errors.Is(cause, errParent) {
			t.Errorf("ended with %v, cause %v", err, cause)
		}
	}
}

func TestContext_children(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := lazyctx.WithTimeout(t.Context(), time.Second)
		defer ctx.Cancel(nil)
		child, stop := context.WithCancel(ctx)
		defer stop()
		began := time.Now()
		<-child.Done()
		if took := time.Since(began); took != time.Second || !errors.Is(child.Err(), context.DeadlineExceeded) {
			t.Errorf("ended after %s with %v", took, child.Err())
		}
	})
}

func TestContext_earlierDeadline(t *testing.T) {
	for _, mine := range []time.Duration{time.Minute, time.Hour} {
		parent, cancelParent := context.WithTimeout(t.Context(), 30*time.Minute)
		defer cancelParent()
		ctx := lazyctx.WithTimeout(parent, mine)
		defer ctx.Cancel(nil)
		at, ok := ctx.Deadline()
		if left := time.Until(at); !ok || left > min(mine, 30*time.Minute) {
			t.Errorf("%s remain of %s", left, mine)
		}
	}
}

func TestContext_allocations(t *testing.T) {
	if got := testing.AllocsPerRun(100, func() {
		ctx := lazyctx.WithTimeout(t.Context(), time.Second)
		_ = ctx.Err()
		ctx.Cancel(nil)
	}); got > 1 {
		t.Errorf("%v allocations", got)
	}
}

// The parent ends before or after Detach, with and without a waiter.
func TestDetachable(t *testing.T) {
	for _, waited := range []bool{false, true} {
		for _, detached := range []bool{false, true} {
			t.Run(fmt.Sprintf("waited=%t,detached=%t", waited, detached), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					parent, cancelParent := context.WithCancelCause(context.WithValue(t.Context(), key{}, "value"))
					ctx := lazyctx.Detachable(parent)
					defer ctx.Cancel(nil)
					if waited {
						ctx.Done()
					}
					if detached {
						ctx.Detach()
					}
					cancelParent(errParent)
					synctest.Wait()
					want := errParent
					if detached {
						if ctx.Err() != nil {
							t.Fatalf("the parent ended it: %v", ctx.Err())
						}
						want = errors.New("its own end")
						ctx.Cancel(want)
					}
					<-ctx.Done()
					if err, cause := ctx.Err(), context.Cause(ctx); !errors.Is(err, context.Canceled) || !errors.Is(cause, want) {
						t.Errorf("ended with %v, cause %v, want cause %v", err, cause, want)
					}
					if ctx.Value(key{}) != "value" {
						t.Error("no value of the parent")
					}
				})
			})
		}
	}
}

// A parent that ends after the context must not keep a goroutine or its function.
func TestDetachable_cancelFirst(t *testing.T) {
	parent, cancelParent := context.WithCancel(t.Context())
	ctx := lazyctx.Detachable(parent)
	ctx.Done()
	ctx.Cancel(errParent)
	cancelParent()
	if cause := context.Cause(ctx); !errors.Is(cause, errParent) {
		t.Errorf("cause %v", cause)
	}
}
