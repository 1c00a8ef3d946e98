// Package policylang compiles and evaluates CEL, the language of policies, limit keys and
// `from` values. No other package uses CEL.
//
// An [Env] holds the operator's variables and compiles: a [Source] for a [Tool] to a [Policy],
// a [KeySource] to a [Key], and a text to an [Expr]. A policy evaluates an [Input], and returns
// a [Decision]:
//
//	text := diag.WholeFile("policy.cel", "args.amount > 50.0")
//	policy, problems := env.Compile(policylang.Source{Name: "small_refunds", Deny: &text}, tool)
//	if problems.HasErrors() {
//		return problems
//	}
//	decision := policy.Decide(ctx, policylang.Input{Args: map[string]any{"amount": 80.0}})
//	fmt.Println(decision.Outcome) // deny
//
// Everything that an expression can read has a type. The types of arguments come from the JSON
// Schema of the tool's input. So most errors are diagnostics with positions, reported before
// the tool is served.
//
// # Errors deny
//
// An expression that cannot be evaluated denies: a key is missing, a type is wrong, or it takes
// too long. Callers get [GenericReason]; operators get the position and the kind of the
// problem. Neither gets values.
//
// [Policy.Partial] evaluates with unknown arguments. Its result is certain, or [Unknown].
//
// # Limits
//
// Before a policy is served, its size, its nesting and its estimated cost for ordinary data are
// checked. Each decision has a budget of 100 ms, which loops and calls of functions charge.
//
// # Isolation
//
// A decision reads no clock, file or environment variable, and depends only on its input: the
// time is part of the input, and time zones are loaded when a policy is compiled. The package
// does not depend on HCL, on the order of policies, or on the protocol that sends a denial.
package policylang

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mcpd/mcpd/diag"
)

// GenericReason is the reason for a caller if the denial has no other: the policy, or its
// reason, could not be evaluated, or it has no reason.
const GenericReason = "denied by policy"

// Policy is a compiled policy. It is immutable and safe for concurrent use.
type Policy struct {
	env  *Env
	name string
	// result is the shape of the result; nil for a policy about calls.
	result *shape
	// when is nil if the policy applies to every call.
	when *expression
	// verdict is the deciding expression.
	verdict *expression
	reason  string
	// reasonExpr is nil if the reason is fixed.
	reasonExpr *expression
}

// policyOf compiles all texts of a policy, so that all errors are reported at once.
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
			Code: codeSyntax, Summary: fmt.Sprintf("policy %q needs one of allow, deny or requires_approval", src.Name),
			Detail: "write exactly one of them", Range: src.Range,
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

// UsesArgs reports whether the outcome can depend on the arguments. If not, Partial is as
// certain as Decide. It ignores a has() that the schema answers. It also ignores a computed
// reason, which may read arguments: use Partial while they are unknown.
func (p *Policy) UsesArgs() bool {
	return p.Reads()&PartArgs != 0
}

// Decide evaluates the policy for a call. A policy that cannot be evaluated denies. Decide
// stops a long evaluation when ctx ends. It returns Unknown only if the outcome depends on
// in.Unknown.
func (p *Policy) Decide(ctx context.Context, in Input) Decision {
	r := p.env.start(ctx, in)
	defer p.env.stop(r)
	return p.decide(r)
}

// Partial is Decide for a call with unknown arguments. It returns Deny, Allow, NeedsApproval or
// NotApplicable only if Decide returns the same for all arguments, and else Unknown. It does not
// read in.Args.
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

// Where returns the name of the deciding condition, such as "deny", its range, and the range of
// `when`. The latter is zero if there is no `when`.
func (p *Policy) Where() (called string, verdict, when diag.Range) {
	if p.when != nil {
		when = p.when.whole
	}
	return string(p.verdict.role), p.verdict.whole, when
}

// decide evaluates `when` and then the verdict.
func (p *Policy) decide(r *evaluation) Decision {
	d := Decision{}
	if p.when != nil {
		var err *failure
		switch d.When, err = p.when.decide(r); d.When {
		case False:
			d.Outcome, d.Range = NotApplicable, p.when.whole
			return d
		case Indeterminate:
			d.Outcome, d.Range = Unknown, p.when.whole
			return d
		case Failed:
			return p.denyWithError(d, err)
		}
	}
	return p.evalVerdict(r, d)
}

// evalVerdict evaluates the deciding condition.
func (p *Policy) evalVerdict(r *evaluation, d Decision) Decision {
	var err *failure
	d.Verdict, err = p.verdict.decide(r)
	d.Range = p.verdict.whole
	switch {
	case d.Verdict == Failed:
		return p.denyWithError(d, err)
	case d.Verdict == Indeterminate:
		d.Outcome = Unknown
		return d
	case (d.Verdict == True) == (p.verdict.role == roleAllow):
		d.Outcome = Allow
		return d
	case p.verdict.role == roleApproval:
		d.Outcome = NeedsApproval
	}
	return p.withReason(r, d)
}

// denyWithError denies because the policy could not be evaluated.
func (p *Policy) denyWithError(d Decision, err *failure) Decision {
	d.Outcome, d.Reason, d.Err, d.Range = Deny, GenericReason, p.wrapError(err), err.place
	return d
}

// withReason adds the reason of the policy to a decision.
func (p *Policy) withReason(r *evaluation, d Decision) Decision {
	d.Reason = cmp.Or(p.reason, GenericReason)
	if p.reasonExpr == nil {
		return d
	}
	reason, cut, err := p.reasonExpr.evalReason(r)
	if err != nil {
		d.Err = p.wrapError(err)
	}
	d.Reason, d.Truncated = cmp.Or(reason, d.Reason), cut
	return d
}

func (p *Policy) wrapError(err *failure) error {
	return fmt.Errorf("policy %q: %w", p.name, err)
}

// failure is an evaluation error and its range. It holds no values, because arguments and
// claims must not appear in logs.
type failure struct {
	place   diag.Range
	problem string
}

// Error returns the position and the problem.
func (f *failure) Error() string { return f.place.String() + ": " + f.problem }

// Outcome is the result of a policy for a call.
type Outcome int

const (
	// Deny rejects the call. It is the zero Outcome, so a missing decision denies.
	Deny Outcome = iota
	// Allow permits the call.
	Allow
	// NotApplicable means that the policy's `when` is false for this call.
	NotApplicable
	// NeedsApproval permits the call after its user approves it.
	NeedsApproval
	// Unknown means that the outcome depends on unknown parts of the input. In Partial, the
	// arguments are unknown.
	Unknown
)

// String returns the outcome in lower case, for messages. mcpd policy explain --json prints these
// texts.
func (o Outcome) String() string {
	switch o {
	case Allow:
		return "allow"
	case NotApplicable:
		return "not concerned"
	case NeedsApproval:
		return "requires approval"
	case Unknown:
		return "unknown"
	default:
		return "deny"
	}
}

// Decision is the result of a policy for one call.
type Decision struct {
	Outcome Outcome
	// Reason is for the denied caller, or for the user who approves. It is set only for Deny
	// and NeedsApproval.
	Reason string
	// Truncated means that the Reason was truncated.
	Truncated bool
	// Err says why the policy or its reason could not be evaluated. It is only for operators.
	Err error
	// Range is the deciding expression.
	Range diag.Range
	// When and Verdict are the values of the two conditions.
	When, Verdict Value
}

// Value is the value of a condition for a call.
type Value uint8

const (
	// NotEvaluated means that the condition was not evaluated, or that the policy has none.
	NotEvaluated Value = iota
	// False and True are the values of an evaluated condition.
	False
	True
	// Indeterminate means that the value depends on unknown parts of the input.
	Indeterminate
	// Failed means that the condition could not be evaluated, which denies.
	Failed
)

// String returns the value in lower case.
func (v Value) String() string {
	return [...]string{"not asked", "false", "true", "open", "failed"}[v]
}

// Source is the source of a policy. Exactly one of Allow, Deny and Approval is set; a nil Text
// is absent.
type Source struct {
	// Name is the policy's name, for messages.
	Name string
	// OnResult means that the policy judges the result of a call, not whether the call may run.
	OnResult bool
	// When selects the calls that the policy applies to; nil selects all.
	When *diag.Text
	// Allow must be true to permit the call; Deny must be false.
	Allow, Deny *diag.Text
	// Approval is true for calls that need the approval of their user.
	Approval *diag.Text
	// Reason is for the denied caller, or for the user who approves. If empty, it is
	// [GenericReason].
	Reason string
	// ReasonExpr computes the reason. It is evaluated only if the reason is used. If it fails,
	// Reason is used.
	ReasonExpr *diag.Text
	// Range is the position of the policy.
	Range diag.Range
}

// Tool is the target that a policy is compiled for.
type Tool struct {
	// Kind is like [ToolFacts].Kind, and "tool" if empty. Name is the tool's name. Both are for
	// messages.
	Kind, Name string
	// Schema is the JSON Schema of the tool's arguments, including those that `from` supplies.
	// Nil accepts anything.
	Schema json.RawMessage
	// Result is the JSON Schema of the tool's result, for policies with OnResult. Nil accepts
	// anything.
	Result json.RawMessage
	// Later are required arguments that may be absent during a completion, because the
	// completed argument precedes them.
	Later []string
	// Range is the position of the tool.
	Range diag.Range
}

// sourceKey identifies a policy by its source.
type sourceKey struct {
	name, reason  string
	when, verdict textKey
	role          role
	reasonExpr    textKey
	whole         diag.Range
}

type textKey struct {
	body  string
	whole diag.Range
}

func (s Source) owner() *subject { return &subject{"policy", s.Name, s.Range} }

func (s Source) key() sourceKey {
	r, verdict := s.verdict()
	return sourceKey{
		name: s.Name, reason: s.Reason, whole: s.Range, role: r,
		when: keyOfText(s.When), verdict: keyOfText(verdict), reasonExpr: keyOfText(s.ReasonExpr),
	}
}

// verdict returns the deciding text and its role, or nil unless there is exactly one.
func (s Source) verdict() (r role, verdict *diag.Text) {
	for _, v := range []struct {
		role role
		text *diag.Text
	}{{roleAllow, s.Allow}, {roleDeny, s.Deny}, {roleApproval, s.Approval}} {
		switch {
		case v.text == nil:
		case verdict != nil:
			return "", nil
		default:
			r, verdict = v.role, v.text
		}
	}
	return r, verdict
}

func keyOfText(t *diag.Text) textKey {
	if t == nil {
		return textKey{}
	}
	return textKey{t.Body(), t.All()}
}

// schemas returns the schemas of a tool that the policy can read.
func (s Source) schemas(t Tool) schemas {
	of := schemas{args: string(t.Schema), judged: s.OnResult}
	if s.OnResult {
		of.result = string(t.Result)
	}
	return of
}

// mayReadTool reports whether an expression of the policy may read the arguments or the result.
// It may return true if none does, but not the reverse.
func (s Source) mayReadTool() bool {
	if s.OnResult {
		return true
	}
	for _, t := range []*diag.Text{s.When, s.Allow, s.Deny, s.Approval, s.ReasonExpr} {
		if t != nil && mentionsArgs(*t) {
			return true
		}
	}
	return false
}

func mentionsArgs(t diag.Text) bool {
	return len(t.Body()) > maxBytes || strings.Contains(t.Body(), "args")
}

// Reads returns the first range where an expression reads a member of a variable, such as
// principal.id, or the variable as a whole. It only looks at tokens.
func Reads(t diag.Text, variable, member string) (at diag.Range, reads bool) {
	tokens, _ := checkLimits(t.Body())
	word := func(i int) string {
		if i < 0 || i >= len(tokens) {
			return ""
		}
		return t.Body()[tokens[i].start:tokens[i].end]
	}
	for i, first := range tokens {
		if first.kind != tokenIdent || word(i) != variable || word(i-1) == "." && i > 1 && isOperand(tokens[i-2], word(i-2)) {
			continue
		}
		last := first
		if word(i+1) == "." {
			next := i + 2
			if word(next) == "?" {
				next++
			}
			if word(next) != member {
				continue
			}
			last = tokens[next]
		}
		return t.Range(first.start, last.end), true
	}
	return diag.Range{}, false
}

// isOperand reports whether a dot after the token reads a member.
func isOperand(t token, word string) bool {
	return t.kind == tokenIdent || word == ")" || word == "]" || word == "}" || word == "?"
}
