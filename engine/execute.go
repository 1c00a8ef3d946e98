package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/mcpd/mcpd/internal/asking"
	"github.com/mcpd/mcpd/internal/catalog"
	"github.com/mcpd/mcpd/internal/deadline"
	"github.com/mcpd/mcpd/internal/gofunc"
	"github.com/mcpd/mcpd/internal/host"
	"github.com/mcpd/mcpd/internal/nesting"
	"github.com/mcpd/mcpd/internal/ratelimit"
	"github.com/mcpd/mcpd/internal/redact"
	"github.com/mcpd/mcpd/internal/schema"
	"github.com/mcpd/mcpd/policylang"
	"github.com/mcpd/mcpd/scripting"
)

// execution is one call on its way through the pipeline. It belongs to the
// goroutine of the call.
type execution struct {
	server *Server
	snap   *Snapshot
	req    Request
	id     string
	// root and leg are those of hook events; empty while they are not known.
	root   string
	leg    int32
	gone   bool // the call has left the server
	cached bool // the result is that of another call
	lane   uint64
	began  time.Time
	// place is where the call stands among those that come of one client's call.
	place nesting.Place
	// charges are what limits have counted, to be given back; nil when none have.
	charges []ratelimit.Charge
	// entry is nil while nothing is found, and body is what runs of it: nil
	// when it has mistakes, or completes nothing.
	entry *catalog.Entry
	body  catalog.Body
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
	snap, loadErr := s.loaded(ctx)
	x := s.begin(snap, req)
	return x.through(ctx, x.admit(running, loadErr))
}

// through takes the call through the pipeline between its hooks; refused is why it
// has no place there.
func (x *execution) through(ctx context.Context, refused *CallError) Result {
	defer x.leave()
	x.fire(ctx, HookEvent{Phase: Start})
	result, err := Result{}, refused
	if err == nil {
		result, err = x.attempt(ctx)
	}
	if result.Left {
		return result
	}
	return x.settle(ctx, result, err)
}

// settle ends the call.
func (x *execution) settle(ctx context.Context, result Result, err *CallError) Result {
	if err != nil {
		result = Result{Err: err}
		x.server.failedCalls.Add(1)
		x.logFailure(ctx, err)
	}
	result.Revision, result.CallID = x.snap.catalog.Revision, x.id
	x.fireLast(ctx, result)
	x.server.calls.Add(1)
	return result
}

// leave gives back what the call has taken, once.
func (x *execution) leave() {
	if x.gone {
		return
	}
	x.gone = true
	if x.charges != nil {
		x.server.limits.Release(x.charges)
	}
	x.server.inFlight.End()
}

// Late ends the call in the place of the goroutine that its function holds. Its
// hooks have time, as ctx is that of the function alone.
func (x *execution) Late(ctx context.Context, reason error) {
	err := x.timedOut(nil)
	switch {
	case errors.Is(reason, catalog.ErrExited):
		err = failed(ExecutionError, reason, "the %s failed inside the server", x.entry.Kind)
	case !errors.Is(reason, context.DeadlineExceeded):
		err = canceled(ctx)
	}
	result := x.settle(context.WithoutCancel(ctx), Result{}, err)
	x.leave()
	x.req.Late.Answer(result)
}

func (s *Server) begin(snap *Snapshot, req Request) *execution {
	if req.Via == "" {
		req.Via = ViaClient
	}
	if most := req.Kind.MaxAddress(); len(req.Name) > most {
		// Nothing has such a name; logs and hooks need not carry all of it.
		req.Name = req.Name[:most] + "…"
	}
	number := s.sequence.Add(1)
	x := &execution{server: s, snap: snap, req: req, lane: number, began: s.options.Now()}
	x.id = string(strconv.AppendUint(append(make([]byte, 0, 64), s.prefix...), number, 36))
	if req.Resume == nil || req.Resume.State == "" {
		x.root, x.leg = x.id, 1
	}
	if x.req.Caller.Agent.RequestID == "" {
		x.req.Caller.Agent.RequestID = x.id
	}
	x.find()
	return x
}

// attempt is the pipeline between the two hooks. The recover is the only one
// on the path of a call: what panics below it costs that call alone.
func (x *execution) attempt(ctx context.Context) (result Result, err *CallError) {
	defer func() {
		if cause := recover(); cause != nil {
			result, err = Result{}, failed(ExecutionError, fmt.Errorf("panic: %v", cause), "the tool failed inside the server")
		}
	}()
	if x.entry == nil {
		return Result{}, x.notFound(ctx)
	}
	if x.body == nil {
		return x.uncompleted()
	}
	facts := x.facts()
	if err := x.decideEarly(ctx, facts); err != nil {
		return Result{}, err
	}
	if err := x.req.refused; err != nil {
		err.Schema = x.inputSchema()
		return Result{}, err
	}
	if err := x.fillIn(ctx, facts); err != nil {
		return Result{}, err
	}
	facts.Args = x.args
	if err := x.decide(ctx, facts); err != nil {
		return Result{}, err
	}
	return x.limited(ctx, facts)
}

// admit refuses calls that the server has no room or no snapshot for.
func (x *execution) admit(running int64, loadErr error) *CallError {
	switch {
	case loadErr != nil:
		return failed(ExecutionError, loadErr, "the server has not loaded its tools")
	case x.server.inFlight.Draining():
		return &CallError{Code: ExecutionError, Message: "the server is shutting down", RetryAfter: time.Second, Overloaded: true}
	case running > int64(x.snap.concurrency()):
		return overloaded()
	}
	return nil
}

func overloaded() *CallError {
	return &CallError{Code: ExecutionError, Message: "the server is overloaded; try again in a second", RetryAfter: time.Second, Overloaded: true}
}

// facts returns what policies and `from` expressions may know before the
// arguments are looked at.
func (x *execution) facts() policylang.Input {
	return policylang.Input{
		Caller: x.req.Caller,
		Tool:   x.entry.Facts,
		Call:   policylang.CallFacts{ID: x.id, Via: string(x.req.Via), Depth: x.place.Depth(), Parent: x.place.Caller()},
		Now:    x.began,
	}
}

// fillIn evaluates `from` inputs, fills in defaults and validates.
func (x *execution) fillIn(ctx context.Context, facts policylang.Input) *CallError {
	if x.entry.Kind != Tools && (x.entry.Kind != Prompts || x.req.Argument != "") {
		return x.fillOther()
	}
	extra, input, err := x.entry.Told(ctx, facts)
	if err != nil {
		return failed(PolicyDenied, fmt.Errorf("input %s: %w", input, err), "the server cannot tell %q for this caller", input)
	}
	args, text, violations := x.entry.Input.Args(x.req.Arguments, extra)
	if len(violations) > 0 {
		return invalidInput(x.entry.Item, violations)
	}
	x.args, x.input = args, text
	return nil
}

func invalidInput(item *catalog.Item, violations []Violation) *CallError {
	return &CallError{
		Code: InvalidInput, Message: fmt.Sprintf("the arguments do not fit the %s's input schema: %s", item.Kind, schema.Sentence(violations)),
		Violations: violations, Schema: bytes.Clone(item.Input.Raw()),
	}
}

// notFound names the nearest item that this caller may see, if any.
func (x *execution) notFound(ctx context.Context) *CallError {
	if len(x.req.Name) > x.req.Kind.MaxAddress() {
		return &CallError{Code: ToolNotFound, Message: "no such " + x.req.Kind.String()}
	}
	err := &CallError{Code: ToolNotFound, Message: fmt.Sprintf("no %s named %q", x.req.Kind, x.req.Name)}
	looking := x.server.looking(x.req.Caller)
	if revision, removed := x.snap.catalog.Removed(ctx, x.req.Kind, x.req.Name, looking); removed {
		err.RemovedIn = revision
		err.Message += "; revision " + revision + " removed it"
	}
	err.Nearest = x.snap.nearest(ctx, x.server, x.req)
	if err.Nearest != "" {
		err.Message += fmt.Sprintf("; did you mean %q?", err.Nearest)
	}
	return err
}

// runBody runs the tool from its beginning, or from where it was suspended.
func (x *execution) runBody(ctx context.Context) (Result, *CallError) {
	x.hide = redact.NewText(x.input, x.entry.Sensitive).And(x.snap.catalog.Sensitive)
	if x.req.Resume != nil && x.req.Resume.State != "" {
		return x.resumed(ctx)
	}
	return x.run(ctx, x.begun())
}

// run runs one leg of the call under what is left of its deadline, and checks
// what it returned.
func (x *execution) run(ctx context.Context, pause asking.Pause) (Result, *CallError) {
	bounded := deadline.WithTimeout(ctx, x.entry.Timeout-pause.Used)
	defer bounded.Cancel(nil)
	x.place.Ends(bounded.Cancel)
	call := catalog.Invocation{
		Address: x.req.Name, Input: x.input, Args: x.args, Caller: x.req.Caller, Via: string(x.req.Via), Began: x.began, Executor: x.server.options.Executor,
		Depth: x.place.Depth(), Parent: x.place.Caller(), Kin: x.place.Kin(),
		Root: pause.Root, Deadline: pause.Start.Add(x.entry.Timeout), Agent: pause.Agent, Journal: pause.Journal, Bounds: x.entry.Bounds, Cached: &x.cached,
		Host: host.Call{
			Brokers: x.server.brokers, SecretKeys: x.snap.catalog.SecretKeys, What: x.entry.Kind.String(), Name: x.entry.Name, ID: x.id,
			Asking: host.Asking{Can: x.req.Can, Round: pause.Leg, Nested: x.place.Depth() > 0}, Tools: x,
			Emit: x.req.Emit, Hide: &x.hide, Mocks: x.mocks,
		},
	}
	if x.req.Late != nil {
		call.Late = x
	}
	began := x.server.options.Now()
	outcome, err := x.body.Run(bounded, call)
	if input, ok := errors.AsType[*gofunc.InputError](err); ok {
		return Result{}, invalidInput(x.entry.Item, []Violation{{Path: input.Path, Message: input.Reason()}})
	}
	switch {
	case x.place.Spent():
		return Result{}, failed(ExecutionError, nil, "%v", nesting.ErrSpent)
	case errors.Is(err, catalog.ErrLeft):
		return Result{Left: true}, nil
	case err != nil && ctx.Err() != nil:
		return Result{}, canceled(ctx)
	case errors.Is(err, context.DeadlineExceeded):
		return Result{}, x.timedOut(nil)
	case errors.Is(err, scripting.ErrOverloaded):
		return Result{}, overloaded()
	case err != nil:
		return Result{}, failed(ExecutionError, fmt.Errorf("executor: %w", err), "the %s could not be run", x.entry.Kind)
	case outcome.Failure != nil:
		return Result{}, x.traced(x.failure(ctx, outcome.Failure))
	case outcome.Suspended != nil:
		if pause.Agent == nil {
			pause.Agent = call.AgentJSON()
		}
		return x.suspended(ctx, pause, outcome.Suspended, x.server.options.Now().Sub(began))
	case outcome.Result == nil:
		return Result{}, failed(ExecutionError, errors.New("executor returned neither result nor failure"), "the %s could not be run", x.entry.Kind)
	}
	if x.entry.Kind != Tools {
		public := x.entry.Steady && len(x.entry.Rules) == 0 && !x.snap.catalog.DenyByDefault
		return Result{Reply: outcome.Result.JSON, Steady: x.entry.Steady, Public: public}, nil
	}
	return x.result(outcome.Result)
}

func canceled(ctx context.Context) *CallError {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return failed(Timeout, ctx.Err(), "the caller's deadline passed")
	}
	return failed(ExecutionError, context.Cause(ctx), "the call was canceled")
}

// timedOut is for a body that was interrupted where f says, or nobody knows where.
func (x *execution) timedOut(f *scripting.Failure) *CallError {
	err := failed(Timeout, nil, "the %s did not end within its timeout of %s", x.entry.Kind, x.entry.Timeout)
	if f != nil && len(f.Stack) > 0 {
		err.cause = f
	}
	return err
}

// encode encodes plain data, which cannot fail.
func encode(value any) json.RawMessage {
	encoded, err := json.Marshal(value)
	if err != nil {
		return orNull(nil)
	}
	return encoded
}
