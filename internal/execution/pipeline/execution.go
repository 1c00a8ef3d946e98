package pipeline

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"strconv"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/jsonguard"
	"github.com/mcpd/mcpd/internal/base/observe"
	"github.com/mcpd/mcpd/internal/base/redact"
	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/execution/calltree"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/execution/ratelimit"
	"github.com/mcpd/mcpd/internal/host"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/ops/audit"
)

// execution is one call on its way through the pipeline. It belongs to the
// goroutine of the call.
type execution struct {
	pipeline *Pipeline
	catalog  *catalog.Catalog
	req      call.Request
	leg
	capacity
	target
	arguments
	overrides
	telemetry
	outcome
	approval approval
	// place is where the call stands among those that come of one client's call.
	position calltree.Position
	// states keeps the call while it waits for its client.
	states *state.Lazy
}

// leg names the call, and says which of its legs this is.
type leg struct {
	id        string
	startTime time.Time
	// lane is a number of its own, by which runs of hooks keep their order.
	orderKey uint64
	// root is the id of the first leg; it is empty, and number 0, while that is not known.
	root   string
	number int32
}

// seat is the room that the call takes in the server, and gives back when it leaves.
type capacity struct {
	// owner tells for whom the call takes room (see [Pipeline.ownerOf]).
	owner uint64
	// charges are what limits have counted, to be given back; nil when none have.
	charges  []ratelimit.Charge
	placed   bool // it has a place among those that may run at once
	joined   bool // the place is one beside that of the call which made it
	released bool // the call has left the server
}

// target is what the call found by the name that it asked for.
type target struct {
	// entry is nil while nothing is found, and body is what runs of it: nil
	// when it has mistakes, or completes nothing.
	entry   *catalog.Entry
	handler catalog.Handler
	// alias is the tool that was to call the entry; "" where that was called by itself.
	alias string
}

// arguments are those of the call, once they are valid.
type arguments struct {
	// args and input are the same, decoded and as JSON.
	args  map[string]any
	input []byte
	// hide takes sensitive arguments out of what the body writes.
	hide redact.Text
}

// approval is what the user has to approve before the call runs, and what became of that.
type approval struct {
	reasons []approvalReason
	// became is nil before it is known.
	record *audit.Approval
	// recorded is what the audit log has of the message of a refusal where that tells why an
	// approval was wanted, in words that may hold arguments; "" elsewhere.
	auditMessage string
	// given says that a user has approved the call in the plan of the program that makes
	// it, and writes are the calls of a program that its user is asked to approve.
	given  bool
	writes []catalog.PlannedCall
}

// special is how the call differs from one that a client makes.
type overrides struct {
	// mocks answer host calls instead of the network. Nil outside of tests,
	// which fire no hooks and are not logged.
	mocks *host.Mocks
	// hearing hears what policies say of a call that is judged and not made; nil in all
	// that are made.
	explainer *explainer
	// plan is what becomes of a call that code plans; nil of one that is made.
	dryRun *dryRun
	// cannotAsk says that the call is nested in one that cannot wait for its client.
	cannotAsk bool
}

// observed is where the call is written down.
type telemetry struct {
	// audit is nil for no log.
	audit *audit.Log
	// span is that of the call, which does nothing where nothing is traced, and script that
	// of the body, once it runs.
	span, script observe.Span
}

// outcome is how the call ended, beside its result.
type outcome struct {
	// cancelled says who had the call end, and why; it is empty while nobody had.
	cancelled       call.Cancellation
	cached          bool // the result is that of another call
	errorFromScript bool // the error is in the words of the body
	// declined says that the call is not made, and that its policies have no part in it.
	rejected bool
}

// Execute runs one call to its end. It never panics, and the call ends soon
// after ctx does. Hooks fire exactly twice: at the start, and at the end or for
// the error.
func (p *Pipeline) Execute(ctx context.Context, req call.Request) call.Result {
	p.inFlight.Begin()
	serving, loadErr := p.options.Catalog(ctx)
	x := p.newExecution(serving, req)
	x.audit = p.options.Audit()
	return x.runWithHooks(ctx, x.admit(loadErr))
}

// through takes the call through the pipeline between its hooks; refused is why it
// has no place there.
func (x *execution) runWithHooks(ctx context.Context, refused *call.Error) call.Result {
	defer x.release()
	ctx = x.trace(ctx)
	x.fire(ctx, call.Event{Phase: call.Start})
	result, err := call.Result{}, refused
	if x.rejected = refused != nil; !x.rejected {
		result, err = x.runStages(ctx)
	}
	if result.Detached {
		return result
	}
	return x.finish(ctx, result, err)
}

func (x *execution) finish(ctx context.Context, result call.Result, err *call.Error) call.Result {
	if err != nil {
		result = call.Result{Err: err}
		x.noteCancellation(ctx, err)
	}
	if err := x.auditOutcome(ctx, result); err != nil {
		result = call.Result{Err: err}
	}
	switch {
	case result.Err != nil:
		x.pipeline.failedCalls.Add(1)
		x.logEnd(ctx, result.Err)
	case result.Ask == nil:
		x.logEnd(ctx, nil)
	}
	result.Revision, result.CallID = x.catalog.Revision, x.id
	x.fireLast(ctx, result)
	x.observe(result)
	x.pipeline.calls.Add(1)
	return result
}

// leave gives back what the call has taken, once.
func (x *execution) release() {
	if x.released {
		return
	}
	x.released = true
	if x.charges != nil {
		x.pipeline.options.Limits.Release(x.charges)
	}
	switch {
	case x.joined:
		x.pipeline.capacity.Leave(x.owner)
	case x.placed:
		x.pipeline.capacity.End(x.owner)
	}
	x.pipeline.inFlight.End()
}

// Late ends the call in the place of the goroutine that its function holds. Its
// hooks have time, as ctx is that of the function alone.
func (x *execution) CallEnded(ctx context.Context, reason error) {
	err := x.timedOut(nil)
	switch {
	case errors.Is(reason, catalog.ErrGoexit):
		err = newError(call.ExecutionError, reason, "the %s failed inside the server", x.entry.Kind)
	case !errors.Is(reason, context.DeadlineExceeded):
		err = canceled(ctx)
		x.noteCancellation(ctx, err)
	}
	x.script.End() // the function may go on for ever
	result := x.finish(context.WithoutCancel(ctx), call.Result{}, err)
	x.release()
	x.req.Late.Answer(result)
}

func (p *Pipeline) newExecution(serving *catalog.Catalog, req call.Request) *execution {
	req.Via = cmp.Or(req.Via, call.ViaClient)
	req.Name = truncateName(req.Kind, req.Name)
	number := p.sequence.Add(1)
	x := &execution{pipeline: p, catalog: serving, req: req, leg: leg{orderKey: number, startTime: p.options.Now()}, states: p.options.States}
	x.owner = p.ownerOf(&req.Caller)
	x.id = string(strconv.AppendUint(append(make([]byte, 0, 64), p.prefix...), number, 36))
	if req.Resume == nil || req.Resume.State == "" {
		x.root, x.number = x.id, 1
	}
	x.req.Caller.Agent.RequestID = cmp.Or(x.req.Caller.Agent.RequestID, x.id)
	x.resolve()
	return x
}

// CheckArguments reports what keeps bytes from being the arguments of a call:
// they must be a JSON object within the bounds of the JSON gate. Arguments from
// outside pass it before [Pipeline.Execute].
func CheckArguments(raw []byte) error {
	if err := jsonguard.Check(raw, jsonguard.Client()); err != nil || jsonguard.IsObject(raw) {
		return err
	}
	return errors.New("the arguments must be a JSON object")
}

// intend writes down what the call is about to do. A call that cannot be written down
// is not made.
func (x *execution) auditIntent() *call.Error {
	if x.audit == nil {
		return nil
	}
	if err := x.audit.Intent(x.auditRecord()); err != nil {
		return auditError(err)
	}
	return nil
}

// account writes down what became of the call. An error takes the place of a result that
// nobody would know of. In strict mode that is also so for one that is an error itself,
// unless the caller is gone and hears neither.
func (x *execution) auditOutcome(ctx context.Context, result call.Result) *call.Error {
	if x.audit == nil {
		return nil
	}
	r := x.auditRecord()
	r.Approval = x.approvalOf(result)
	r.Duration, r.Cached, r.Declined, r.Outcome = x.pipeline.options.Now().Sub(x.startTime), x.cached, x.rejected, x.outcomeOf(result)
	r.CancelledBy, r.CancelReason = x.cancelled.By, x.cancelled.Reason
	if result.Err != nil {
		r.DeniedBy, r.Limited, r.Message = result.Err.DeniedBy, result.Err.Limited, x.auditErrorMessage(result.Err)
	}
	err := x.audit.Outcome(r)
	if err == nil || result.Err != nil && (!x.audit.Strict() || ctx.Err() != nil) {
		return nil
	}
	return auditError(err)
}

// outcomeOf says for the audit log, metrics and hooks how the call has ended.
func (x *execution) outcomeOf(result call.Result) string {
	switch {
	case result.Err != nil:
		return string(result.Err.Code)
	case result.Ask != nil:
		return audit.OutcomeInputRequired
	case x.isDryRun():
		return audit.OutcomeRehearsed
	}
	return audit.OutcomeOK
}

// record is what is written down of the call whatever becomes of it.
func (x *execution) auditRecord() *audit.Record {
	r := &audit.Record{
		Call: x.id, Root: x.root, Parent: x.position.ParentID(), Leg: int(x.number), Depth: x.position.Depth(), Via: string(x.req.Via), Alias: x.alias,
		Kind: x.eventKind(), Name: x.name(), Revision: x.catalog.Revision, Caller: x.req.Caller, Arguments: x.req.Arguments,
		Method: x.method(), Approval: x.approval.record,
	}
	if x.req.Kind == call.Resources {
		x.auditURI(r)
	}
	r.TraceID, r.SpanID = x.span.IDs()
	if x.entry == nil {
		return r
	}
	r.Definition = hex.EncodeToString(x.entry.Key[:])
	if kept := x.catalog.Audit; kept != nil && len(kept.Capture) > 0 && definition.MatchesAny(kept.Capture, x.entry.Name) {
		r.Values = x.visibleArguments()
	}
	return r
}

// recordRead says what was read. The values in the URI of a template are arguments, and
// those of a URI that fits nothing may be, for all that anybody knows: of neither is more
// written down than of other arguments.
func (x *execution) auditURI(r *audit.Record) {
	switch {
	case x.entry == nil:
		r.Name, r.Arguments = "", encode(map[string]string{"uri": x.req.Name})
	case x.entry.Kind == call.Templates:
		r.URI, r.Arguments = x.entry.Address, encode(x.args)
	default:
		r.URI = x.req.Name
	}
}

// recordedMessage is what the caller is told, as the log may have it: without the URI that
// [execution.recordRead] leaves out, without the reasons for which an approval was wanted,
// as those may hold arguments, and without what is sensitive.
func (x *execution) auditErrorMessage(err *call.Error) string {
	if x.req.Kind == call.Resources && err.Code == call.ToolNotFound && (x.entry == nil || x.entry.Kind == call.Templates) {
		return "no such resource"
	}
	return x.redact(cmp.Or(x.approval.auditMessage, err.Message))
}

func (x *execution) admit(loadErr error) *call.Error {
	switch {
	case loadErr != nil:
		return newError(call.ExecutionError, loadErr, "the server has not loaded its tools")
	case x.pipeline.inFlight.Draining():
		return &call.Error{Code: call.ExecutionError, Message: "the server is shutting down", RetryAfter: time.Second, Overloaded: true}
	}
	if x.placed = x.pipeline.capacity.Begin(x.owner, x.catalog.Concurrency()); !x.placed {
		return overloaded()
	}
	return nil
}
