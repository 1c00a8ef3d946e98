package pipeline

import (
	"context"
	"encoding/json"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/policylang"
)

// judge asks the policies that judge what a call returned. What was done stays done;
// the first denial keeps the result from the caller.
func (x *execution) judge(ctx context.Context, facts policylang.Input, result call.Result) *call.Error {
	rules := x.entry.ResultRules
	if len(rules) == 0 || result.Ask != nil || result.Left {
		return nil
	}
	var err error
	if facts.Result, err = rules[0].Compiled.Result(returned(result)); err != nil {
		return failed(call.PolicyDenied, err, policylang.GenericReason)
	}
	for i := range rules {
		if decision := rules[i].Compiled.Decide(ctx, facts); decision.Outcome == policylang.Deny {
			return x.denied(ctx, &rules[i], decision)
		}
	}
	return nil
}

// returned is what policies see as the result: the value of a tool, or the content
// blocks of one that has none, and the reply of anything else.
func returned(r call.Result) json.RawMessage {
	if r.Rich && r.Structured == nil {
		return r.Content
	}
	if r.Reply != nil {
		return r.Reply
	}
	return orNull(r.Value)
}
