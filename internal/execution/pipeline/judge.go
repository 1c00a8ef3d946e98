package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/observe"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/policylang"
)

// errUnseen is why a policy denies a result that has content beside its value, which the
// policy does not look at.
var errUnseen = errors.New("the result has content blocks of its own, and the policy does not read content")

// judge asks the policies that judge what a call returned. What was done stays done;
// the first denial keeps the result from the caller.
func (x *execution) judge(ctx context.Context, facts policylang.Input, result call.Result) *call.Error {
	if len(x.entry.ResultRules) == 0 || result.Ask != nil || result.Left {
		return nil
	}
	policies := x.span.Child("policy")
	policies.Attr(observe.PolicyOn, observe.OnResult)
	err := x.judgeBy(ctx, x.entry.ResultRules, facts, result)
	decided(policies, err)
	return err
}

// judgeBy is judge where there are policies. It is apart from it since what it is told
// does not stay on the stack.
func (x *execution) judgeBy(ctx context.Context, rules []catalog.Policy, facts policylang.Input, result call.Result) *call.Error {
	if err := show(&facts, rules, result); err != nil {
		denied := failed(call.PolicyDenied, err, policylang.GenericReason)
		denied.DeniedBy = ByResult
		return denied
	}
	if len(x.entry.SensitiveOutput) > 0 {
		facts.Hide = func(reason string) string { return x.hiddenResult(reason, result) }
	}
	both := result.Rich && hasValue(result)
	for i := range rules {
		rule := &rules[i]
		decision := policylang.Decision{Outcome: policylang.Deny, Reason: policylang.GenericReason, Err: fmt.Errorf("policy %q: %w", rule.Name, errUnseen)}
		if !both || rule.ReadsContent {
			decision = rule.Compiled.Decide(ctx, facts)
		}
		x.hearing.hear(len(x.entry.Rules)+i, decision)
		if decision.Outcome == policylang.Deny {
			return x.denied(ctx, rule, decision)
		}
	}
	return nil
}

// unjudged is the error of a call that failed. Policies judge results and not errors, so
// that where there are any, the caller is told nothing in the words of the body.
func (x *execution) unjudged(err *call.Error) *call.Error {
	if !x.spoke || len(x.entry.ResultRules) == 0 {
		return err
	}
	return failed(err.Code, err.Cause, "the %s failed, and what it said is not shown, as policies judge what it returns", x.entry.Kind)
}

// quiet passes on nothing that a body says before its result, which policies judge.
type quiet struct{ call.Emitter }

func (quiet) Progress(float64, *float64, string)  {}
func (quiet) Log(string, string, json.RawMessage) {}

// emitter receives what the body tells its caller.
func (x *execution) emitter() call.Emitter {
	if x.req.Emit == nil || len(x.entry.ResultRules) == 0 {
		return x.req.Emit
	}
	return quiet{x.req.Emit}
}

// show has policies see a result, and its content blocks where one of them looks at those.
func show(facts *policylang.Input, rules []catalog.Policy, result call.Result) (err error) {
	if facts.Unknown&policylang.PartResult != 0 {
		return nil
	}
	if facts.Result, err = rules[0].Compiled.Result(returned(result)); err != nil {
		return err
	}
	if result.Content == nil || !slices.ContainsFunc(rules, func(p catalog.Policy) bool { return p.ReadsContent }) {
		return nil
	}
	facts.Content, err = rules[0].Compiled.Content(result.Content)
	return err
}

// returned is what policies see as the result: the value of a tool, or the content
// blocks of one that has none, and the reply of anything else.
func returned(r call.Result) json.RawMessage {
	switch {
	case r.Reply != nil:
		return r.Reply
	case r.Rich && !hasValue(r):
		return r.Content
	}
	return orNull(r.Value)
}

// hasValue reports whether a tool returned a value, beside content or without.
func hasValue(r call.Result) bool { return len(r.Value) > 0 && string(r.Value) != "null" }
