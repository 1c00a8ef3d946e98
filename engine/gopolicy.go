package engine

import (
	"fmt"

	"github.com/mcpd/mcpd/identity"
)

// Decision is the RFC's PolicyDecision (section 11), made by [Allow] and
// [Deny]. The zero Decision denies.
type Decision struct {
	allowed bool
	reason  string
}

// Allow returns the decision that lets a call go on to the next policy. It does
// not cover the call: where the operator denies by default, an allow rule in a
// file must allow it too.
func Allow() Decision { return Decision{allowed: true} }

// Deny returns the decision that ends a call with [PolicyDenied] and the reason.
func Deny(reason string) Decision { return Decision{reason: reason} }

// Policy is a Go policy. It is asked before every execution, after the policies of the
// operator's file and before those of tool files. A policy that panics denies.
type Policy func(in PolicyInput) Decision

// PolicyInput is what a [Policy] decides about. Later versions may add members.
type PolicyInput struct {
	// Caller is a copy. A principal that nothing was proved about is [identity.Anonymous].
	Caller identity.Caller
	// Tool is the name of the tool, or KIND:NAME of what is none, as "resource:NAME".
	Tool string
	// Args are a copy, complete with defaults: integers are int64, and *big.Int beyond that
	// where the tool takes them; other numbers are float64.
	Args map[string]any
}

// ask runs the policy, which may panic, on copies.
func (p Policy) ask(caller *identity.Caller, tool string, args map[string]any) (allowed bool, reason string, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			allowed, reason, err = false, "", fmt.Errorf("go policy panicked: %v", cause)
		}
	}()
	decision := p(PolicyInput{Caller: caller.Explicit().Clone(), Tool: tool, Args: identity.CloneValue(args).(map[string]any)})
	return decision.allowed, decision.reason, nil
}
