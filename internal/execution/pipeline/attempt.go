package pipeline

import (
	"context"
	"fmt"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/policylang"
)

// attempt is the pipeline between the two hooks. The recover is the only one
// on the path of a call: what panics below it costs that call alone.
func (x *execution) attempt(ctx context.Context) (result call.Result, err *call.Error) {
	defer func() {
		if cause := recover(); cause != nil {
			result, err = call.Result{}, failed(call.ExecutionError, fmt.Errorf("panic: %v", cause), "the tool failed inside the server")
		}
	}()
	if x.entry == nil {
		return call.Result{}, x.notFound(ctx)
	}
	if x.req.Declined != nil && ctx.Err() != nil {
		x.declined = true
		return call.Result{}, canceled(ctx) // while its client was asked
	}
	facts := x.facts()
	if err := x.decideEarly(ctx, facts); err != nil {
		return call.Result{}, err
	}
	if x.body == nil && !x.known() {
		return call.Result{}, invalidParams(fmt.Sprintf("the %s has no argument %.64q", x.entry.Kind, x.req.Argument))
	}
	if x.req.Declined != nil {
		x.declined = true
		return call.Result{}, x.req.Declined
	}
	if x.req.Refused != nil {
		refused := *x.req.Refused
		refused.Schema = x.inputSchema()
		return call.Result{}, &refused
	}
	gate := x.span.Child("gate")
	err = x.fillIn(ctx, facts)
	ended(gate, err)
	if err != nil {
		return call.Result{}, err
	}
	facts.Args = x.args
	policies := x.span.Child("policy")
	err = x.decide(ctx, facts)
	decided(policies, err)
	if err != nil {
		return call.Result{}, err
	}
	if x.hearing != nil {
		return x.supposed(ctx, facts)
	}
	run := x.limited
	if x.plan != nil && !x.plan.runs(x) {
		run = x.planned
	}
	if result, err = run(ctx, facts); err != nil {
		return call.Result{}, x.unjudged(err)
	}
	return result, x.judge(ctx, facts, result)
}

// facts returns what policies and `from` expressions may know before the
// arguments are looked at.
func (x *execution) facts() policylang.Input {
	facts := policylang.Input{
		Caller: x.req.Caller,
		Tool:   x.entry.Facts,
		Call:   policylang.CallFacts{ID: x.id, Via: string(x.req.Via), Depth: x.place.Depth(), Parent: x.place.Caller()},
		Now:    x.began,
	}
	if x.hides() {
		facts.Hide = x.hidden
	}
	x.hearing.suppose(&facts)
	return facts
}

// fillIn evaluates `from` inputs, fills in defaults and validates.
func (x *execution) fillIn(ctx context.Context, facts policylang.Input) *call.Error {
	if facts.Unknown&policylang.PartArgs != 0 {
		return nil
	}
	if x.entry.Kind != call.Tools && (x.entry.Kind != call.Prompts || x.req.Argument != "") {
		return x.fillOther()
	}
	extra, input, err := x.entry.Told(ctx, facts)
	if err != nil {
		denied := failed(call.PolicyDenied, fmt.Errorf("input %s: %w", input, err), "the server cannot tell %q for this caller", input)
		denied.DeniedBy = ByFrom
		return denied
	}
	args, violations := x.entry.Input.Decode(x.req.Arguments, extra)
	if len(violations) > 0 {
		return invalidInput(x.entry.Item, violations)
	}
	x.args, x.input = args.Value, args.Text
	if args.Sent != nil {
		x.req.Arguments = args.Sent // for the audit log and hooks, which must see the same numbers
	}
	return nil
}
