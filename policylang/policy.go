package policylang

import (
	"context"
	"fmt"

	"github.com/mcpd/mcpd/diag"
)

// GenericReason is what a caller is told of a denial that has no reason of its
// own: a policy that could not be evaluated, or whose reason could not.
const GenericReason = "denied by policy"

// Policy is a compiled policy. It is immutable and safe for concurrent use.
type Policy struct {
	env  *Env
	name string
	// result is the shape of what is judged; nil for a policy about calls.
	result *shape
	// when is nil when the policy concerns every call.
	when *expression
	// verdict is the expression that decides.
	verdict *expression
	reason  string
	// reasonExpr is nil when the reason is fixed.
	reasonExpr *expression
}

// policyOf compiles all texts of a policy, so that all their mistakes are
// found at once.
func (c *compiler) policyOf(src Source) *Policy {
	p := &Policy{env: c.scope.env, name: src.Name, reason: src.Reason}
	if src.OnResult {
		p.result = c.scope.roots["result"]
	}
	p.when = c.optional(roleWhen, src.When)
	if r, verdict := src.verdict(); verdict != nil {
		p.verdict = c.compile(r, *verdict)
	} else {
		c.diags = append(c.diags, diag.Diagnostic{
			Code: codeSyntax, Summary: fmt.Sprintf("policy %q needs one of allow, deny and requires_approval", src.Name),
			Detail: "write exactly one of the three", Range: src.Range,
		})
	}
	p.reasonExpr = c.optional(roleReason, src.ReasonExpr)
	if c.diags.HasErrors() {
		return nil
	}
	return p
}

func (c *compiler) optional(r role, text *diag.Text) *expression {
	if text == nil {
		return nil
	}
	return c.compile(r, *text)
}

// UsesArgs reports whether the outcome can depend on the arguments. Without
// them Partial is as sure as Decide. A has() that the tool's schema answers
// does not count. Nor does a computed reason, which may read them all the
// same: before they are known, Partial is what to ask.
func (p *Policy) UsesArgs() bool {
	return p.Reads()&PartArgs != 0
}

// Decide says what the policy thinks of a call. Whatever keeps it from being
// evaluated denies. The context's end interrupts what takes long. It answers Unknown only of what in.Unknown names.
func (p *Policy) Decide(ctx context.Context, in Input) Decision {
	r := p.env.start(ctx, in)
	defer p.env.stop(r)
	return p.decide(r)
}

// Partial is Decide for a call whose arguments are not known yet. It answers
// Deny only when Decide would, whatever the arguments; Allow, Consent and
// NotConcerned likewise; and else Unknown. It does not read in.Args.
func (p *Policy) Partial(ctx context.Context, in Input) Decision {
	r := p.env.start(ctx, in)
	defer p.env.stop(r)
	r.unknown |= PartArgs
	return p.decide(r)
}

// Reads returns the parts of the input that the outcome can depend on.
func (p *Policy) Reads() Parts {
	if p.when == nil {
		return p.verdict.reads
	}
	return p.when.reads | p.verdict.reads
}

// Where returns what the condition that decides is called, such as "deny", where it
// stands, and where `when` does: nowhere, unless it was written.
func (p *Policy) Where() (called string, verdict, when diag.Range) {
	if p.when != nil {
		when = p.when.whole
	}
	return string(p.verdict.role), p.verdict.whole, when
}

// decide asks `when` and then the condition that decides.
func (p *Policy) decide(r *run) Decision {
	d := Decision{}
	if p.when != nil {
		var err *failure
		switch d.When, err = p.when.decide(r); d.When {
		case False:
			d.Outcome, d.Range = NotConcerned, p.when.whole
			return d
		case Open:
			d.Outcome, d.Range = Unknown, p.when.whole
			return d
		case Failed:
			return p.fail(d, err)
		}
	}
	return p.judge(r, d)
}

// judge asks the condition that decides.
func (p *Policy) judge(r *run, d Decision) Decision {
	var err *failure
	d.Verdict, err = p.verdict.decide(r)
	d.Range = p.verdict.whole
	switch {
	case d.Verdict == Failed:
		return p.fail(d, err)
	case d.Verdict == Open:
		d.Outcome = Unknown
		return d
	case (d.Verdict == True) == (p.verdict.role == roleAllow):
		d.Outcome = Allow
		return d
	case p.verdict.role == roleApproval:
		d.Outcome = Consent
	}
	return p.because(r, d)
}

// fail denies because the policy could not be evaluated.
func (p *Policy) fail(d Decision, err *failure) Decision {
	d.Outcome, d.Reason, d.Err, d.Range = Deny, GenericReason, p.blame(err), err.place
	return d
}

// because adds the policy's reason to what it decides.
func (p *Policy) because(r *run, d Decision) Decision {
	d.Reason = orElse(p.reason, GenericReason)
	if p.reasonExpr == nil {
		return d
	}
	reason, cut, err := p.reasonExpr.words(r)
	if err != nil {
		d.Err = p.blame(err)
	}
	d.Reason, d.Cut = orElse(reason, d.Reason), cut
	return d
}

func (p *Policy) blame(err *failure) error {
	return fmt.Errorf("policy %q: %w", p.name, err)
}

// failure says where and why an expression could not be evaluated. It holds no
// values: arguments and claims do not belong in logs.
type failure struct {
	place   diag.Range
	problem string
}

// Error returns the place and the problem.
func (f *failure) Error() string { return f.place.String() + ": " + f.problem }

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

// Value is what a condition of a policy said of a call.
type Value uint8

const (
	// NotAsked is the value of a condition that was not evaluated, or not written.
	NotAsked Value = iota
	// False and True are what conditions say.
	False
	True
	// Open means that the value depends on what is not known.
	Open
	// Failed means that the condition could not be evaluated, which denies.
	Failed
)

// String returns the value in lower case.
func (v Value) String() string {
	return [...]string{"not asked", "false", "true", "open", "failed"}[v]
}
