package pipeline

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/policylang"
)

// runStages is the pipeline between the two hooks. It recovers panics, so that a panic fails only
// its own call.
func (x *execution) runStages(ctx context.Context) (result call.Result, err *call.Error) {
	defer func() {
		if cause := recover(); cause != nil {
			result, err = call.Result{}, newError(call.ExecutionError, fmt.Errorf("panic: %v", cause), "the tool failed inside the server")
		}
	}()
	if x.entry == nil {
		return call.Result{}, x.notFound(ctx)
	}
	if x.req.RejectErr != nil && ctx.Err() != nil {
		x.rejected = true
		return call.Result{}, canceled(ctx) // while the client was asked
	}
	facts := x.policyInput()
	if err := x.evaluateStatic(ctx, facts); err != nil {
		return call.Result{}, err
	}
	if x.handler == nil && !x.hasArgument() {
		return call.Result{}, invalidParams(fmt.Sprintf("the %s has no argument %.64q", x.entry.Kind, x.req.Argument))
	}
	if x.req.RejectErr != nil {
		x.rejected = true
		return call.Result{}, x.req.RejectErr
	}
	if x.req.ArgumentsErr != nil {
		rejection := *x.req.ArgumentsErr
		if x.entry.Input != nil {
			rejection.Schema = bytes.Clone(x.entry.Input.Raw())
		}
		return call.Result{}, &rejection
	}
	gate := x.span.Child("gate")
	err = x.prepareArguments(ctx, facts)
	endSpan(gate, err)
	if err != nil {
		return call.Result{}, err
	}
	facts.Args = x.args
	policies := x.span.Child("policy")
	err = x.evaluatePolicies(ctx, facts)
	endPolicySpan(policies, err)
	if err != nil {
		return call.Result{}, err
	}
	if x.explainer != nil {
		return x.evaluateHypothetical(ctx, facts)
	}
	run := x.runWithinLimits
	if x.dryRun != nil && !x.dryRun.executes(x) {
		run = x.runDry
	}
	if result, err = run(ctx, facts); err != nil {
		return call.Result{}, x.maskedError(err)
	}
	return result, x.evaluateResult(ctx, facts, result)
}

// policyInput returns the input of policies and `from` expressions before the arguments are read.
func (x *execution) policyInput() policylang.Input {
	facts := policylang.Input{
		Caller: x.req.Caller,
		Tool:   x.entry.Facts,
		Call:   policylang.CallFacts{ID: x.id, Via: string(x.req.Via), Depth: x.position.Depth(), Parent: x.position.ParentName()},
		Now:    x.startTime,
	}
	if len(x.entry.Sensitive) > 0 || x.catalog.Sensitive.Hides() {
		facts.Redact = x.redact
	}
	x.explainer.applyTo(&facts)
	return facts
}

func (x *execution) prepareArguments(ctx context.Context, facts policylang.Input) *call.Error {
	if facts.Unknown&policylang.PartArgs != 0 {
		return nil
	}
	if x.entry.Kind != call.Tools && (x.entry.Kind != call.Prompts || x.req.Argument != "") {
		return x.buildInput()
	}
	extra, input, err := x.entry.ComputeFrom(ctx, facts)
	if err != nil {
		denied := newError(call.PolicyDenied, fmt.Errorf("input %s: %w", input, err), "the server cannot compute %q for this caller", input)
		denied.DeniedBy = DeniedByFrom
		return denied
	}
	args, violations := x.entry.Input.Decode(x.req.Arguments, extra)
	if len(violations) > 0 {
		return invalidInput(x.entry.Item, violations)
	}
	x.args, x.input = args.Value, args.Text
	if args.Sent != nil {
		x.req.Arguments = args.Sent // audit log and hooks must see the same numbers
	}
	return nil
}

func (x *execution) evaluateStatic(ctx context.Context, facts policylang.Input) *call.Error {
	denier, decision, covered := x.entry.DecideStatic(ctx, facts, x.recordStatic())
	switch {
	case denier != nil:
		return x.denied(ctx, denier, decision)
	case x.catalog.DenyByDefault && !covered:
		return uncovered()
	}
	return nil
}

// NoAllowRule is the message for a call that no policy allows, if calls are denied by default.
const NoAllowRule = "no policy allows this call"

// Values of [call.Error].DeniedBy that are not names of policies in files. Those cannot have
// parentheses. DeniedByDefault: no policy allows the call. DeniedByGo: a policy of the embedding
// program. DeniedByFrom: the server cannot compute an input. DeniedByResult: policies cannot read
// the result. DeniedByApproval: a user declined, and a reload has removed the policy meanwhile.
const (
	DeniedByDefault  = "(default)"
	DeniedByGo       = catalog.GoName
	DeniedByFrom     = "(from)"
	DeniedByResult   = "(result)"
	DeniedByApproval = "(approval)"
)

func uncovered() *call.Error {
	return &call.Error{Code: call.PolicyDenied, Message: NoAllowRule, DeniedBy: DeniedByDefault}
}

// evaluatePolicies evaluates the policies that read arguments, the Go policies, and those that may
// require approval. The first denial wins. If calls are denied by default, an allow rule must allow
// the call.
func (x *execution) evaluatePolicies(ctx context.Context, facts policylang.Input) *call.Error {
	covered := false
	for i := range x.entry.Rules {
		p := &x.entry.Rules[i]
		if p.Compiled == nil {
			if err := x.evaluateGoPolicies(i, facts); err != nil {
				return err
			}
			continue
		}
		if !p.Compiled.UsesArgs() && !p.Asks && !(p.Allows && x.catalog.DenyByDefault) {
			continue
		}
		decision := p.Compiled.Decide(ctx, facts)
		x.recordDecision(i, p, decision)
		switch decision.Outcome {
		case policylang.Deny:
			return x.denied(ctx, p, decision)
		case policylang.NeedsApproval:
			x.approval.reasons = append(x.approval.reasons, approvalReason{p, x.redact(decision.Reason), decision.Truncated})
		}
		covered = covered || p.Allows && (decision.Outcome == policylang.Allow || x.explainer.mayAllow(decision))
	}
	if x.catalog.DenyByDefault && !covered {
		return uncovered()
	}
	return nil
}

// evaluateGoPolicies evaluates the Go policies, which share one index in the policies of the entry. It
// needs known arguments.
func (x *execution) evaluateGoPolicies(index int, facts policylang.Input) *call.Error {
	if facts.Unknown&policylang.PartArgs != 0 {
		x.explainer.record(index, policylang.Decision{Outcome: policylang.Unknown})
		return nil
	}
	err := x.runGoPolicies()
	if err != nil {
		x.explainer.record(index, policylang.Decision{Outcome: policylang.Deny, Reason: err.Message, Err: err.Cause})
	} else {
		x.explainer.record(index, policylang.Decision{Outcome: policylang.Allow})
	}
	return err
}

func (x *execution) runGoPolicies() *call.Error {
	for _, policy := range x.pipeline.options.Policies {
		allowed, reason, err := policy(&x.req.Caller, x.policyName(), x.args)
		switch {
		case err != nil:
			denied := newError(call.PolicyDenied, err, "denied: a policy failed")
			denied.DeniedBy = DeniedByGo
			return denied
		case !allowed:
			return &call.Error{Code: call.PolicyDenied, Message: x.redact(reason), DeniedBy: DeniedByGo}
		}
	}
	return nil
}

// policyName returns a name for the item that no tool has unless the item is that tool.
func (x *execution) policyName() string {
	if x.entry.Kind == call.Tools {
		return x.entry.Name
	}
	return x.entry.Kind.String() + ":" + x.entry.Name
}

func (x *execution) denied(ctx context.Context, p *catalog.Policy, decision policylang.Decision) *call.Error {
	switch p.Disclose {
	case definition.DiscloseHide:
		err := x.notFound(ctx)
		err.Cause, err.DeniedBy = decision.Err, p.Name
		return err
	case definition.DiscloseGeneric:
		return &call.Error{Code: call.PolicyDenied, Message: "denied by policy", Cause: decision.Err, DeniedBy: p.Name}
	default:
		return &call.Error{Code: call.PolicyDenied, Message: x.redact(decision.Reason), Cause: decision.Err, DeniedBy: p.Name}
	}
}

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
