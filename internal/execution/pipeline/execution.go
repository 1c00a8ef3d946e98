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
	"github.com/mcpd/mcpd/policylang"
)

// execution is one call in the pipeline. It belongs to the goroutine of the call.
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
	// position is the node of the call in its call tree.
	position calltree.Position
	// states stores the call while it waits for its client.
	states *state.Lazy
}

// leg identifies the call, and the leg. A call that requests input from its client consists of
// several legs, which end with an input request, a result or an error.
type leg struct {
	id        string
	startTime time.Time
	// orderKey is unique to the call. Hook runs with the same key keep their order.
	orderKey uint64
	// root is the id of the first leg. It is empty, and number is 0, until the state is opened.
	root   string
	number int32
}

// capacity is the server capacity that the call occupies until it is released.
type capacity struct {
	// owner identifies the client for fair sharing (see [Pipeline.ownerOf]).
	owner uint64
	// charges are the rate limit charges to release; nil if there are none.
	charges  []ratelimit.Charge
	placed   bool // it occupies one of the slots for concurrent calls
	joined   bool // it shares the slot of the enclosing call
	released bool // everything has been released
}

// target is the item that the requested name resolves to.
type target struct {
	// entry is nil if nothing was found. handler is nil if the item has errors, or nothing
	// completes the argument.
	entry   *catalog.Entry
	handler catalog.Handler
	// alias is the tool that was called in place of entry; "" if entry was called directly.
	alias string
}

// arguments are the validated arguments.
type arguments struct {
	// args and input are the same value, decoded and as JSON.
	args  map[string]any
	input []byte
	// hide redacts sensitive arguments in the output of the script.
	hide redact.Text
}

// approval is the approval that the call needs, and its state.
type approval struct {
	reasons []approvalReason
	// record is nil until the state is known.
	record *audit.Approval
	// auditMessage replaces the error message in the audit log if the message has the reasons of
	// policies, which may contain arguments; "" otherwise.
	auditMessage string
	// given reports that a user approved the call in the plan of the program that makes it. writes
	// are the calls of a program that need approval.
	given  bool
	writes []catalog.PlannedCall
}

// overrides make the call differ from a call by a client.
type overrides struct {
	// mocks replace host calls in a test; nil otherwise. Tests fire no hooks and log nothing.
	mocks *host.Mocks
	// explainer records policy decisions of an explained call; nil for a real call.
	explainer *explainer
	// decided is called with each policy that decided about a test call; nil for any other call.
	decided func(policy string, decision policylang.Outcome)
	// dryRun is set for a call in a dry run of agent code; nil for a real call.
	dryRun *dryRun
	// cannotAsk: an enclosing call cannot be suspended, so this one cannot request input.
	cannotAsk bool
}

// telemetry is the audit log and the trace spans of the call.
type telemetry struct {
	// audit is nil if there is no log.
	audit *audit.Log
	// span is the span of the call; it does nothing without a tracer. script is the span of the
	// handler while it runs.
	span, script observe.Span
	// steps reports that something receives the steps of the call, or of an enclosing one.
	steps bool
}

// outcome says how the call ended, in addition to its result.
type outcome struct {
	// cancelled says who cancelled the call, and why; empty if it was not cancelled.
	cancelled       call.Cancellation
	cached          bool // the result comes from the cache
	errorFromScript bool // the error message comes from the script
	// rejected reports that the call was refused for a reason other than policy.
	rejected bool
}

// Execute runs one call. It never panics, and the call ends soon after ctx. Hooks fire exactly
// twice: at the start, and at the end or for the error.
func (p *Pipeline) Execute(ctx context.Context, req call.Request) call.Result {
	p.inFlight.Begin()
	serving, loadErr := p.options.Catalog(ctx)
	x := p.newExecution(serving, req)
	x.audit = p.options.Audit()
	return x.runWithHooks(ctx, x.admit(loadErr))
}

// runWithHooks runs the pipeline between the start and the end hook. If refused is not nil, the
// call fails with it.
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
	if x.pipeline.recent.Recording() {
		x.pipeline.recent.Add(x.recentCall(result))
	}
	x.observe(result)
	x.pipeline.calls.Add(1)
	if config := x.catalog.Definitions.Config; config != nil && config.Report != nil {
		x.pipeline.countOutcome(x.outcomeOf(result))
	}
	return result
}

// release releases the capacity of the call, once.
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

// CallEnded ends the call if its Go function still blocks the calling goroutine. ctx belongs to the
// function alone, so the hooks are not bound by it.
func (x *execution) CallEnded(ctx context.Context, reason error) {
	err := x.timedOut(nil)
	switch {
	case errors.Is(reason, catalog.ErrGoexit):
		err = newError(call.ExecutionError, reason, "the %s failed inside the server", x.entry.Kind)
	case !errors.Is(reason, context.DeadlineExceeded):
		err = canceled(ctx)
		x.noteCancellation(ctx, err)
	}
	x.script.End() // the function may run forever
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

// CheckArguments reports whether bytes are valid arguments of a call: a JSON object within the
// limits of package jsonguard. Check arguments from outside before [Pipeline.Execute].
func CheckArguments(raw []byte) error {
	if err := jsonguard.Check(raw, jsonguard.Client()); err != nil || jsonguard.IsObject(raw) {
		return err
	}
	return errors.New("the arguments must be a JSON object")
}

// auditIntent writes the intent record. A call that cannot be audited is not made.
func (x *execution) auditIntent() *call.Error {
	if x.audit == nil {
		return nil
	}
	if err := x.audit.Intent(x.auditRecord()); err != nil {
		return auditError(err)
	}
	return nil
}

// auditOutcome writes the outcome record. If that fails, an error replaces the result, so that no
// result goes unaudited. In strict mode it also replaces an error, unless the caller is gone.
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

// outcomeOf returns the outcome for the audit log, metrics and hooks.
func (x *execution) outcomeOf(result call.Result) string {
	switch {
	case result.Err != nil:
		return string(result.Err.Code)
	case result.Ask != nil:
		return audit.OutcomeInputRequired
	case x.isDryRun():
		return audit.OutcomeDryRun
	}
	return audit.OutcomeOK
}

// auditRecord returns the fields that do not depend on the outcome.
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
	if log := x.catalog.Audit; log != nil && len(log.Capture) > 0 && definition.MatchesAny(log.Capture, x.entry.Name) {
		r.Values = x.visibleArguments()
	}
	return r
}

// auditURI sets the URI of a read. The values in the URI of a template are arguments, and an
// unknown URI may contain some. They are recorded like other arguments.
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

// auditErrorMessage returns the error message for the audit log. It omits the URI that
// [execution.auditURI] omits, the reasons for an approval, as they may contain arguments, and
// sensitive values.
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
