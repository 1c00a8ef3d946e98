// Package gofunc runs the Go function behind a tool so that nothing it does
// costs more than its own call: its panic is recovered, and one that ignores its
// deadline is left behind.
package gofunc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/watchdog"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/scripting"
)

// Func is a function behind a tool. Agent says who calls it.
type Func[Agent, In, Out any] func(ctx context.Context, agent Agent, in In) (Out, error)

// RunApart runs the function in a goroutine of its own until it returns or ctx is
// done, and tells what came of it in the terms of a script. An error of the
// second kind is that of ctx: the function then runs on, and nobody waits for it.
func (fn Func[Agent, In, Out]) RunDetached(ctx context.Context, agent Agent, in In) (scripting.Outcome, error) {
	r := &run[Agent, In, Out]{fn: fn, agent: agent, in: in}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.run(ctx)
	}()
	// Most functions end at once: who gives way to them need not wait for ctx,
	// which may take a timer.
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

// Run is like [Func.RunApart], but runs the function in the goroutine of the
// caller, which it holds until it returns. The watchdog tells late when ctx ends
// before that: then the error is [catalog.ErrLeft], and the call is nobody's concern any
// more. A function that ends its goroutine has late told of that, there.
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
	occupancy occupancy // of a function that holds the goroutine of its call

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
	r.outcome.Result = &r.result
}

func (r *run[Agent, In, Out]) fail(kind scripting.FailureKind, err error) {
	r.outcome = scripting.Outcome{Failure: &scripting.Failure{Kind: kind, Message: err.Error()}}
}

type callerKey struct{}

// called is the context of a function, which knows who calls it. It is one of its own as
// contexts of the standard library would make that of the call start a timer.
type callContext struct {
	context.Context
	caller identity.Caller
}

// Value returns the caller, or a value of the context of the call.
func (c *callContext) Value(key any) any {
	if key == (callerKey{}) {
		return &c.caller
	}
	return c.Context.Value(key)
}

// CallerFromContext returns who calls the function that has been given ctx, or a context
// made of it: a copy. Where there is none it is anonymous, and ok is false.
func CallerFromContext(ctx context.Context) (caller identity.Caller, ok bool) {
	if c, found := ctx.Value(callerKey{}).(*identity.Caller); found {
		return c.Explicit().Clone(), true
	}
	return identity.Caller{}.Explicit(), false
}

type Handler[In, Out any] struct {
	fn       Func[identity.Agent, In, Out]
	decoder  Decoder[In]
	watchdog *Watchdog
}

// NewBody returns a body that runs fn. The watchdog looks after it where it holds
// the goroutine of its call.
func NewHandler[In, Out any](fn Func[identity.Agent, In, Out], w *Watchdog) Handler[In, Out] {
	return Handler[In, Out]{fn, NewDecoder[In](), w}
}

func (b Handler[In, Out]) Run(ctx context.Context, i catalog.Invocation) (scripting.Outcome, error) {
	in, err := b.decoder.Decode(i.Args, i.Input)
	if err != nil {
		return scripting.Outcome{}, err
	}
	ctx = &callContext{ctx, i.Caller}
	if i.DetachNotifier == nil {
		return b.fn.RunDetached(ctx, i.Caller.Agent.Clone(), in)
	}
	return b.fn.Run(ctx, b.watchdog, i.DetachNotifier, i.Caller.Agent.Clone(), in)
}

// Watchdog looks after functions that run on the goroutine of their call. To
// start another goroutine for each would wake a thread, which costs more than
// most functions do; only those that are under way for two ticks get one, which
// waits for their end: a function that goes on past the end of its context is
// left at most two ticks late. The zero Watchdog is ready for use.
type Watchdog struct{ watchdog watchdog.Watchdog }

// stay is the time that a function holds the goroutine of its call.
type occupancy struct {
	// fixed at creation
	ctx  context.Context
	late catalog.DetachNotifier

	mu     sync.Mutex
	state  state
	waiter *waiter // nil while nobody waits
}

type state uint8

const (
	stateRunning  state = iota
	stateObserved       // it was under way at a tick
	stateDone           // the function has returned
	stateDetached       // the context has ended before
)

// waiter is who waits for the end of a stay.
type waiter struct {
	done     chan struct{} // closed once the function has returned
	notified chan struct{} // closed once late has
}

func (w *Watchdog) begin(s *occupancy) { w.watchdog.Watch(s) }

// end ends a stay, and reports whether what came of the function still counts.
// It does not when late was told, which then has returned.
func (w *Watchdog) end(s *occupancy) bool {
	w.watchdog.Unwatch(s)
	s.mu.Lock()
	waiter, late := s.waiter, s.state == stateDetached
	if !late {
		s.state = stateDone
	}
	s.mu.Unlock()
	switch {
	case late:
		<-waiter.notified
	case waiter != nil:
		close(waiter.done)
	}
	return !late
}

// Look has somebody wait for a function that was under way at the tick before,
// too. The watchdog then holds on to it no more: it may go on for ever.
func (s *occupancy) Look() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == stateRunning {
		s.state = stateObserved
		return true
	}
	s.waiter = &waiter{make(chan struct{}), make(chan struct{})}
	go s.await(s.waiter)
	return false
}

func (s *occupancy) await(waiter *waiter) {
	select {
	case <-waiter.done:
	case <-s.ctx.Done():
		if s.detach() {
			defer close(waiter.notified)
			s.late.CallEnded(s.ctx, s.ctx.Err())
		}
	}
}

// expire reports whether the context has ended before the function.
func (s *occupancy) detach() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == stateDone {
		return false
	}
	s.state = stateDetached
	return true
}
