// Package policylang is the one door to CEL, the language of policies, of the
// keys of limits and of `from` values.
//
// An [Env] knows the operator's variables and compiles: a [Source] for one
// [Tool] becomes a [Policy], a [KeySource] a [Key], a text becomes an [Expr]. Everything that an
// expression can read has a type, the arguments from the JSON Schema of the
// tool's input, so that most mistakes are diagnostics, in the places of the
// file, before anything is served. A policy judges an [Input]; its [Decision]
// is the same for the same input, always.
//
// # Flow
//
// A text passes a gate that bounds its size and nesting, and CEL's parser.
// has() of an argument that the tool cannot have is false and takes what it
// guards with it (rewrite.go). CEL's checker finds the types; integers beside
// numbers are promoted (rewrite.go). What is left must be of the type that
// its role needs, and its cost with ordinary data, estimated from the schema,
// must be bounded (cost.go). Then it is planned once and evaluated many times on
// the Go values where they stand (evaluation.go). Its loops and its calls pay for their
// work (metered_program.go) from an allowance of 100 ms for each decision (meter.go).
//
// # Denial is the answer to every doubt
//
// An expression that cannot be evaluated, for want of a key, by a wrong type
// or for taking too long, denies. Callers are told [GenericReason], operators
// the place and the kind of the problem; neither is told values.
//
// [Policy.Partial] is the same evaluation with arguments that are not known.
// It is sure of what it says, or says [Unknown].
//
// # What it refuses to do
//
// It reads no clock, no file and no environment while it decides: the time is
// part of the input, time zones are found when a policy is compiled. It knows
// nothing of HCL, of the order of policies or of what a denial looks like on a
// wire.
package policylang

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

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
func (p *Policy) decide(r *evaluation) Decision {
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
			return p.denyWithError(d, err)
		}
	}
	return p.evalVerdict(r, d)
}

// judge asks the condition that decides.
func (p *Policy) evalVerdict(r *evaluation, d Decision) Decision {
	var err *failure
	d.Verdict, err = p.verdict.decide(r)
	d.Range = p.verdict.whole
	switch {
	case d.Verdict == Failed:
		return p.denyWithError(d, err)
	case d.Verdict == Open:
		d.Outcome = Unknown
		return d
	case (d.Verdict == True) == (p.verdict.role == roleAllow):
		d.Outcome = Allow
		return d
	case p.verdict.role == roleApproval:
		d.Outcome = Consent
	}
	return p.withReason(r, d)
}

// fail denies because the policy could not be evaluated.
func (p *Policy) denyWithError(d Decision, err *failure) Decision {
	d.Outcome, d.Reason, d.Err, d.Range = Deny, GenericReason, p.wrapError(err), err.place
	return d
}

// because adds the policy's reason to what it decides.
func (p *Policy) withReason(r *evaluation, d Decision) Decision {
	d.Reason = cmp.Or(p.reason, GenericReason)
	if p.reasonExpr == nil {
		return d
	}
	reason, cut, err := p.reasonExpr.evalReason(r)
	if err != nil {
		d.Err = p.wrapError(err)
	}
	d.Reason, d.Cut = cmp.Or(reason, d.Reason), cut
	return d
}

func (p *Policy) wrapError(err *failure) error {
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

// Source is a policy as it was written. Exactly one of Allow, Deny and Approval is
// set; a nil Text was not written.
type Source struct {
	// Name is the policy's name, for messages.
	Name string
	// OnResult says that the policy judges what a call returns, which it sees as result,
	// and not whether the call may be made.
	OnResult bool
	// When says which calls the policy concerns; nil means all.
	When *diag.Text
	// Allow must be true for the call to go on, Deny must be false.
	Allow, Deny *diag.Text
	// Approval is true for calls that go on only when their user consents.
	Approval *diag.Text
	// Reason is what a denied caller, or a user who is asked, is told, [GenericReason]
	// when it is empty.
	Reason string
	// ReasonExpr computes the reason; it is evaluated only when it is told. Where
	// it cannot be, Reason is told.
	ReasonExpr *diag.Text
	// Range is where the policy stands.
	Range diag.Range
}

// Tool is what a policy is compiled against.
type Tool struct {
	// Kind is that of [ToolFacts], "tool" when empty, and Name the tool's name;
	// both are for messages.
	Kind, Name string
	// Schema is the JSON Schema of the tool's arguments, with those that
	// `from` supplies. Nil means that nothing is known of them.
	Schema json.RawMessage
	// Result is the JSON Schema of what the tool returns, for policies that judge that.
	// Nil means that nothing is known of it.
	Result json.RawMessage
	// Later are required arguments that a completion may lack, because another
	// one before them is completed.
	Later []string
	// Range is where the tool stands.
	Range diag.Range
}

// sourceKey tells policies apart.
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

// verdict returns the text that decides, and its role; nil unless there is exactly one.
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

// schemas returns those of a tool that the policy sees.
func (s Source) schemas(t Tool) schemas {
	of := schemas{args: string(t.Schema), judged: s.OnResult}
	if s.OnResult {
		of.result = string(t.Result)
	}
	return of
}

// mayReadTool reports whether any of the policy's expressions may read the
// arguments or the result. It errs to the side of yes.
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

// Reads returns where an expression first reads a member of a variable, such as
// principal.id, or the variable as a whole. It looks at the words of the text alone.
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

// isOperand reports whether a dot behind a token leads to a member of it.
func isOperand(t token, word string) bool {
	return t.kind == tokenIdent || word == ")" || word == "]" || word == "}" || word == "?"
}
