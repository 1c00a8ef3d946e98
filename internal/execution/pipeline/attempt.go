package pipeline

import (
	"bytes"
	"context"
	"fmt"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/language/definition"
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
	if x.req.RejectErr != nil && ctx.Err() != nil {
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
	if x.req.RejectErr != nil {
		x.declined = true
		return call.Result{}, x.req.RejectErr
	}
	if x.req.ArgumentsErr != nil {
		refused := *x.req.ArgumentsErr
		if x.entry.Input != nil {
			refused.Schema = bytes.Clone(x.entry.Input.Raw())
		}
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
	if len(x.entry.Sensitive) > 0 || x.catalog.Sensitive.Hides() {
		facts.Hide = x.hidden
	}
	x.hearing.suppose(&facts)
	return facts
}

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

func (x *execution) decideEarly(ctx context.Context, facts policylang.Input) *call.Error {
	denier, decision, covered := x.entry.Surely(ctx, facts, x.hearing.early())
	switch {
	case denier != nil:
		return x.denied(ctx, denier, decision)
	case x.catalog.DenyByDefault && !covered:
		return uncovered()
	}
	return nil
}

// Uncovered is what the caller is told of a call that no policy allows, where calls are
// denied by default.
const Uncovered = "no policy allows this call"

// The names by which the operator knows what denies calls beside the policies in files,
// none of which can have them: ByDefault of what no policy allows, InGo of the policies of
// the embedding program together, ByFrom of an input that the server cannot tell, ByResult
// of a result that cannot be shown to those that judge it, ByApproval of a user who did
// not approve a call whose policy a reload has removed meanwhile.
const (
	ByDefault  = "(default)"
	InGo       = catalog.InGo
	ByFrom     = "(from)"
	ByResult   = "(result)"
	ByApproval = "(approval)"
)

func uncovered() *call.Error {
	return &call.Error{Code: call.PolicyDenied, Message: Uncovered, DeniedBy: ByDefault}
}

// decide asks the policies that depend on the arguments, those in Go, and those that
// may want the consent of the user. The first denial wins. A call that no policy covers
// is denied when the operator wants it so.
func (x *execution) decide(ctx context.Context, facts policylang.Input) *call.Error {
	covered := false
	for i := range x.entry.Rules {
		p := &x.entry.Rules[i]
		if p.Compiled == nil {
			if err := x.askGo(i, facts); err != nil {
				return err
			}
			continue
		}
		if !p.Compiled.UsesArgs() && !p.Asks && !(p.Allows && x.catalog.DenyByDefault) {
			continue
		}
		decision := p.Compiled.Decide(ctx, facts)
		x.hearing.hear(i, decision)
		switch decision.Outcome {
		case policylang.Deny:
			return x.denied(ctx, p, decision)
		case policylang.Consent:
			x.approval.consents = append(x.approval.consents, consent{p, x.hidden(decision.Reason), decision.Cut})
		}
		covered = covered || p.Allows && (decision.Outcome == policylang.Allow || x.hearing.may(decision))
	}
	if x.catalog.DenyByDefault && !covered {
		return uncovered()
	}
	return nil
}

// askGo asks the policies in Go, which stand at a place among those of the entry. They
// cannot be asked about arguments that nobody knows.
func (x *execution) askGo(place int, facts policylang.Input) *call.Error {
	if facts.Unknown&policylang.PartArgs != 0 {
		x.hearing.hear(place, policylang.Decision{Outcome: policylang.Unknown})
		return nil
	}
	err := x.answersOfGo()
	if err != nil {
		x.hearing.hear(place, policylang.Decision{Outcome: policylang.Deny, Reason: err.Message, Err: err.Cause})
	} else {
		x.hearing.hear(place, policylang.Decision{Outcome: policylang.Allow})
	}
	return err
}

func (x *execution) answersOfGo() *call.Error {
	for _, policy := range x.pipeline.options.Policies {
		allowed, reason, err := policy(&x.req.Caller, x.policyName(), x.args)
		switch {
		case err != nil:
			denied := failed(call.PolicyDenied, err, "denied: a policy failed")
			denied.DeniedBy = InGo
			return denied
		case !allowed:
			return &call.Error{Code: call.PolicyDenied, Message: x.hidden(reason), DeniedBy: InGo}
		}
	}
	return nil
}

// policyName is what policies know the item by beside others: no tool has the name
// of what is none.
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
		return &call.Error{Code: call.PolicyDenied, Message: x.hidden(decision.Reason), Cause: decision.Err, DeniedBy: p.Name}
	}
}
