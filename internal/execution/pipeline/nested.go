package pipeline

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/scripting"
)

// CallTool calls a tool for the body of x: for the same caller, and on the same
// snapshot. The bounds of the server count the call and do not refuse it, as x
// holds a place until it ends. What the body of a planned call calls is planned, too. What
// reaches all tools that the caller may call is for callers alone: the grants of a body,
// and the ceiling of these, name the tools that it may call. See [host.Tools].
func (x *execution) CallTool(ctx context.Context, name string, arguments json.RawMessage) (json.RawMessage, error) {
	if e := x.catalog.Entry(call.Tools, name); e != nil && (e.Alias || e.Surveys) {
		return nil, &scripting.HostError{Code: scripting.NotGranted, Message: "this tool may not be called by another"}
	}
	result, err := x.nest(ctx, call.Request{Name: name, Arguments: arguments, Caller: x.req.Caller, Via: call.ViaTool}, x.plan.within(), false)
	if err != nil {
		return nil, err
	}
	return valueOf(result), nil
}

// valueOf returns what a body is told that a tool returned.
func valueOf(result call.Result) json.RawMessage {
	if result.Rich && result.Structured == nil {
		return result.Content
	}
	return result.Value
}

// nest makes a call for the body of x, or plans to. A call that fails is an error.
func (x *execution) nest(ctx context.Context, request call.Request, p *plan, approved bool) (call.Result, error) {
	if err := CheckArguments(request.Arguments); request.Arguments != nil && err != nil {
		request.Refused = &call.Error{Code: call.InvalidInput, Message: err.Error()}
	}
	request.Cancelled = x.req.Cancelled
	inner := x.pipeline.begin(x.catalog, request)
	inner.audit, inner.plan, inner.deaf, inner.approved = x.audit, p, x.asksNobody(), approved
	leave, err := inner.place.Enter(ctx, &x.place, x.policyName(), x.id)
	if err != nil {
		inner.turnAway(ctx, err)
		return call.Result{}, err
	}
	defer leave()
	x.pipeline.inFlight.Begin()
	x.pipeline.places.Join(inner.owner)
	inner.joined = true
	result := inner.through(ctx, nil)
	if result.Err != nil {
		return call.Result{}, &scripting.HostError{Code: string(result.Err.Code), Message: result.Err.Message}
	}
	return result, nil
}

// asksNobody reports whether the call is made by a body that cannot wait for the client:
// code can, unless what runs it cannot.
func (x *execution) asksNobody() bool {
	return x.deaf || x.place.Depth() > 0 && x.req.Via != call.ViaCode
}

// turnAway ends a nested call that may not run where it stands, as if it had been made. Of
// one that has its whole tree end nothing is said beside the end of that.
func (x *execution) turnAway(ctx context.Context, why error) {
	if x.place.Spent() {
		return
	}
	refused := canceled(ctx)
	if host, ok := errors.AsType[*scripting.HostError](why); ok {
		refused = &call.Error{Code: call.ExecutionError, Message: host.Message}
	}
	x.pipeline.inFlight.Begin()
	x.through(ctx, refused)
}
