package policylang

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"

	"github.com/mcpd/mcpd/diag"
)

// explainName is about a variable or function that does not exist.
func (c *compiler) explainName(at *places, e ast.Expr, name string) {
	start, end := at.point(e.ID())
	if e.Kind() == ast.CallKind {
		c.report(at, start, end, problem{
			code:    codeName,
			summary: fmt.Sprintf("there is no function %q", name),
			detail:  orElse(foreign(name), orElse(diag.DidYouMean(name, c.scope.functions()), "the manual of the tool language lists the functions")),
		})
		return
	}
	c.report(at, start, end, problem{
		code: codeName, summary: fmt.Sprintf("there is no %q here", name), detail: c.insteadOf(name),
		ofTool: c.declares("args", name),
	})
}

// insteadOf says what to write for a name that does not exist.
func (c *compiler) insteadOf(name string) string {
	switch {
	case c.declares("args", name):
		return fmt.Sprintf("an argument is written args.%s", name)
	case c.declares("vars", name):
		return fmt.Sprintf("a variable is written vars.%s", name)
	case name == "input" && c.scope.roots["args"] != nil:
		return "in policies the arguments are args"
	case (name == "result" || name == "content") && c.scope.roots["args"] != nil:
		return "a policy with on = \"result\" judges what a call returns"
	case name == "args":
		return "the arguments are not known where a value for one of them is computed"
	case name == "local" || name == "secret":
		return fmt.Sprintf("%s.* exists in HCL expressions only; declare a variable and write vars.*", name)
	}
	names := c.scope.names()
	if c.scope.roots["args"] == nil { // of an input, which may not read it
		names = slices.DeleteFunc(names, func(name string) bool { return name == "source" })
	}
	return orElse(diag.DidYouMean(name, names), "text belongs between quotes; the names to use are "+strings.Join(names, ", "))
}

func (c *compiler) declares(root, name string) bool {
	s := c.scope.roots[root]
	return s != nil && s.fields[name] != nil
}

// functions returns the names of all functions and macros that can be written.
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

// explainMember is about a member that its object does not declare.
func (c *compiler) explainMember(at *places, e ast.Expr, name string) {
	operand := e
	if e.Kind() == ast.SelectKind {
		operand = e.AsSelect().Operand()
	} else if e.Kind() == ast.CallKind && len(e.AsCall().Args()) > 0 {
		operand = e.AsCall().Args()[0]
	}
	start, end := at.point(e.ID())
	c.report(at, start, end, c.unknownMember(at.role, operand, name))
}

// unknownMember says that what operand reads has no member of this name.
func (c *compiler) unknownMember(r role, operand ast.Expr, name string) problem {
	names, owner := path(operand), c.scope.shapeOf(operand)
	p := problem{code: codeName, summary: fmt.Sprintf("there is no member %q", name)}
	if owner == nil {
		return p
	}
	meant := diag.DidYouMean(name, owner.names())
	p.detail = orElse(meant, choices(owner))
	switch {
	case names[0] == "args":
		p.code, p.ofTool = codeArgument, true
		p.summary = fmt.Sprintf("%s has no argument %q", c.toolName(), strings.Join(append(names[1:], name), "."))
		if meant == "" {
			p.detail += "; where only some take it, ask first: " + r.asking(strings.Join(names, ".")+"."+name)
		}
	case names[0] == "result":
		p.code, p.ofTool = codeArgument, true
		p.summary = fmt.Sprintf("the result of %s has no %q", c.toolName(), strings.Join(append(names[1:], name), "."))
		if meant == "" {
			p.detail += "; where only some have it, ask first: " + r.asking(strings.Join(names, ".")+"."+name)
		}
	case names[0] == "vars":
		p.summary = fmt.Sprintf("there is no variable %q", strings.Join(append(names[1:], name), "."))
		if len(names) == 1 {
			p.detail = orElse(meant, fmt.Sprintf("declare it in mcpd.hcl: variable %q { … }", name))
		}
	default:
		p.summary = fmt.Sprintf("%s has no %q", strings.Join(names, "."), name)
	}
	return p
}

// choices lists the members that there are.
func choices(owner *shape) string {
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

// explainNoMembers is about a member of something that has none, of CEL type t.
func (c *compiler) explainNoMembers(at *places, e ast.Expr, t string) {
	start, end := at.point(e.ID())
	owner, meant := "this", ""
	if e.Kind() == ast.SelectKind {
		meant = orElse(foreign(e.AsSelect().FieldName()), partOfTime(t, e.AsSelect().FieldName()))
		if names := path(e.AsSelect().Operand()); names != nil {
			owner = strings.Join(names, ".")
		}
	}
	c.report(at, start, end, problem{
		code: codeType, ofTool: readsTool(e),
		summary: fmt.Sprintf("%s is %s and has no members", owner, typeWords(t)), detail: orElse(meant, "remove the member; only objects have some"),
	})
}

// foreign returns how policies write a function or member that other languages
// have under this name, or "".
func foreign(name string) string {
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
		return "write .contains('x') of a string, and 'x' in list of a list"
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

// partOfTime returns how policies ask a value of CEL type t, if it is a time,
// for what a member of this name would be, or "".
func partOfTime(t, name string) string {
	if t != "timestamp" {
		return ""
	}
	switch strings.ToLower(strings.TrimSuffix(name, "s")) {
	case "hour":
		return "write .getHours()"
	case "minute":
		return "write .getMinutes()"
	case "second":
		return "write .getSeconds()"
	case "weekday", "dayofweek":
		return "write .getDayOfWeek(), where 0 is Sunday"
	case "day", "date":
		return "write .getDate()"
	case "month":
		return "write .getMonth(), where 0 is January"
	case "year":
		return "write .getFullYear()"
	}
	return "write a function, such as .getHours() or .getDayOfWeek()"
}
