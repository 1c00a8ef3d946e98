package engine

import (
	"context"
	"fmt"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/policylang"
)

// boundPolicy is a policy of a tool, in the order in which it is asked. Exactly
// one of compiled and goPolicy is set.
type boundPolicy struct {
	name     string
	compiled *policylang.Policy
	goPolicy Policy
	disclose string
	// allows says that the policy is an allow rule, so that it covers a call it allows.
	allows bool
	where  diag.Range
}

// The values of disclose in a policy block.
const (
	discloseGeneric = "generic"
	discloseHide    = "hide"
)

// surely asks every policy what can be said without the arguments. It returns
// the first that denies whatever they are; covered says that a policy may still
// allow the call.
func (e *entry) surely(ctx context.Context, facts policylang.Input) (denier *boundPolicy, decision policylang.Decision, covered bool) {
	for i := range e.policies {
		p := &e.policies[i]
		if p.compiled == nil {
			continue
		}
		if decision = p.compiled.Partial(ctx, facts); decision.Outcome == policylang.Deny {
			return p, decision, covered
		}
		covered = covered || p.allows && decision.Outcome != policylang.NotConcerned
	}
	return nil, policylang.Decision{}, covered
}

// decideEarly ends calls that are surely denied.
func (x *execution) decideEarly(ctx context.Context, facts policylang.Input) *CallError {
	denier, decision, covered := x.entry.surely(ctx, facts)
	switch {
	case denier != nil:
		return x.denied(ctx, denier, decision)
	case x.snap.denyByDefault && !covered:
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
	for i := range x.entry.policies {
		p := &x.entry.policies[i]
		if p.goPolicy != nil {
			if err := x.askGo(p.goPolicy); err != nil {
				return err
			}
			continue
		}
		if !p.compiled.UsesArgs() && !(p.allows && x.snap.denyByDefault) {
			continue
		}
		decision := p.compiled.Decide(ctx, facts)
		if decision.Outcome == policylang.Deny {
			return x.denied(ctx, p, decision)
		}
		covered = covered || p.allows && decision.Outcome == policylang.Allow
	}
	if x.snap.denyByDefault && !covered {
		return uncovered()
	}
	return nil
}

func (x *execution) askGo(policy Policy) *CallError {
	decision, err := policy.ask(x.req.Caller.Agent.Clone(), x.req.Tool, x.args)
	switch {
	case err != nil:
		return failed(PolicyDenied, err, "denied: a policy failed")
	case !decision.allowed:
		return &CallError{Code: PolicyDenied, Message: decision.reason}
	}
	return nil
}

// denied tells the caller as much as the policy discloses.
func (x *execution) denied(ctx context.Context, p *boundPolicy, decision policylang.Decision) *CallError {
	var cause error
	if decision.Err != nil {
		cause = fmt.Errorf("policy %s (%s): %w", p.name, p.where, decision.Err)
	}
	switch p.disclose {
	case discloseHide:
		err := x.notFound(ctx)
		err.cause, err.deniedBy = cause, p.name
		return err
	case discloseGeneric:
		return &CallError{Code: PolicyDenied, Message: "denied by policy", cause: cause, deniedBy: p.name}
	default:
		return &CallError{Code: PolicyDenied, Message: decision.Reason, cause: cause, deniedBy: p.name}
	}
}
