package pipeline

import (
	"cmp"
	"context"
	"encoding/hex"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/ops/audit"
)

// intend writes down what the call is about to do. A call that cannot be written down
// is not made.
func (x *execution) intend() *call.Error {
	if x.audit == nil {
		return nil
	}
	if err := x.audit.Intent(x.record()); err != nil {
		return unaccounted(err)
	}
	return nil
}

// account writes down what became of the call. An error takes the place of a result that
// nobody would know of. In strict mode that is also so for one that is an error itself,
// unless the caller is gone and hears neither.
func (x *execution) account(ctx context.Context, result call.Result) *call.Error {
	if x.audit == nil {
		return nil
	}
	r := x.record()
	r.Approval = x.approvalOf(result)
	r.Duration, r.Cached, r.Declined, r.Outcome = x.pipeline.options.Now().Sub(x.began), x.cached, x.declined, audit.OutcomeOK
	r.CancelledBy, r.CancelReason = x.cancelled.By, x.cancelled.Reason
	switch {
	case result.Err != nil:
		r.Outcome, r.DeniedBy, r.Limited, r.Message = string(result.Err.Code), result.Err.DeniedBy, result.Err.Limited, x.recordedMessage(result.Err)
	case result.Ask != nil:
		r.Outcome = audit.OutcomeInputRequired
	case x.rehearsed():
		r.Outcome = audit.OutcomeRehearsed
	}
	err := x.audit.Outcome(r)
	if err == nil || result.Err != nil && (!x.audit.Strict() || ctx.Err() != nil) {
		return nil
	}
	return unaccounted(err)
}

func unaccounted(err error) *call.Error {
	e := failed(call.ExecutionError, err, "the server cannot write down the call; try again in a second")
	e.RetryAfter, e.Overloaded = time.Second, true
	return e
}

// record is what is written down of the call whatever becomes of it.
func (x *execution) record() *audit.Record {
	r := &audit.Record{
		Call: x.id, Root: x.root, Parent: x.place.Parent(), Leg: int(x.leg), Depth: x.place.Depth(), Via: string(x.req.Via), Alias: x.alias,
		Kind: x.eventKind(), Name: x.name(), Revision: x.catalog.Revision, Caller: x.req.Caller, Arguments: x.req.Arguments,
		Method: x.method(), Approval: x.approval,
	}
	if x.req.Kind == call.Resources {
		x.recordRead(r)
	}
	r.TraceID, r.SpanID = x.span.IDs()
	if x.entry == nil {
		return r
	}
	r.Definition = hex.EncodeToString(x.entry.Key[:])
	if kept := x.catalog.Audit; kept != nil && len(kept.Capture) > 0 && definition.Covers(kept.Capture, x.entry.Name) {
		r.Values = x.visibleArguments()
	}
	return r
}

// recordRead says what was read. The values in the URI of a template are arguments, and
// those of a URI that fits nothing may be, for all that anybody knows: of neither is more
// written down than of other arguments.
func (x *execution) recordRead(r *audit.Record) {
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
func (x *execution) recordedMessage(err *call.Error) string {
	if x.req.Kind == call.Resources && err.Code == call.ToolNotFound && (x.entry == nil || x.entry.Kind == call.Templates) {
		return "no such resource"
	}
	return x.hidden(cmp.Or(x.recorded, err.Message))
}
