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
	// Consent lets the call go on once its user consents.
	Consent
	// Unknown means that the outcome depends on what is not known: the arguments for
	// Partial, and what the Input says.
	Unknown
)

// String returns the outcome in lower case, for logs.
func (o Outcome) String() string {
	switch o {
	case Allow:
		return "allow"
	case NotConcerned:
		return "not concerned"
	case Consent:
		return "requires approval"
	case Unknown:
		return "unknown"
	default:
		return "deny"
	}
}

// Decision is a policy's answer about one call.
type Decision struct {
	Outcome Outcome
	// Reason is what a denied caller may be told, or a user who is asked. It is set
	// for Deny and Consent alone.
	Reason string
	// Cut says that the reason is the beginning of a longer one.
	Cut bool
	// Err says, to the operator alone, what went wrong when a policy denied
	// because it could not be evaluated, or the reason could not.
	Err error
	// Range is the expression that decided.
	Range diag.Range
	// When and Verdict are what the two expressions of the policy said.
	When, Verdict Value
}
