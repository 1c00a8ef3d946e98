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
			result.Structured = r.JSON // an upstream server may return it without a schema
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

// structured is result for a tool that declares its output: the value must match.
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
	x.errorFromScript = true // it names members of the result
	at := []scripting.Frame{{Function: x.entry.Name, Range: x.entry.Where}}
	wrong := schema.FormatViolations(violations)
	if r.Kind == scripting.Nothing && x.entry.Upstream == "" {
		wrong = "the script returned nothing; its last line must return an object with the declared outputs"
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
		if f.Details != nil { // the progress of a Go handler
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

// withTrace adds the source position of a script error, if the operator exposes traces.
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

// errContentNotVisible is the error of a result with content blocks in addition to its value, if
// the policy does not read content.
var errContentNotVisible = errors.New("the result has separate content blocks, and the policy does not read content")

// evaluateResult evaluates the result policies. The first denial withholds the result; the effects
// of the call remain.
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

// evaluateResultPolicies is the slow path of evaluateResult. It is a separate function as its
// variables escape to the heap.
func (x *execution) evaluateResultPolicies(ctx context.Context, rules []catalog.Policy, facts policylang.Input, result call.Result) *call.Error {
	if err := exposeResult(&facts, rules, result); err != nil {
		denied := newError(call.PolicyDenied, err, policylang.GenericReason)
		denied.DeniedBy = DeniedByResult
		return denied
	}
	if len(x.entry.SensitiveOutput) > 0 {
		facts.Redact = func(reason string) string { return x.redactResult(reason, result) }
	}
	both := result.Rich && hasValue(result)
	for i := range rules {
		rule := &rules[i]
		decision := policylang.Decision{Outcome: policylang.Deny, Reason: policylang.GenericReason, Err: fmt.Errorf("policy %q: %w", rule.Name, errContentNotVisible)}
		if !both || rule.ReadsContent {
			decision = rule.Compiled.Decide(ctx, facts)
		}
		x.recordDecision(len(x.entry.Rules)+i, rule, decision)
		if decision.Outcome == policylang.Deny {
			return x.denied(ctx, rule, decision)
		}
	}
	return nil
}

// maskedError replaces an error message from the script if there are result policies, as policies
// do not evaluate errors.
func (x *execution) maskedError(err *call.Error) *call.Error {
	if !x.errorFromScript || len(x.entry.ResultRules) == 0 {
		return err
	}
	return newError(err.Code, err.Cause, "the %s failed; its message is hidden, because policies evaluate its results", x.entry.Kind)
}

func (mutedEmitter) Progress(float64, *float64, string)  {}
func (mutedEmitter) Log(string, string, json.RawMessage) {}

// exposeResult adds a result to the policy input, with its content blocks if a policy reads them.
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

// resultForPolicies returns the result as policies see it: the value of a tool, its content blocks
// if it has no value, or the reply of another item.
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
