package engine

import (
	"context"

	"github.com/mcpd/mcpd/internal/catalog"
	"github.com/mcpd/mcpd/internal/hclfile"
	"github.com/mcpd/mcpd/policylang"
)

// decideEarly ends calls that are surely denied.
func (x *execution) decideEarly(ctx context.Context, facts policylang.Input) *CallError {
	denier, decision, covered := x.entry.Surely(ctx, facts)
	switch {
	case denier != nil:
		return x.denied(ctx, denier, decision)
	case x.snap.catalog.DenyByDefault && !covered:
		return uncovered()
	}
	return nil
}

func uncovered() *CallError {
	return &CallError{Code: PolicyDenied, Message: "no policy allows this call"}
}

// decide asks the policies that depend on the arguments, and those in Go. The
// first denial wins. A call that no policy covers is denied when the operator
// wants it so.
func (x *execution) decide(ctx context.Context, facts policylang.Input) *CallError {
	covered := false
	for i := range x.entry.Rules {
		p := &x.entry.Rules[i]
		if p.Compiled == nil {
			if err := x.askGo(); err != nil {
				return err
			}
			continue
		}
		if !p.Compiled.UsesArgs() && !(p.Allows && x.snap.catalog.DenyByDefault) {
			continue
		}
		decision := p.Compiled.Decide(ctx, facts)
		if decision.Outcome == policylang.Deny {
			return x.denied(ctx, p, decision)
		}
		covered = covered || p.Allows && decision.Outcome == policylang.Allow
	}
	if x.snap.catalog.DenyByDefault && !covered {
		return uncovered()
	}
	return nil
}

// askGo asks the policies in Go.
func (x *execution) askGo() *CallError {
	for _, policy := range x.server.options.Policies {
		decision, err := policy.ask(x.req.Caller.Agent.Clone(), x.policyName(), x.args)
		switch {
		case err != nil:
			return failed(PolicyDenied, err, "denied: a policy failed")
		case !decision.allowed:
			return &CallError{Code: PolicyDenied, Message: decision.reason}
		}
	}
	return nil
}

// policyName is what policies know the item by beside others: no tool has the name
// of what is none.
func (x *execution) policyName() string {
	if x.entry.Kind == Tools {
		return x.entry.Name
	}
	return x.entry.Kind.String() + ":" + x.entry.Name
}

// denied tells the caller as much as the policy discloses.
func (x *execution) denied(ctx context.Context, p *catalog.Policy, decision policylang.Decision) *CallError {
	switch p.Disclose {
	case hclfile.DiscloseHide:
		err := x.notFound(ctx)
		err.cause, err.deniedBy = decision.Err, p.Name
		return err
	case hclfile.DiscloseGeneric:
		return &CallError{Code: PolicyDenied, Message: "denied by policy", cause: decision.Err, deniedBy: p.Name}
	default:
		return &CallError{Code: PolicyDenied, Message: x.snap.catalog.Sensitive.Hide(decision.Reason), cause: decision.Err, deniedBy: p.Name}
	}
}
