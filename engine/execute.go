package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/mcpd/mcpd/internal/host"
	"github.com/mcpd/mcpd/internal/redact"
	"github.com/mcpd/mcpd/policylang"
)

// execution is one call on its way through the pipeline. It belongs to the
// goroutine of the call.
type execution struct {
	server *Server
	snap   *Snapshot
	req    Request
	id     string
	lane   uint64
	began  time.Time
	// entry is nil while no tool is found.
	entry *entry
	// mocks answer host calls instead of the network. Nil outside of tests,
	// which fire no hooks and are not logged.
	mocks *host.Mocks
	// args and input are the same arguments, decoded and as JSON, once they are valid.
	args  map[string]any
	input []byte
	// hide takes sensitive arguments out of what the body writes.
	hide redact.Text
}

// Execute runs one call to its end. It never panics, and the call ends soon
// after ctx does. Hooks fire exactly twice: at the start, and at the end or for
// the error.
func (s *Server) Execute(ctx context.Context, req Request) Result {
	running := s.inFlight.Begin()
	defer s.inFlight.End()
	snap, loadErr := s.loaded(ctx)
	x := s.begin(snap, req)
	x.fire(ctx, HookEvent{Phase: Start})
	result, err := x.attempt(ctx, running, loadErr)
	if err != nil {
		result = Result{Err: err}
		s.failedCalls.Add(1)
		x.logFailure(ctx, err)
	}
	result.Revision, result.CallID = snap.revision, x.id
	x.fireLast(ctx, result)
	s.calls.Add(1)
	return result
}

func (s *Server) begin(snap *Snapshot, req Request) *execution {
	if req.Via == "" {
		req.Via = ViaClient
	}
	if len(req.Tool) > maxToolName {
		// No tool has such a name; logs and hooks need not carry all of it.
		req.Tool = req.Tool[:maxToolName] + "…"
	}
	number := s.sequence.Add(1)
	x := &execution{server: s, snap: snap, req: req, lane: number, began: s.options.Now()}
	x.id = s.prefix + strconv.FormatUint(number, 36)
	if x.req.Caller.Agent.RequestID == "" {
		x.req.Caller.Agent.RequestID = x.id
	}
	x.entry = snap.entries[req.Tool]
	return x
}

// attempt is the pipeline between the two hooks. The recover is the only one
// on the path of a call: what panics below it costs that call alone.
func (x *execution) attempt(ctx context.Context, running int64, loadErr error) (result Result, err *CallError) {
	defer func() {
		if cause := recover(); cause != nil {
			result, err = Result{}, failed(ExecutionError, fmt.Errorf("panic: %v", cause), "the tool failed inside the server")
		}
	}()
	if err := x.admit(running, loadErr); err != nil {
		return Result{}, err
	}
	if x.entry == nil {
		return Result{}, x.notFound(ctx)
	}
	facts := x.facts()
	if err := x.decideEarly(ctx, facts); err != nil {
		return Result{}, err
	}
	if err := x.req.refused; err != nil {
		return Result{}, &CallError{Code: InvalidInput, Message: err.Error(), Schema: bytes.Clone(x.entry.tool.metadata.InputSchema)}
	}
	if err := x.fillIn(ctx, facts); err != nil {
		return Result{}, err
	}
	facts.Args = x.args
	if err := x.decide(ctx, facts); err != nil {
		return Result{}, err
	}
	return x.runBody(ctx)
}

// admit refuses calls that the server has no room or no snapshot for.
func (x *execution) admit(running int64, loadErr error) *CallError {
	switch {
	case loadErr != nil:
		return failed(ExecutionError, loadErr, "the server has not loaded its tools")
	case x.server.inFlight.Draining():
		return &CallError{Code: ExecutionError, Message: "the server is shutting down", RetryAfter: time.Second, Overloaded: true}
	case running > int64(x.snap.concurrency):
		return &CallError{Code: ExecutionError, Message: "the server is overloaded; try again in a second", RetryAfter: time.Second, Overloaded: true}
	}
	return nil
}

// facts returns what policies and `from` expressions may know before the
// arguments are looked at.
func (x *execution) facts() policylang.Input {
	return policylang.Input{
		Caller: x.req.Caller,
		Tool:   x.entry.tool.facts,
		Call:   policylang.CallFacts{ID: x.id, Via: string(x.req.Via)},
		Now:    x.began,
	}
}

// fillIn evaluates `from` inputs, fills in defaults and validates.
func (x *execution) fillIn(ctx context.Context, facts policylang.Input) *CallError {
	tool := x.entry.tool
	extra, err := tool.fromValues(ctx, facts)
	if err != nil {
		return err
	}
	args, input, violations := tool.input.Args(x.req.Arguments, extra)
	if len(violations) > 0 {
		return invalidInput(tool, violations)
	}
	x.args, x.input = args, input
	return nil
}

func (t *Tool) fromValues(ctx context.Context, facts policylang.Input) (map[string]any, *CallError) {
	if len(t.from) == 0 {
		return nil, nil
	}
	values := make(map[string]any, len(t.from))
	for _, input := range t.from {
		value, err := input.expr.Eval(ctx, facts)
		if err == nil {
			err = input.fits(value)
		}
		if err != nil {
			return nil, failed(PolicyDenied, fmt.Errorf("input %s: %w", input.name, err),
				"the server cannot tell %q for this caller", input.name)
		}
		values[input.name] = value
	}
	return values, nil
}

func invalidInput(tool *Tool, violations []Violation) *CallError {
	return &CallError{
		Code: InvalidInput, Message: "the arguments do not fit the tool's input schema: " + describe(violations),
		Violations: violations, Schema: bytes.Clone(tool.metadata.InputSchema),
	}
}

// notFound names the nearest tool that this caller may see, if any.
func (x *execution) notFound(ctx context.Context) *CallError {
	if len(x.req.Tool) > maxToolName {
		return &CallError{Code: ToolNotFound, Message: "no such tool"}
	}
	err := &CallError{Code: ToolNotFound, Message: fmt.Sprintf("no tool named %q", x.req.Tool)}
	err.Nearest = x.snap.nearest(ctx, x.server, x.req)
	if err.Nearest != "" {
		err.Message += fmt.Sprintf("; did you mean %q?", err.Nearest)
	}
	return err
}

// runBody runs the tool under its deadline and checks what it returned.
func (x *execution) runBody(ctx context.Context) (Result, *CallError) {
	tool := x.entry.tool
	bounded, cancel := context.WithTimeout(ctx, tool.metadata.Timeout)
	defer cancel()
	x.hide = redact.NewText(x.input, tool.sensitive)
	outcome, err := tool.body.run(bounded, x)
	switch {
	case err != nil && ctx.Err() != nil:
		return Result{}, canceled(ctx)
	case errors.Is(err, context.DeadlineExceeded):
		return Result{}, x.timedOut()
	case err != nil:
		return Result{}, failed(ExecutionError, fmt.Errorf("executor: %w", err), "the tool could not be run")
	case outcome.Failure != nil:
		return Result{}, x.failure(ctx, outcome.Failure)
	case outcome.Result == nil:
		return Result{}, failed(ExecutionError, errors.New("executor returned neither result nor failure"), "the tool could not be run")
	}
	return x.result(outcome.Result)
}

func canceled(ctx context.Context) *CallError {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return failed(Timeout, ctx.Err(), "the caller's deadline passed")
	}
	return failed(ExecutionError, context.Cause(ctx), "the call was canceled")
}

func (x *execution) timedOut() *CallError {
	return &CallError{Code: Timeout, Message: fmt.Sprintf("the tool did not end within its timeout of %s", x.entry.tool.metadata.Timeout)}
}
