package policylang

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/mcpd/mcpd/diag"
)

// reportTypeErrors converts the errors of CEL's checker to diagnostics.
func (c *compiler) reportTypeErrors(at *positions, errs []*common.Error) {
	nodes := map[int64]ast.Expr{}
	visit(at.tree, func(e ast.Expr) { nodes[e.ID()] = e })
	follow := consequences(at.tree, errs)
	for _, err := range errs {
		e := nodes[err.ExprID]
		if e == nil {
			start, end := at.tokenRange(err.ExprID)
			c.report(at, start, end, problem{code: codeType, summary: mismatched, detail: "CEL says: " + err.Message})
			continue
		}
		if !follow[err.ExprID] {
			c.reportTypeError(at, e, err.Message)
		}
	}
}

// consequences returns the nodes that are only wrong because they are arguments of a misspelled
// macro: xs.exist(x, x > 1) declares no x.
func consequences(tree ast.Expr, errs []*common.Error) map[int64]bool {
	unknown := map[int64]bool{}
	for _, err := range errs {
		if _, ok := undeclaredName(err.Message); ok {
			unknown[err.ExprID] = true
		}
	}
	out := map[int64]bool{}
	visit(tree, func(e ast.Expr) {
		if !unknown[e.ID()] || len(e.AsCall().Args()) < 2 {
			return
		}
		first := e.AsCall().Args()[0].AsIdent()
		if first == "" {
			return
		}
		for _, arg := range e.AsCall().Args() {
			visit(arg, func(part ast.Expr) {
				if part.AsIdent() == first {
					out[part.ID()] = true
				}
			})
		}
	})
	return out
}

// undeclaredName extracts the name from CEL's error for an undeclared name.
func undeclaredName(message string) (string, bool) {
	rest, ok := strings.CutPrefix(message, "undeclared reference to '")
	if !ok {
		return "", false
	}
	return rest[:max(0, strings.LastIndex(rest, "' (in container"))], true
}

func (c *compiler) reportTypeError(at *positions, e ast.Expr, message string) {
	if name, ok := undeclaredName(message); ok {
		c.reportUnknownName(at, e, name)
		return
	}
	if field, ok := between(message, "undefined field '", "'"); ok {
		c.reportUnknownMember(at, e, field)
		return
	}
	if m, ok := readMismatch(message); ok {
		c.reportMismatch(at, e, m)
		return
	}
	if t, ok := between(message, "type '", "' does not support field selection"); ok {
		c.reportNoMembers(at, e, t)
		return
	}
	if rest, ok := between(message, "expected type '", "'"); ok {
		_, found, _ := strings.Cut(message, "' but found '")
		c.reportNode(at, e, problem{code: codeType, dependsOnTool: readsTool(e), summary: fmt.Sprintf(
			"this must be %s, but it is %s", typeWords(rest), typeWords(strings.TrimSuffix(found, "'"))),
			detail: "compare it or convert it, as with ==, string(…) or int(…)"})
		return
	}
	if t, ok := between(message, "expression of type '", "' cannot be range of a comprehension"); ok {
		c.reportNode(at, e, problem{code: codeType, dependsOnTool: readsTool(e),
			summary: fmt.Sprintf("%s has no elements", typeWords(t)),
			detail:  "use exists, all, filter and map on lists and maps"})
		return
	}
	c.reportNode(at, e, problem{code: codeType, summary: mismatched, detail: "CEL says: " + message})
}

// between returns the part of s from the prefix before up to after.
func between(s, before, after string) (string, bool) {
	rest, ok := strings.CutPrefix(s, before)
	if !ok {
		return "", false
	}
	i := strings.Index(rest, after)
	if i < 0 {
		return "", false
	}
	return rest[:i], true
}

// readsTool reports whether e reads data of a tool: its arguments or its result.
func readsTool(e ast.Expr) bool {
	return reads(e, "args") || reads(e, "result") || reads(e, "content")
}

// reads reports whether e reads the variable name.
func reads(e ast.Expr, name string) bool {
	return contains(e, func(part ast.Expr) bool { return part.AsIdent() == name })
}

// rejectForms reports features of CEL that policies exclude: object literals, and macro
// variables that shadow a variable of the policy. It returns true if there are any.
func (c *compiler) rejectForms(at *positions) bool {
	refused := false
	visit(at.tree, func(e ast.Expr) {
		switch e.Kind() {
		case ast.IdentKind:
			if at.role == roleFrom && strings.TrimPrefix(e.AsIdent(), ".") == "source" {
				refused = true
				c.reportNode(at, e, problem{
					code: codeName, summary: "an input cannot read \"source\"",
					detail: "use principal, or decide by source in a policy",
				})
			}
			return
		case ast.StructKind:
			refused = true
			c.reportNode(at, e, problem{
				code: codeType, summary: "an expression cannot create objects",
				detail: "compare each member, or write a map such as {\"a\": 1}",
			})
			return
		case ast.ComprehensionKind:
		default:
			return
		}
		comp := e.AsComprehension()
		names := []string{comp.IterVar(), comp.IterVar2(), comp.AccuVar()}
		if i := slices.IndexFunc(names, c.scope.isRoot); i >= 0 {
			refused = true
			c.reportNode(at, e, problem{
				code:    codeName,
				summary: fmt.Sprintf("%q is already a name in policies", names[i]),
				detail:  "give the elements another name, such as x",
			})
		}
	})
	return refused
}

// reportMismatch reports an operator or function with wrong argument types.
func (c *compiler) reportMismatch(at *positions, e ast.Expr, m mismatch) {
	p := problem{code: codeType, dependsOnTool: readsTool(e), summary: mismatched}
	args := e.AsCall().Args()
	if !m.method && len(m.args) != len(args) {
		c.reportNode(at, e, p)
		return
	}
	switch m.function {
	case operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
		p.summary = fmt.Sprintf("cannot compare %s with %s", typeWords(m.args[0]), typeWords(m.args[1]))
		p.detail = cmp.Or(advise(args[1], m.args[0]), advise(args[0], m.args[1]), "compare values of one type")
	case operators.In:
		p.summary = fmt.Sprintf("cannot look for %s in %s", typeWords(m.args[0]), typeWords(m.args[1]))
		p.detail = "use in to find an element in a list, or a key in a map"
		if notNull(m.args[1]) == "string" {
			p.detail += "; in a string, use .contains('x')"
		}
	case operators.LogicalNot:
		p.summary = fmt.Sprintf("! needs true or false, but this is %s", typeWords(m.args[0]))
		p.detail = "compare it with a value, such as with == or >="
	case operators.Conditional:
		p.summary = fmt.Sprintf("the two results of ?: are %s and %s", typeWords(m.args[1]), typeWords(m.args[2]))
		p.detail = "give both the same type"
		if m.args[0] != "bool" && m.args[0] != "dyn" {
			p.summary = fmt.Sprintf("the condition of ?: must be true or false, but it is %s", typeWords(m.args[0]))
			p.detail = "compare it with a value, such as with == or >="
		}
	case operators.Index:
		p.summary = fmt.Sprintf("%s cannot be read with [%s]", typeWords(m.args[0]), typeWords(m.args[1]))
		p.detail = "use an integer for a list, or a key for a map"
		if !strings.HasPrefix(m.args[0], "list") {
			p.detail = cmp.Or(dotted(args), p.detail)
		}
	case operators.Negate:
		p.summary = fmt.Sprintf("- needs a number, but this is %s", typeWords(m.args[0]))
		p.detail = "convert it, as with int(...) or double(...)"
	case operators.Modulo:
		p.summary = fmt.Sprintf("%% does not work between %s and %s", typeWords(m.args[0]), typeWords(m.args[1]))
		p.detail = "both sides must be integers; int(...) truncates a number"
	default:
		p.summary, p.detail = explainCall(m)
	}
	c.reportNode(at, e, p)
}

// dotted returns how to read a member of an object that was accessed like a map.
func dotted(args []ast.Expr) string {
	owner := path(args[0])
	member, ok := textIn(args[1])
	if owner == nil || !ok {
		return ""
	}
	if tokens, mistake := checkLimits(member); mistake != nil || len(tokens) != 2 || tokens[0].kind != tokenIdent {
		member = "`" + member + "`"
	}
	return fmt.Sprintf("write %s.%s", strings.Join(owner, "."), member)
}

func explainCall(m mismatch) (summary, detail string) {
	if sign := signOf(m.function); sign != "" {
		return fmt.Sprintf("%s does not work between %s and %s", sign, typeWords(m.args[0]), typeWords(m.args[1])),
			"both sides must be numbers, or for + both strings or both lists"
	}
	args := m.args
	summary = m.function + "() "
	if m.method {
		summary += fmt.Sprintf("on %s ", typeWords(args[0]))
		args = args[1:]
	}
	if len(args) == 0 {
		return summary + "does not work without arguments", "see the manual of the tool language for its arguments"
	}
	summary += "does not take "
	for i, t := range args {
		if i > 0 {
			summary += ", "
		}
		summary += typeWords(t)
	}
	if m.function == "contains" && strings.HasPrefix(m.args[0], "list") {
		return summary, otherLanguageName("includes")
	}
	if inner, ok := strings.CutPrefix(m.args[0], "optional_type("); ok && m.function == "orValue" {
		return summary, fmt.Sprintf("its default must be %s, like the value", typeWords(strings.TrimSuffix(inner, ")")))
	}
	return summary, "see the manual of the tool language for its arguments"
}

// advise returns how to write a literal so that it has the type want.
func advise(e ast.Expr, want string) string {
	switch v := e.AsLiteral().(type) {
	case types.String:
		_, err := strconv.ParseFloat(string(v), 64)
		switch want = notNull(want); {
		case (want == "int" || want == "double") && err == nil:
			return fmt.Sprintf("write %s without quotes", string(v))
		case want == "bool" && (v == "true" || v == "false"):
			return fmt.Sprintf("write %s without quotes", string(v))
		}
	case types.Int:
		if notNull(want) == "string" {
			return fmt.Sprintf("write %q, between quotes", strconv.FormatInt(int64(v), 10))
		}
	case types.Bool:
		if notNull(want) == "string" {
			return fmt.Sprintf("write \"%t\", between quotes", bool(v))
		}
	case types.Null:
		return "it is never null; test it with has(...)"
	}
	return ""
}

// reportUnknownName reports a variable or function that does not exist.
func (c *compiler) reportUnknownName(at *positions, e ast.Expr, name string) {
	start, end := at.tokenRange(e.ID())
	if e.Kind() == ast.CallKind {
		c.report(at, start, end, problem{
			code:    codeName,
			summary: fmt.Sprintf("there is no function %q", name),
			detail:  cmp.Or(otherLanguageName(name), diag.DidYouMean(name, c.scope.functions()), "see the manual of the tool language for the functions"),
		})
		return
	}
	c.report(at, start, end, problem{
		code: codeName, summary: fmt.Sprintf("there is no %q here", name), detail: c.nameAdvice(name),
		dependsOnTool: c.declares("args", name),
	})
}

// nameAdvice returns what to write for a name that does not exist.
func (c *compiler) nameAdvice(name string) string {
	switch {
	case c.declares("args", name):
		return fmt.Sprintf("write args.%s for the argument", name)
	case c.declares("vars", name):
		return fmt.Sprintf("write vars.%s for the variable", name)
	case name == "input" && c.scope.roots["args"] != nil:
		return "in policies, write args for the arguments"
	case (name == "result" || name == "content") && c.scope.roots["args"] != nil:
		return "a policy with on = \"result\" judges what a call returns"
	case name == "args":
		return "a computed input cannot read the arguments"
	case name == "local" || name == "secret":
		return fmt.Sprintf("%s.* exists only in HCL expressions; declare a variable and write vars.*", name)
	}
	names := c.scope.names()
	if c.scope.roots["args"] == nil { // for an input, which cannot read args
		names = slices.DeleteFunc(names, func(name string) bool { return name == "source" })
	}
	return cmp.Or(diag.DidYouMean(name, names), "put text in quotes; the available names are "+strings.Join(names, ", "))
}

func (c *compiler) declares(root, name string) bool {
	s := c.scope.roots[root]
	return s != nil && s.fields[name] != nil
}

// functions returns the names of all functions and macros that authors can write.
func (s *scope) functions() []string {
	names := slices.Collect(maps.Keys(s.cel.Functions()))
	for _, m := range s.cel.Macros() {
		names = append(names, m.Function())
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(n string) bool {
		return n == "" || !isLetter(n[0]) || n[0] == '_'
	})
}

// reportUnknownMember reports a member that its object does not declare.
func (c *compiler) reportUnknownMember(at *positions, e ast.Expr, name string) {
	operand := e
	if e.Kind() == ast.SelectKind {
		operand = e.AsSelect().Operand()
	} else if len(e.AsCall().Args()) > 0 {
		operand = e.AsCall().Args()[0]
	}
	start, end := at.tokenRange(e.ID())
	c.report(at, start, end, c.unknownMember(at.role, operand, name))
}

// unknownMember describes an access to a member that operand does not have.
func (c *compiler) unknownMember(r role, operand ast.Expr, name string) problem {
	names, owner := path(operand), c.scope.shapeOf(operand)
	p := problem{code: codeName, summary: fmt.Sprintf("there is no member %q", name)}
	if owner == nil {
		return p
	}
	meant := diag.DidYouMean(name, owner.names())
	p.detail = cmp.Or(meant, memberList(owner))
	switch {
	case names[0] == "args" || names[0] == "result":
		p.code, p.dependsOnTool = codeArgument, true
		lacks, verb := "%s has no argument %q", "take"
		if names[0] == "result" {
			lacks, verb = "the result of %s has no %q", "have"
		}
		p.summary = fmt.Sprintf(lacks, c.toolName(), strings.Join(append(names[1:], name), "."))
		if meant == "" {
			p.detail += fmt.Sprintf("; if only some tools %s it, test first: %s", verb, r.presenceTest(strings.Join(names, ".")+"."+name))
		}
	case names[0] == "vars":
		p.summary = fmt.Sprintf("there is no variable %q", strings.Join(append(names[1:], name), "."))
		if len(names) == 1 {
			p.detail = cmp.Or(meant, fmt.Sprintf("declare it in mcpd.hcl: variable %q { … }", name))
		}
	default:
		p.summary = fmt.Sprintf("%s has no %q", strings.Join(names, "."), name)
	}
	return p
}

// memberList lists the members of an object.
func memberList(owner *shape) string {
	if len(owner.fields) == 0 {
		return "it has none"
	}
	return "it has " + enumerate(owner.names())
}

func (c *compiler) toolName() string {
	if c.tool == nil {
		return "the tool"
	}
	return fmt.Sprintf("%s %q", cmp.Or(c.tool.Kind, "tool"), c.tool.Name)
}

// reportNoMembers reports an access to a member of a CEL type t without members.
func (c *compiler) reportNoMembers(at *positions, e ast.Expr, t string) {
	start, end := at.tokenRange(e.ID())
	owner, meant := "this", ""
	if e.Kind() == ast.SelectKind {
		meant = cmp.Or(otherLanguageName(e.AsSelect().FieldName()), timeMethodHint(t, e.AsSelect().FieldName()))
		if names := path(e.AsSelect().Operand()); names != nil {
			owner = strings.Join(names, ".")
		}
	}
	c.report(at, start, end, problem{
		code: codeType, dependsOnTool: readsTool(e),
		summary: fmt.Sprintf("%s is %s and has no members", owner, typeWords(t)), detail: cmp.Or(meant, "remove the member; only objects have members"),
	})
}

// otherLanguageName returns the CEL equivalent of a function or member of other languages, or
// "".
func otherLanguageName(name string) string {
	switch name {
	case "length", "len", "count":
		return "write .size()"
	case "isEmpty", "empty":
		return "write .size() == 0"
	case "toLowerCase", "toLower", "lower", "lowercase", "downcase":
		return "write .lowerAscii()"
	case "toUpperCase", "toUpper", "upper", "uppercase", "upcase":
		return "write .upperAscii()"
	case "includes":
		return "write .contains('x') for a string, or 'x' in list for a list"
	case "test", "match", "regex", "regexMatch":
		return "write .matches('pattern')"
	case "some", "any":
		return "write .exists(x, x == 'a')"
	case "every":
		return "write .all(x, x == 'a')"
	case "parseInt", "Number", "parseFloat", "float":
		return "write int(x) or double(x)"
	case "str", "String", "toString":
		return "write string(x)"
	}
	return ""
}

// timeMethodHint returns how to read a part of a timestamp, such as the year, or "" if t is not
// a timestamp.
func timeMethodHint(t, name string) string {
	if t != "timestamp" {
		return ""
	}
	return cmp.Or(map[string]string{
		"hour": "write .getHours()", "minute": "write .getMinutes()", "second": "write .getSeconds()",
		"weekday": "write .getDayOfWeek(), where 0 is Sunday", "dayofweek": "write .getDayOfWeek(), where 0 is Sunday",
		"day": "write .getDate()", "date": "write .getDate()",
		"month": "write .getMonth(), where 0 is January", "year": "write .getFullYear()",
	}[strings.ToLower(strings.TrimSuffix(name, "s"))], "write a function, such as .getHours() or .getDayOfWeek()")
}
