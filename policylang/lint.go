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

// lint warns of what is most likely not meant.
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
		c.warnClaimed(x, "this key rests only on what the agent claims to be",
			"any caller can claim another agent_id and is counted anew; use principal.id or source.ip")
	}
}

// lintConstant warns of an expression that reads nothing, such as "false".
// Where pruning made it so, it is right for this tool and for others not
// constant.
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
		effect = "leave it out to count all calls together"
	case x.role == roleWhen && value == types.True:
		effect = "leave it out"
	case x.role == roleWhen:
		effect = "the policy concerns no call"
	case x.role == roleApproval && value == types.True:
		return // to ask about every call that it concerns is a rule like any other
	case x.role == roleApproval:
		effect = "it never asks"
	case (x.role == roleDeny) == (value == types.True):
		effect = "it denies every call"
	}
	c.report(x.places, 0, len(x.text.Body()), problem{
		severity: diag.Warning, code: codeConstant,
		summary: fmt.Sprintf("this is always %v", value.Value()), detail: effect,
	})
}

// wordsOf reports whether the text names a variable, pruned or not.
func (c *compiler) mentionsVariable(x *expression) bool {
	return slices.ContainsFunc(x.places.tokens, func(t token) bool {
		return t.kind == tokenIdent && c.scope.isRoot(x.text.Body()[t.start:t.end])
	})
}

// lintEnum warns of a comparison with a string that the schema rules out.
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
		detail:  cmp.Or(diag.DidYouMean(text, s.enum), "it is one of "+enumerate(s.enum)),
	})
}

// lintOptional warns of an argument that a call may leave out, where neither
// the expression nor those before it ask whether it is there.
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
		detail := "ask first, as in " + x.role.presenceTest(name)
		if strings.HasPrefix(name, "args.") && (c.tool == nil || cmp.Or(c.tool.Kind, "tool") == "tool") { // others have no defaults
			detail += ", or give the argument a default"
		}
		c.reportNode(x.places, e, problem{
			severity: diag.Warning, code: codeOptional, dependsOnTool: true, detail: detail,
			summary: fmt.Sprintf("%s may be left out, and then this %s", name, x.role.failureEffect()),
		})
	})
}

// laterProblem is what to say of a required argument that a completion may lack.
func deferredProblem(name string, r role) problem {
	ask := r.presenceTest(name)
	if r == roleAllow {
		ask = fmt.Sprintf("!has(%s) || ...", name)
	}
	return problem{
		severity: diag.Warning, code: codeOptional, dependsOnTool: true,
		summary: name + " is not there yet while an argument before it is completed, and then this denies the completion",
		detail:  "ask first, as in " + ask,
	}
}

// mayFollow reports whether e reads an argument that a completion may lack,
// and that nothing asks for.
func (c *compiler) readsDeferred(e ast.Expr) bool {
	names := path(e)
	return c.tool != nil && len(names) == 2 && names[0] == "args" &&
		slices.Contains(c.tool.Later, names[1]) && !c.asked[strings.Join(names, ".")]
}

// mayLack reports whether e reads an argument that a call may leave out, and
// that nothing asks for.
func (c *compiler) readsOptional(e ast.Expr) bool {
	s := c.scope.shapeOf(e)
	if s == nil || e.Kind() != ast.SelectKind || s.required {
		return false
	}
	names := path(e)
	return isTools(names[0]) && !c.asked[strings.Join(names, ".")]
}

// withoutAnswer says what an expression does that cannot be evaluated.
func (r role) failureEffect() string {
	if r == roleReason {
		return "gives no reason"
	}
	return "denies the call"
}

// asking is how an expression asks for an argument before it reads it.
func (r role) presenceTest(name string) string {
	if r == roleKey {
		return fmt.Sprintf("has(%s) ? %[1]s : ''", name)
	}
	return fmt.Sprintf("has(%s) && ...", name)
}

// presenceTests returns what has() asks for in e, dotted.
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

// checkStrays refuses arguments that the schema does not name, but lets pass
// as additional ones, where the expression never asks whether they are there:
// they are misspelt more often than meant.
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

// checkLiterals refuses literals that no evaluation could read.
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

// unreadable says what a literal should be, and is not, to be an argument of
// function, and why it is not where that is known.
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

// lintAllow warns of an allow that lets in, together with the when of its policy, whoever
// claims to be some agent.
func (c *compiler) lintAllow(x *expression, allow ast.Expr) {
	if requiresVerified(allow) || c.when != nil && requiresVerified(c.when) || !readsClaimed(allow) && (c.when == nil || !readsClaimed(c.when)) {
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

// claims reports whether an alternative of a condition asks what an agent claims, and
// proves nothing.
func readsClaimed(e ast.Expr) bool {
	if e.AsCall().FunctionName() == operators.LogicalOr {
		return slices.ContainsFunc(e.AsCall().Args(), readsClaimed)
	}
	return !requiresVerified(e) && readsMatching(e, func(names []string) bool { return len(names) > 0 && names[0] == "agent" })
}

func isPrincipal(names []string) bool { return len(names) > 0 && names[0] == "principal" }
func isVerified(names []string) bool  { return slices.Equal(names, []string{"agent", "verified"}) }

// asksFor reports whether an expression reads something whose dotted name is as wanted.
func readsMatching(e ast.Expr, wanted func(names []string) bool) bool {
	return contains(e, func(part ast.Expr) bool { return wanted(path(part)) })
}
