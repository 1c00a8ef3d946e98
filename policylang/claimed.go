package policylang

import (
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"

	"github.com/mcpd/mcpd/diag"
)

// lintAllow warns of an allow that lets in, together with the when of its policy, whoever
// claims to be some agent.
func (c *compiler) lintAllow(x *expression, allow ast.Expr) {
	if proves(allow) || c.when != nil && proves(c.when) || !claims(allow) && (c.when == nil || !claims(c.when)) {
		return
	}
	c.warnClaimed(x, "this allow rests only on what the agent claims to be",
		"any caller can claim any agent_id; ask for principal.* as well, or for agent.verified")
}

func (c *compiler) warnClaimed(x *expression, summary, detail string) {
	c.report(x.places, 0, len(x.text.Body()), problem{
		severity: diag.Warning, code: codeClaimed, summary: summary, detail: detail,
	})
}

// proves reports whether a condition holds only for callers of whom something is proved:
// each of its alternatives asks for that.
func proves(e ast.Expr) bool {
	if e.Kind() == ast.CallKind {
		switch call := e.AsCall(); call.FunctionName() {
		case operators.LogicalOr:
			return !slices.ContainsFunc(call.Args(), func(e ast.Expr) bool { return !proves(e) })
		case operators.LogicalAnd:
			return slices.ContainsFunc(call.Args(), proves)
		case operators.LogicalNot:
			return asksFor(e, isPrincipal)
		}
	}
	return asksFor(e, isPrincipal) || asksFor(e, isVerified)
}

// claims reports whether an alternative of a condition asks what an agent claims, and
// proves nothing.
func claims(e ast.Expr) bool {
	if e.Kind() == ast.CallKind && e.AsCall().FunctionName() == operators.LogicalOr {
		return slices.ContainsFunc(e.AsCall().Args(), claims)
	}
	return !proves(e) && asksFor(e, func(names []string) bool { return len(names) > 0 && names[0] == "agent" })
}

func isPrincipal(names []string) bool { return len(names) > 0 && names[0] == "principal" }
func isVerified(names []string) bool  { return slices.Equal(names, []string{"agent", "verified"}) }

// asksFor reports whether an expression reads something whose dotted name is as wanted.
func asksFor(e ast.Expr, wanted func(names []string) bool) bool {
	found := false
	visit(e, func(part ast.Expr) { found = found || wanted(path(part)) })
	return found
}
