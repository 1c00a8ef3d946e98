package pipeline

import (
	"context"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/observe"
	"github.com/mcpd/mcpd/internal/ops/audit"
)

// methods are those of MCP by which calls of a kind are made (Semantic conventions for
// MCP): what traces and the audit log call them, whatever brought them.
var methods = [...]string{call.Tools: "tools/call", call.Resources: "resources/read", call.Templates: "resources/read", call.Prompts: "prompts/get"}

// method returns that of the call.
func (x *execution) method() string {
	if x.req.Argument != "" {
		return "completion/complete"
	}
	return methods[x.req.Kind]
}

// trace begins the span of the call. The context is for what the call does.
func (x *execution) trace(ctx context.Context) context.Context {
	tracer := x.pipeline.options.Tracer
	if !tracer.Traces() {
		return ctx
	}
	t := &x.req.Trace
	c := observe.Call{
		Method: x.method(), ID: x.id, RequestID: x.req.Caller.Agent.RequestID, Via: string(x.req.Via),
		Parent: observe.Parent(t.Parent, t.State), Carrier: observe.Parent(t.CarrierParent, t.CarrierState),
	}
	if !c.Parent.Valid() {
		c.Parent, c.Carrier = c.Carrier, observe.SpanContext{}
	}
	ctx, x.span = tracer.Start(ctx, c)
	if x.entry != nil {
		x.span.Found(x.entry.Name)
	}
	x.span.Attr(observe.Revision, x.catalog.Revision)
	return ctx
}

// ended ends the span of a part of the call.
func ended(part observe.Span, err *call.Error) {
	if err != nil {
		part.Fail(string(err.Code))
	}
	part.End()
}

// decided ends the span of the policies, and tells what they came to.
func decided(policies observe.Span, err *call.Error) {
	decision := observe.Allowed
	if err != nil {
		decision = observe.Denied
		if err.DeniedBy != "" {
			policies.Attr(observe.Policy, err.DeniedBy)
		}
	}
	policies.Attr(observe.Decision, decision)
	ended(policies, err)
}

// observeDenial tells who denied the call, if anybody did.
func (x *execution) observeDenial(err *call.Error, metrics observe.Metrics) {
	switch {
	case err.DeniedBy == "":
		return
	case err.Limited:
		metrics.Limited(err.DeniedBy)
	default:
		metrics.Denied(err.DeniedBy)
	}
	x.span.Attr(observe.Policy, err.DeniedBy)
}

// observe tells of the end of the call.
func (x *execution) observe(result call.Result) {
	metrics, outcome := x.pipeline.options.Metrics, audit.OutcomeOK
	if metrics == nil {
		return
	}
	switch {
	case result.Err != nil:
		outcome = string(result.Err.Code)
		x.span.Fail(outcome)
		x.observeDenial(result.Err, metrics)
	case result.Ask != nil:
		outcome = audit.OutcomeInputRequired
	case x.rehearsed():
		outcome = audit.OutcomeRehearsed
	}
	x.span.End()
	name := ""
	if x.entry != nil {
		name = x.entry.Name
	}
	metrics.CallEnded(x.eventKind(), name, string(x.req.Via), outcome, x.pipeline.options.Now().Sub(x.began))
}
