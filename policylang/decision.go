package policylang

import "github.com/mcpd/mcpd/diag"

// Outcome is what a policy says about a call.
type Outcome int

const (
	// Deny refuses the call. It is the zero Outcome, so that a decision that
	// was never made refuses.
	Deny Outcome = iota
	// Allow lets the call go on.
	Allow
	// NotConcerned means that the policy's `when` is false for this call.
	NotConcerned
	// Unknown means that the outcome depends on the arguments. Only Partial
	// answers it.
	Unknown
)

// String returns the outcome in lower case, for logs.
func (o Outcome) String() string {
	switch o {
	case Allow:
		return "allow"
	case NotConcerned:
		return "not concerned"
	case Unknown:
		return "unknown"
	default:
		return "deny"
	}
}

// Decision is a policy's answer about one call.
type Decision struct {
	Outcome Outcome
	// Reason is what a denied caller may be told. It is set for Deny alone.
	Reason string
	// Err says, to the operator alone, what went wrong when a policy denied
	// because it could not be evaluated.
	Err error
	// Range is the expression that decided.
	Range diag.Range
}
