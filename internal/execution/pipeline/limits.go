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
func (x *execution) runWithinLimits(ctx context.Context, facts policylang.Input) (call.Result, *call.Error) {
	if len(x.entry.Limits) == 0 || x.mocks != nil {
		return x.runHandler(ctx)
	}
	charges, name, err := x.entry.Charges(ctx, facts)
	if err != nil {
		return call.Result{}, &call.Error{Code: call.PolicyDenied, Message: policylang.GenericReason, DeniedBy: name, Cause: err}
	}
	if x.number != 1 {
		for i := range charges {
			charges[i].RateCharged = true
		}
	}
	refusal, err := x.pipeline.options.Limits.Take(ctx, charges)
	switch {
	case err != nil && ctx.Err() != nil:
		return call.Result{}, canceled(ctx)
	case err != nil:
		return call.Result{}, limitStoreError(err)
	case refusal != nil:
		return call.Result{}, &call.Error{Code: call.PolicyDenied, Message: x.redact(refusal.Message()), Limited: true, RetryAfter: refusal.RetryAfter, DeniedBy: refusal.Limit.Name}
	}
	x.charges = charges
	return x.runHandler(ctx)
}

// uncountedWait is when to come back where calls could not be counted.
const limitStoreRetryAfter = time.Second

// uncounted is the error of a call that cannot be counted. No policy is against it,
// and it may go through when it is made again.
func limitStoreError(cause error) *call.Error {
	err := newError(call.PolicyDenied, cause, "the server cannot count the call; try again in a second")
	err.Limited, err.RetryAfter = true, limitStoreRetryAfter
	return err
}
