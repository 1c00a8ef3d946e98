package scripting

import (
	"context"
	"errors"
	"fmt"

	"github.com/dop251/goja"

	"github.com/mcpd/mcpd/internal/base/watchdog"
)

// Inline returns the executor that runs bodies in this process. It is the
// fastest, and for bodies that are trusted not to attack it: the package
// documentation says what it cannot stop.
func Inline() Executor { return &inline{} }

type inline struct{ watchdog watchdog.Watchdog }

func (*inline) Close() error { return nil }

func (x *inline) Run(ctx context.Context, c Call, h Host) (out Outcome, err error) {
	if c.Program == nil {
		return Outcome{}, errors.New("run a call: no program")
	}
	if failure := Over(ctx); failure != nil {
		return Outcome{Failure: failure}, nil
	}
	r := newRun(ctx, c, h)
	defer func() {
		if bug := recover(); bug != nil {
			out, err = r.recovered(bug)
		}
		r.end()
		out.Stdout = r.book.stdout()
		x.watchdog.Unwatch(r)
	}()
	x.watchdog.Watch(r)
	return r.outcome(), nil
}

// recovered makes an outcome of a panic: of the one that an interrupted script
// ends with, or else of a bug in the engine, which is the executor's failure.
func (r *run) recovered(bug any) (Outcome, error) {
	if e, ok := bug.(error); ok {
		if failure := r.uncatchable(e); failure != nil {
			return Outcome{Failure: failure}, nil
		}
	}
	return Outcome{}, fmt.Errorf("run %q: the JavaScript engine failed: %v", r.program.name, bug)
}

// Over says why a call whose context is done has no result; nil when it is not done.
func Over(ctx context.Context) *Failure {
	switch err := ctx.Err(); {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		return &Failure{Kind: Timeout, Message: "the deadline passed"}
	default:
		return &Failure{Kind: Canceled, Message: "the call was canceled"}
	}
}

// outcome runs the body up to its result, or up to where it is suspended.
func (r *run) outcome() Outcome {
	value, failure := r.body()
	if failure == nil {
		value, failure = r.settle(value)
	}
	if failure == nil && r.suspended() {
		return r.suspend()
	}
	if failure == nil {
		failure = r.book.unfinished()
	}
	var result *Result
	if failure == nil {
		result, failure = r.result(value)
	}
	if failure != nil {
		return Outcome{Failure: failure}
	}
	return Outcome{Result: result}
}

// body calls the body's function and returns what it returns.
func (r *run) body() (goja.Value, *Failure) {
	compiled, err := r.rt.RunProgram(r.program.code)
	if err != nil {
		return nil, r.failed(err)
	}
	function, ok := goja.AssertFunction(compiled)
	if !ok {
		return nil, &Failure{Kind: Thrown, Message: "the body is not a function"}
	}
	arguments, failure := r.arguments()
	if failure != nil {
		return nil, failure
	}
	value, err := function(goja.Undefined(), arguments...)
	if err != nil {
		return nil, r.failed(err)
	}
	if r.failure != nil {
		return nil, r.failure
	}
	return value, nil
}
