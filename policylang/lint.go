package policylang

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"

	"github.com/mcpd/mcpd/diag"
)

// lint warns of expressions that are probably not intended.
func (c *compiler) lint(x *expression, tree *ast.AST) {
	c.lintConstant(x)
	c.lintOptional(x, tree.Expr())
	visit(tree.Expr(), func(e ast.Expr) { c.lintEnum(x.places, e) })
	switch {
	case x.role == roleWhen:
		c.when = tree.Expr()
	case x.role == roleFrom:
		c.findWholeReads(x.places, tree.Expr())
	case x.role == roleAllow:
		c.lintAllow(x, tree.Expr())
	case x.role == roleKey && x.names["agent"] && !x.names["principal"] && !x.names["source"] && !readsMatching(tree.Expr(), isVerified):
		c.warnClaimed(x, "this key depends only on an unverified agent_id",
			"a caller can change its agent_id to start a new count; use principal.id or source.ip")
	}
}

// lintConstant warns of an expression that reads no variable, such as "false". An expression
// that pruning made constant is valid: it is not constant for other tools.
func (c *compiler) lintConstant(x *expression) {
	if len(x.names) > 0 || x.role == roleReason || x.role == roleFrom || c.mentionsVariable(x) {
		return
	}
	r := c.scope.env.start(context.Background(), Input{})
	defer c.scope.env.stop(r)
	value, _, err := x.program.Eval(r)
	if err != nil {
		return
	}
	effect := "it never denies"
	switch {
	case x.role == roleKey:
		effect = "remove it to count all calls together"
	case x.role == roleWhen && value == types.True:
		effect = "remove it"
	case x.role == roleWhen:
		effect = "the policy applies to no call"
	case x.role == roleApproval && value == types.True:
		return // requiring approval for every matching call is a valid rule
	case x.role == roleApproval:
		effect = "it never requires approval"
	case (x.role == roleDeny) == (value == types.True):
		effect = "it denies every call"
	}
	c.report(x.places, 0, len(x.text.Body()), problem{
		severity: diag.Warning, code: codeConstant,
		summary: fmt.Sprintf("this is always %v", value.Value()), detail: effect,
	})
}

// mentionsVariable reports whether the text names a variable, even in a pruned part.
func (c *compiler) mentionsVariable(x *expression) bool {
	return slices.ContainsFunc(x.places.tokens, func(t token) bool {
		return t.kind == tokenIdent && c.scope.isRoot(x.text.Body()[t.start:t.end])
	})
}

// lintEnum warns of a comparison with a string that the schema excludes.
func (c *compiler) lintEnum(at *positions, e ast.Expr) {
	args := e.AsCall().Args()
	switch e.AsCall().FunctionName() {
	case operators.Equals, operators.NotEquals:
		c.lintEnumValue(at, args[0], args[1])
		c.lintEnumValue(at, args[1], args[0])
	case operators.In:
		for _, element := range args[1].AsList().Elements() {
			c.lintEnumValue(at, args[0], element)
		}
	}
}

func (c *compiler) lintEnumValue(at *positions, member, value ast.Expr) {
	s := c.scope.shapeOf(member)
	text, ok := textIn(value)
	if s == nil || len(s.enum) == 0 || !ok || slices.Contains(s.enum, text) {
		return
	}
	names := path(member)
	c.reportNode(at, value, problem{
		severity: diag.Warning, code: codeEnum, dependsOnTool: isTools(names[0]),
		summary: fmt.Sprintf("%s is never %s", strings.Join(names, "."), shorten(text)),
		detail:  cmp.Or(diag.DidYouMean(text, s.enum), "use one of "+enumerate(s.enum)),
	})
}

// lintOptional warns of an optional argument that neither the expression nor those before it
// test with has().
func (c *compiler) lintOptional(x *expression, tree ast.Expr) {
	if c.asked == nil {
		c.asked = map[string]bool{}
	}
	maps.Copy(c.asked, presenceTests(tree))
	warned := map[string]bool{}
	visit(tree, func(e ast.Expr) {
		if e.Kind() != ast.SelectKind || e.AsSelect().IsTestOnly() {
			return
		}
		name := strings.Join(path(e), ".")
		later := x.role != roleReason && c.readsDeferred(e)
		if warned[name] || !later && (!c.readsOptional(e) || c.readsOptional(e.AsSelect().Operand())) {
			return
		}
		warned[name] = true
		if later {
			c.reportNode(x.places, e, deferredProblem(name, x.role))
			return
		}
		detail := "test for it first, as in " + x.role.presenceTest(name)
		if strings.HasPrefix(name, "args.") && (c.tool == nil || cmp.Or(c.tool.Kind, "tool") == "tool") { // others have no defaults
			detail += ", or give the argument a default"
		}
		c.reportNode(x.places, e, problem{
			severity: diag.Warning, code: codeOptional, dependsOnTool: true, detail: detail,
			summary: fmt.Sprintf("%s is optional, and without it this %s", name, x.role.failureEffect()),
		})
	})
}

// deferredProblem describes a required argument that may be absent during a completion.
func deferredProblem(name string, r role) problem {
	ask := r.presenceTest(name)
	if r == roleAllow {
		ask = fmt.Sprintf("!has(%s) || ...", name)
	}
	return problem{
		severity: diag.Warning, code: codeOptional, dependsOnTool: true,
		summary: name + " is absent while an earlier argument is completed, and then this denies the completion",
		detail:  "test for it first, as in " + ask,
	}
}

// readsDeferred reports whether e reads an argument that may be absent during a completion and
// is not tested with has().
func (c *compiler) readsDeferred(e ast.Expr) bool {
	names := path(e)
	return c.tool != nil && len(names) == 2 && names[0] == "args" &&
		slices.Contains(c.tool.Later, names[1]) && !c.asked[strings.Join(names, ".")]
}

// readsOptional reports whether e reads an optional argument that is not tested with has().
func (c *compiler) readsOptional(e ast.Expr) bool {
	s := c.scope.shapeOf(e)
	if s == nil || e.Kind() != ast.SelectKind || s.required {
		return false
	}
	names := path(e)
	return isTools(names[0]) && !c.asked[strings.Join(names, ".")]
}

// failureEffect describes the effect of an expression that cannot be evaluated.
func (r role) failureEffect() string {
	if r == roleReason {
		return "gives no reason"
	}
	return "denies the call"
}

// presenceTest returns how an expression tests for an argument before it reads it.
func (r role) presenceTest(name string) string {
	if r == roleKey {
		return fmt.Sprintf("has(%s) ? %[1]s : ''", name)
	}
	return fmt.Sprintf("has(%s) && ...", name)
}

// presenceTests returns the dotted operands of has() in e.
func presenceTests(e ast.Expr) map[string]bool {
	asked := map[string]bool{}
	visit(e, func(part ast.Expr) {
		if !part.AsSelect().IsTestOnly() {
			return
		}
		if owner := path(part.AsSelect().Operand()); owner != nil {
			asked[strings.Join(append(owner, part.AsSelect().FieldName()), ".")] = true
		}
	})
	return asked
}

// checkUndeclaredArgs reports arguments that the schema allows but does not name, unless the
// expression tests for them: they are probably misspelled.
func (c *compiler) checkUndeclaredArgs(at *positions, tree *ast.AST) bool {
	asked := presenceTests(tree.Expr())
	ok := true
	visit(tree.Expr(), func(e ast.Expr) {
		if e.Kind() != ast.SelectKind || e.AsSelect().IsTestOnly() {
			return
		}
		owner := c.scope.shapeOf(e.AsSelect().Operand())
		name := e.AsSelect().FieldName()
		if owner == nil || !owner.open || owner.fields[name] != nil || asked[strings.Join(path(e), ".")] {
			return
		}
		ok = false
		start, end := at.tokenRange(e.ID())
		c.report(at, start, end, c.unknownMember(at.role, e.AsSelect().Operand(), name))
	})
	return ok
}

// checkLiterals reports literals that no evaluation can parse.
func (c *compiler) checkLiterals(at *positions, tree *ast.AST) bool {
	ok := true
	visit(tree.Expr(), func(e ast.Expr) {
		args := e.AsCall().Args()
		if len(args) == 0 {
			return
		}
		arg := args[len(args)-1]
		text, isString := arg.AsLiteral().(types.String)
		if what, detail := literalProblem(e.AsCall().FunctionName(), text); isString && what != "" {
			ok = false
			c.reportNode(at, arg, problem{code: codeType, summary: "this is not " + what, detail: detail})
		}
	})
	return ok
}

// literalProblem describes the literal that function requires, and how to fix text. It returns
// "" if text is valid.
func literalProblem(function string, text types.String) (what, detail string) {
	switch function {
	case overloads.Matches:
		if _, err := newPattern(string(text)); err != nil {
			return "a regular expression that RE2 knows", strings.TrimPrefix(err.Error(), "error parsing regexp: ")
		}
	case overloads.TypeConvertTimestamp:
		if types.IsError(text.ConvertToType(types.TimestampType)) {
			return "a timestamp", "write a time with its zone, such as 2026-01-31T09:00:00Z"
		}
	case overloads.TypeConvertDuration:
		if types.IsError(text.ConvertToType(types.DurationType)) {
			return "a duration", "write numbers with units, such as 90m or 1h30m"
		}
	case overloads.TypeConvertInt:
		if types.IsError(text.ConvertToType(types.IntType)) {
			return "an integer", "write digits, as in int('42')"
		}
	case overloads.TypeConvertDouble:
		if types.IsError(text.ConvertToType(types.DoubleType)) {
			return "a number", "write digits, as in double('4.2')"
		}
	}
	return "", ""
}

// lintAllow warns of an allow that, together with the `when` of its policy, only tests the
// unverified identity of an agent.
func (c *compiler) lintAllow(x *expression, allow ast.Expr) {
	if requiresVerified(allow) || c.when != nil && requiresVerified(c.when) || !readsClaimed(allow) && (c.when == nil || !readsClaimed(c.when)) {
		return
	}
	c.warnClaimed(x, "this allow depends only on an unverified agent identity",
		"any caller can claim any agent_id; also test principal.* or agent.verified")
}

func (c *compiler) warnClaimed(x *expression, summary, detail string) {
	c.report(x.places, 0, len(x.text.Body()), problem{
		severity: diag.Warning, code: codeClaimed, summary: summary, detail: detail,
	})
}

// requiresVerified reports whether each alternative of a condition tests something verified.
func requiresVerified(e ast.Expr) bool {
	switch call := e.AsCall(); call.FunctionName() {
	case operators.LogicalOr:
		return !slices.ContainsFunc(call.Args(), func(e ast.Expr) bool { return !requiresVerified(e) })
	case operators.LogicalAnd:
		return slices.ContainsFunc(call.Args(), requiresVerified)
	case operators.LogicalNot:
		return readsMatching(e, isPrincipal)
	}
	return readsMatching(e, isPrincipal) || readsMatching(e, isVerified)
}

// readsClaimed reports whether an alternative of a condition reads the claimed identity of an
// agent and nothing verified.
func readsClaimed(e ast.Expr) bool {
	if e.AsCall().FunctionName() == operators.LogicalOr {
		return slices.ContainsFunc(e.AsCall().Args(), readsClaimed)
	}
	return !requiresVerified(e) && readsMatching(e, func(names []string) bool { return len(names) > 0 && names[0] == "agent" })
}

func isPrincipal(names []string) bool { return len(names) > 0 && names[0] == "principal" }
func isVerified(names []string) bool  { return slices.Equal(names, []string{"agent", "verified"}) }

// readsMatching reports whether an expression reads a dotted name that wanted accepts.
func readsMatching(e ast.Expr, wanted func(names []string) bool) bool {
	return contains(e, func(part ast.Expr) bool { return wanted(path(part)) })
}
