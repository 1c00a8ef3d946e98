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
// holds a place until it ends. See [host.Tools].
func (x *execution) CallTool(ctx context.Context, name string, arguments json.RawMessage) (json.RawMessage, error) {
	return x.nest(ctx, name, arguments, nil)
}

// nest calls a tool for the body of x, or plans to.
func (x *execution) nest(ctx context.Context, name string, arguments json.RawMessage, p *plan) (json.RawMessage, error) {
	request := call.Request{Name: name, Arguments: arguments, Caller: x.req.Caller, Via: call.ViaTool}
	if x.entry.Surveys {
		request.Via = call.ViaCode
	}
	if err := CheckArguments(arguments); arguments != nil && err != nil {
		request.Refused = &call.Error{Code: call.InvalidInput, Message: err.Error()}
	}
	inner := x.pipeline.begin(x.catalog, request)
	inner.audit, inner.plan = x.audit, p
	leave, err := inner.place.Enter(ctx, &x.place, x.policyName(), x.id)
	if err != nil {
		inner.turnAway(ctx, err)
		return nil, err
	}
	defer leave()
	x.pipeline.inFlight.Begin()
	result := inner.through(ctx, nil)
	switch {
	case result.Err != nil:
		return nil, &scripting.HostError{Code: string(result.Err.Code), Message: result.Err.Message}
	case result.Rich && result.Structured == nil:
		return result.Content, nil
	}
	return result.Value, nil
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
