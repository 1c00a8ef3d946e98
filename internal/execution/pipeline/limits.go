package pipeline

import (
	"context"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/policylang"
)

// limited runs the body of a call that no limit is against. Limits are asked
// last, so that a call that is denied is not counted. A call that asks its client is
// counted by rates once, when it begins, and by what runs at once in each of its legs.
// Tests count nowhere.
func (x *execution) limited(ctx context.Context, facts policylang.Input) (call.Result, *call.Error) {
	if len(x.entry.Limits) == 0 || x.mocks != nil {
		return x.runBody(ctx)
	}
	charges, name, err := x.entry.Charges(ctx, facts)
	if err != nil {
		return call.Result{}, &call.Error{Code: call.PolicyDenied, Message: policylang.GenericReason, DeniedBy: name, Cause: err}
	}
	if x.number != 1 {
		for i := range charges {
			charges[i].Paid = true
		}
	}
	refusal, err := x.pipeline.options.Limits.Take(ctx, charges)
	switch {
	case err != nil && ctx.Err() != nil:
		return call.Result{}, canceled(ctx)
	case err != nil:
		return call.Result{}, uncounted(err)
	case refusal != nil:
		return call.Result{}, &call.Error{Code: call.PolicyDenied, Message: x.hidden(refusal.Message()), Limited: true, RetryAfter: refusal.Wait, DeniedBy: refusal.Limit.Name}
	}
	x.charges = charges
	return x.runBody(ctx)
}

// uncountedWait is when to come back where calls could not be counted.
const uncountedWait = time.Second

// uncounted is the error of a call that cannot be counted. No policy is against it,
// and it may go through when it is made again.
func uncounted(cause error) *call.Error {
	err := failed(call.PolicyDenied, cause, "the server cannot count the call; try again in a second")
	err.Limited, err.RetryAfter = true, uncountedWait
	return err
}
