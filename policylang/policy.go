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
	return p.verdict.args || p.when != nil && p.when.args
}

// Decide says what the policy thinks of a call. Whatever keeps it from being
// evaluated denies. The context's end interrupts what takes long; light
// expressions do not look at it.
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
	r.blind = true
	return p.decide(r)
}

func (p *Policy) decide(r *run) Decision {
	if p.when != nil {
		switch concerned, err := p.when.decide(r); concerned {
		case no:
			return Decision{Outcome: NotConcerned, Range: p.when.whole}
		case unknown:
			return Decision{Outcome: Unknown, Range: p.when.whole}
		case failed:
			return p.fail(err)
		}
	}
	answer, err := p.verdict.decide(r)
	switch {
	case answer == failed:
		return p.fail(err)
	case answer == unknown:
		return Decision{Outcome: Unknown, Range: p.verdict.whole}
	case (answer == yes) == (p.verdict.role == roleAllow):
		return Decision{Outcome: Allow, Range: p.verdict.whole}
	case p.verdict.role == roleApproval:
		return p.because(r, Consent)
	}
	return p.because(r, Deny)
}

// fail denies because the policy could not be evaluated.
func (p *Policy) fail(err *failure) Decision {
	return Decision{Outcome: Deny, Reason: GenericReason, Err: p.blame(err), Range: err.place}
}

// because decides with the policy's reason.
func (p *Policy) because(r *run, o Outcome) Decision {
	d := Decision{Outcome: o, Reason: orElse(p.reason, GenericReason), Range: p.verdict.whole}
	if p.reasonExpr == nil {
		return d
	}
	reason, err := p.reasonExpr.words(r)
	if err != nil {
		d.Err = p.blame(err)
	}
	d.Reason = orElse(reason, d.Reason)
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
