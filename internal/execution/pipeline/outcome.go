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
	"github.com/mcpd/mcpd/internal/execution/reply"
	"github.com/mcpd/mcpd/internal/language/schema"
	"github.com/mcpd/mcpd/policylang"
	"github.com/mcpd/mcpd/scripting"
)

func (x *execution) result(r *scripting.Result) (call.Result, *call.Error) {
	if x.entry.Output != nil {
		return x.structured(r)
	}
	switch r.Kind {
	case scripting.Nothing:
		return call.Result{Value: orNull(nil), Content: reply.NoContent()}, nil
	case scripting.Content:
		result := call.Result{Value: orNull(r.JSON), Content: r.Content, Rich: true}
		if x.entry.Upstream != "" && r.JSON != nil {
			result.Structured = r.JSON // a server may return it without a schema
		}
		return result, nil
	case scripting.Text:
		return call.Result{Value: r.JSON, Content: reply.TextContent(r.JSON)}, nil
	default:
		if blocks := reply.PlainBlocks(r.JSON); blocks != nil {
			return call.Result{Value: orNull(nil), Content: blocks, Rich: true}, nil
		}
		return call.Result{Value: r.JSON, Content: reply.ValueContent(r.JSON)}, nil
	}
}

// structured is result for a tool that declares its output: the value must fit.
func (x *execution) structured(r *scripting.Result) (call.Result, *call.Error) {
	value := orNull(r.JSON)
	if !x.entry.Output.Trusted() {
		if violations := x.entry.Output.Validate(value); len(violations) > 0 {
			broken := x.outputError(r, violations)
			if blocks := r.Kind == scripting.Content && r.JSON == nil || reply.PlainBlocks(r.JSON) != nil; blocks && x.entry.Upstream == "" {
				broken.Message += "; a tool with outputs returns content beside its value: content.structured(value, blocks)"
			}
			return call.Result{}, x.withTrace(broken)
		}
	}
	result := call.Result{Value: value, Structured: value}
	if r.Kind == scripting.Content {
		result.Content, result.Rich = r.Content, true
		return result, nil
	}
	result.Content = reply.ValueContent(value)
	return result, nil
}

func (x *execution) outputError(r *scripting.Result, violations []schema.Violation) *call.Error {
	x.errorFromScript = true // by the names of members
	at := []scripting.Frame{{Function: x.entry.Name, Range: x.entry.Where}}
	wrong := schema.FormatViolations(violations)
	if r.Kind == scripting.Nothing && x.entry.Upstream == "" {
		wrong = "the body returned nothing; its last line must return an object with the declared outputs"
	}
	return newError(call.ExecutionError, &scripting.Failure{Message: wrong, Stack: at}, "the tool's result does not fit its output schema: %s", wrong)
}

func (x *execution) failure(ctx context.Context, f *scripting.Failure) *call.Error {
	hidden := *f
	f = &hidden
	f.Message = x.hide.Hide(f.Message, x.secretMatcher())
	if f.Details != nil {
		f.Details = x.pipeline.options.Brokers.Secrets.RedactJSON(x.hide.HideJSON(f.Details, x.secretMatcher()))
	}
	switch f.Kind {
	case scripting.Timeout:
		if ctx.Err() != nil {
			return canceled(ctx)
		}
		err := x.timedOut(f)
		if f.Details != nil { // how far a body in Go came
			err.Details = f.Details
			if f.Message != "" {
				err.Message += "\n" + f.Message
			}
		}
		return err
	case scripting.Canceled:
		if ctx.Err() != nil {
			return canceled(ctx)
		}
		return newError(call.ExecutionError, f, "the call was canceled")
	case scripting.HostPanic:
		return newError(call.ExecutionError, f, "the %s failed inside the server", x.entry.Kind)
	}
	return x.thrownError(f)
}

func (x *execution) thrownError(f *scripting.Failure) *call.Error {
	x.errorFromScript = true
	err := newError(call.ExecutionError, f, "%s", f.Message)
	switch f.Kind {
	case scripting.RPCError:
		err.RPC = &call.RPCError{Code: f.RPCCode, Message: f.Message, Data: f.Details}
	case scripting.CapabilityError:
		err.Required = f.RequiredCapabilities()
	case scripting.ToolError:
		err.Details = f.Details
	}
	return err
}

// traced adds to an error where the body failed, for a caller who may know.
func (x *execution) withTrace(err *call.Error) *call.Error {
	if x.catalog.Server.ExposeTraces {
		err.Trace = x.hide.Hide(scripting.FormatStack(scripting.StackOf(err), ""), x.secretMatcher())
	}
	return err
}

func orNull(value []byte) json.RawMessage {
	if len(value) == 0 {
		return json.RawMessage("null")
	}
	return value
}

// encode encodes plain data, which cannot fail.
func encode(value any) json.RawMessage {
	encoded, err := json.Marshal(value)
	if err != nil {
		return orNull(nil)
	}
	return encoded
}

// errUnseen is why a policy denies a result that has content beside its value, which the
// policy does not look at.
var errContentNotVisible = errors.New("the result has content blocks of its own, and the policy does not read content")

// judge asks the policies that judge what a call returned. What was done stays done;
// the first denial keeps the result from the caller.
func (x *execution) evaluateResult(ctx context.Context, facts policylang.Input, result call.Result) *call.Error {
	if len(x.entry.ResultRules) == 0 || result.Ask != nil || result.Detached {
		return nil
	}
	policies := x.span.Child("policy")
	policies.Attr(observe.PolicyOn, observe.OnResult)
	err := x.evaluateResultPolicies(ctx, x.entry.ResultRules, facts, result)
	endPolicySpan(policies, err)
	return err
}

// judgeBy is judge where there are policies. It is apart from it since what it is told
// does not stay on the stack.
func (x *execution) evaluateResultPolicies(ctx context.Context, rules []catalog.Policy, facts policylang.Input, result call.Result) *call.Error {
	if err := exposeResult(&facts, rules, result); err != nil {
		denied := newError(call.PolicyDenied, err, policylang.GenericReason)
		denied.DeniedBy = DeniedByResult
		return denied
	}
	if len(x.entry.SensitiveOutput) > 0 {
		facts.Hide = func(reason string) string { return x.redactResult(reason, result) }
	}
	both := result.Rich && hasValue(result)
	for i := range rules {
		rule := &rules[i]
		decision := policylang.Decision{Outcome: policylang.Deny, Reason: policylang.GenericReason, Err: fmt.Errorf("policy %q: %w", rule.Name, errContentNotVisible)}
		if !both || rule.ReadsContent {
			decision = rule.Compiled.Decide(ctx, facts)
		}
		x.explainer.record(len(x.entry.Rules)+i, decision)
		if decision.Outcome == policylang.Deny {
			return x.denied(ctx, rule, decision)
		}
	}
	return nil
}

// unjudged is the error of a call that failed. Policies judge results and not errors, so
// that where there are any, the caller is told nothing in the words of the body.
func (x *execution) maskedError(err *call.Error) *call.Error {
	if !x.errorFromScript || len(x.entry.ResultRules) == 0 {
		return err
	}
	return newError(err.Code, err.Cause, "the %s failed, and what it said is not shown, as policies judge what it returns", x.entry.Kind)
}

func (mutedEmitter) Progress(float64, *float64, string)  {}
func (mutedEmitter) Log(string, string, json.RawMessage) {}

// show has policies see a result, and its content blocks where one of them looks at those.
func exposeResult(facts *policylang.Input, rules []catalog.Policy, result call.Result) (err error) {
	if facts.Unknown&policylang.PartResult != 0 {
		return nil
	}
	if facts.Result, err = rules[0].Compiled.Result(resultForPolicies(result)); err != nil {
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
func resultForPolicies(r call.Result) json.RawMessage {
	switch {
	case r.Reply != nil:
		return r.Reply
	case r.Rich && !hasValue(r):
		return r.Content
	}
	return orNull(r.Value)
}

func hasValue(r call.Result) bool { return len(r.Value) > 0 && string(r.Value) != "null" }
