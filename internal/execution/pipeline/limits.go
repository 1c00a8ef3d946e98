package pipeline

import (
	"context"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/policylang"
)

// runWithinLimits charges the limits and runs the handler. Limits come last, so that denied calls
// are not charged. In a call with several legs, only the first is charged to a rate, but each leg
// to the concurrency. Tests are not charged.
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

// limitStoreRetryAfter is the retry delay after an error of the limit store.
const limitStoreRetryAfter = time.Second

// limitStoreError returns the error of a call that cannot be charged. A retry may succeed.
func limitStoreError(cause error) *call.Error {
	err := newError(call.PolicyDenied, cause, "the server cannot count the call; try again in a second")
	err.Limited, err.RetryAfter = true, limitStoreRetryAfter
	return err
}
