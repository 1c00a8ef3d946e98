// Package gofunc runs Go functions as tools. A failure affects only its own call: a panic is
// recovered, and a function that ignores its deadline is detached.
package gofunc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"sync"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/watchdog"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/scripting"
)

// Func is the function of a tool. agent identifies the caller.
type Func[Agent, In, Out any] func(ctx context.Context, agent Agent, in In) (Out, error)

// RunDetached runs the function in its own goroutine until it returns or ctx ends. The outcome has
// the form of a script outcome. An error is the error of ctx: the function then continues in the
// background.
func (fn Func[Agent, In, Out]) RunDetached(ctx context.Context, agent Agent, in In) (scripting.Outcome, error) {
	r := &run[Agent, In, Out]{fn: fn, agent: agent, in: in}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.run(ctx)
	}()
	// Most functions end at once. Yielding to them avoids the wait for ctx, which may start a
	// timer.
	runtime.Gosched()
	select {
	case <-ended:
		return r.outcome, nil
	default:
	}
	select {
	case <-ended:
		return r.outcome, nil
	case <-ctx.Done():
		return scripting.Outcome{}, ctx.Err()
	}
}

// Run is like [Func.RunDetached], but runs the function in the calling goroutine. If ctx ends
// before the function, the watchdog calls late, and Run returns [catalog.ErrDetached] once the
// function returns. If the function ends its goroutine, late is called as well.
func (fn Func[Agent, In, Out]) Run(ctx context.Context, w *Watchdog, late catalog.DetachNotifier, agent Agent, in In) (scripting.Outcome, error) {
	r := &run[Agent, In, Out]{fn: fn, agent: agent, in: in, occupancy: occupancy{ctx: ctx, late: late}}
	w.begin(&r.occupancy)
	returned := false
	defer func() {
		if !returned && w.end(&r.occupancy) {
			late.CallEnded(ctx, catalog.ErrGoexit)
		}
	}()
	r.run(ctx)
	returned = true
	if !w.end(&r.occupancy) {
		return scripting.Outcome{}, catalog.ErrDetached
	}
	if err := ctx.Err(); err != nil {
		return scripting.Outcome{}, err
	}
	return r.outcome, nil
}

type run[Agent, In, Out any] struct {
	fn        Func[Agent, In, Out]
	agent     Agent
	in        In
	occupancy occupancy // of a function in the calling goroutine

	outcome scripting.Outcome
	result  scripting.Result
}

func (r *run[Agent, In, Out]) run(ctx context.Context) {
	returned := false
	defer func() {
		if cause := recover(); cause != nil {
			r.fail(scripting.HostPanic, fmt.Errorf("panic: %v", cause))
		} else if !returned {
			r.fail(scripting.HostPanic, catalog.ErrGoexit)
		}
	}()
	out, err := r.fn(ctx, r.agent, r.in)
	returned = true
	switch {
	case err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		r.fail(scripting.Timeout, err)
		return
	case err != nil && ctx.Err() != nil:
		r.fail(scripting.Canceled, err)
		return
	case err != nil:
		r.fail(scripting.Thrown, err)
		return
	}
	if r.result.JSON, err = json.Marshal(out); err != nil {
		r.fail(scripting.HostPanic, fmt.Errorf("encode result: %w", err))
		return
	}
	r.result.Kind = scripting.Value
	if isText[Out]() {
		r.result.Kind = scripting.Text
	}
	r.outcome.Result = &r.result
}

// isText reports whether a result is text without a schema.
func isText[Out any]() bool { return reflect.TypeFor[Out]() == reflect.TypeFor[call.Text]() }

func (r *run[Agent, In, Out]) fail(kind scripting.FailureKind, err error) {
	r.outcome = scripting.Outcome{Failure: &scripting.Failure{Kind: kind, Message: err.Error()}}
}

type callerKey struct{}

// callContext is the context of a function, with its caller. It is a separate type, as a context of
// the standard library would make the lazy context of the call start a timer.
type callContext struct {
	context.Context
	caller identity.Caller
}

// Value returns the caller, or a value of the parent context.
func (c *callContext) Value(key any) any {
	if key == (callerKey{}) {
		return &c.caller
	}
	return c.Context.Value(key)
}

// CallerFromContext returns a copy of the caller of the function with this context. Without a
// caller it is anonymous, and ok is false.
func CallerFromContext(ctx context.Context) (caller identity.Caller, ok bool) {
	if c, found := ctx.Value(callerKey{}).(*identity.Caller); found {
		return c.Explicit().Clone(), true
	}
	return identity.Caller{}.Explicit(), false
}

// Handler is the handler of a Go tool.
type Handler[In, Out any] struct {
	fn       Func[identity.Agent, In, Out]
	decoder  Decoder[In]
	watchdog *Watchdog
}

// NewHandler returns a handler that runs fn. The watchdog monitors runs in the calling goroutine.
func NewHandler[In, Out any](fn Func[identity.Agent, In, Out], w *Watchdog) Handler[In, Out] {
	return Handler[In, Out]{fn, NewDecoder[In](), w}
}

// Run decodes the arguments and runs the function.
func (h Handler[In, Out]) Run(ctx context.Context, i catalog.Invocation) (scripting.Outcome, error) {
	in, err := h.decoder.Decode(i.Args, i.Input)
	if err != nil {
		return scripting.Outcome{}, err
	}
	ctx = &callContext{ctx, i.Caller}
	if i.DetachNotifier == nil {
		return h.fn.RunDetached(ctx, i.Caller.Agent.Clone(), in)
	}
	return h.fn.Run(ctx, h.watchdog, i.DetachNotifier, i.Caller.Agent.Clone(), in)
}

// Watchdog monitors functions that run in the goroutine of their call. Starting another goroutine
// per call would wake a thread, which costs more than most functions. Only a function that runs for
// two ticks gets a goroutine, which waits for its end. So a function that ignores its ctx is
// detached at most two ticks late. The zero Watchdog is ready to use.
type Watchdog struct{ watchdog watchdog.Watchdog }

// occupancy is the time during which a function blocks the goroutine of its call.
type occupancy struct {
	// Fixed at creation.
	ctx  context.Context
	late catalog.DetachNotifier

	mu     sync.Mutex
	state  state
	waiter *waiter // nil while nothing waits
}

type state uint8

const (
	stateRunning  state = iota
	stateObserved       // the function was running at a tick
	stateDone           // the function has returned
	stateDetached       // the context ended first
)

// waiter waits for the end of an occupancy.
type waiter struct {
	done     chan struct{} // closed after the function has returned
	notified chan struct{} // closed after late has been called
}

func (w *Watchdog) begin(o *occupancy) { w.watchdog.Watch(o) }

// end ends an occupancy. It reports whether the result counts: it does not if late was called. It
// waits until late has returned.
func (w *Watchdog) end(o *occupancy) bool {
	w.watchdog.Unwatch(o)
	o.mu.Lock()
	waiter, late := o.waiter, o.state == stateDetached
	if !late {
		o.state = stateDone
	}
	o.mu.Unlock()
	switch {
	case late:
		<-waiter.notified
	case waiter != nil:
		close(waiter.done)
	}
	return !late
}

// Look starts a waiter for a function that was running at the previous tick, too. The watchdog then
// stops monitoring it, as it may run forever.
func (o *occupancy) Look() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.state == stateRunning {
		o.state = stateObserved
		return true
	}
	o.waiter = &waiter{make(chan struct{}), make(chan struct{})}
	go o.await(o.waiter)
	return false
}

func (o *occupancy) await(waiter *waiter) {
	select {
	case <-waiter.done:
	case <-o.ctx.Done():
		if o.detach() {
			defer close(waiter.notified)
			o.late.CallEnded(o.ctx, o.ctx.Err())
		}
	}
}

// detach reports whether the context ended before the function.
func (o *occupancy) detach() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.state == stateDone {
		return false
	}
	o.state = stateDetached
	return true
}
