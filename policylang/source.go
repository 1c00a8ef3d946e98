package policylang

import (
	"encoding/json"
	"strings"

	"github.com/mcpd/mcpd/diag"
)

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

func (s Source) owner() *owner { return &owner{"policy", s.Name, s.Range} }

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
		if t != nil && mayReadArgs(*t) {
			return true
		}
	}
	return false
}

func mayReadArgs(t diag.Text) bool {
	return len(t.Body()) > maxBytes || strings.Contains(t.Body(), "args")
}

// Reads returns where an expression first reads a member of a variable, such as
// principal.id, or the variable as a whole. It looks at the words of the text alone.
func Reads(t diag.Text, variable, member string) (at diag.Range, reads bool) {
	tokens, _ := gate(t.Body())
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
