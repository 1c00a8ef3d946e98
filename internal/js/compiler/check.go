package compiler

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/file"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/base/wildcard"
	"github.com/mcpd/mcpd/scripting/source"
)

// maxReports limits the diagnostics of one script.
const maxReports = 50

// check reports what certainly fails, or never matches, when the script runs.
func (c *compilation) check(a *analysis) {
	c.checkKeywords(a)
	c.checkGroups(a)
	c.checkMembers(a)
	c.checkNames(a)
	c.checkPromises(a)
	c.checkResults(a)
	c.checkLocales(a)
	for _, pattern := range a.unicode {
		if _, literal := pattern.(*ast.RegExpLiteral); !literal && a.bound["RegExp"] {
			continue
		}
		c.report(diag.Diagnostic{
			Severity: diag.Warning, Code: "script-regexp",
			Summary: `\p{…} never matches in this JavaScript engine`,
			Detail:  `write the characters out, like [A-Za-zÀ-ÿ], or compare letter.toLowerCase() !== letter.toUpperCase()`,
		}, pattern.Idx0(), pattern.Idx1())
	}
}

// inputGlobal returns the global with the input of the script.
func (c *compilation) inputGlobal() string {
	switch c.src.Kind {
	case source.Hook:
		return "event"
	case source.Resource, source.Complete:
		return "params"
	}
	return "input"
}

// kindName returns the name for the text in messages.
func (c *compilation) kindName() string {
	if c.src.Kind == source.Code {
		return "code"
	}
	return "script"
}

// inputHint returns advice about the arguments of a script, to append to other advice.
func (c *compilation) inputHint() string {
	if c.src.Kind == source.Code {
		return ""
	}
	return "; arguments are members of " + c.inputGlobal()
}

// hasGlobal reports whether scripts of this kind have a global that others may lack.
func (c *compilation) hasGlobal(name string) bool {
	return slices.Contains(kindGlobals(c.src.Kind), name)
}

// checkShape reports a script that is one function, which nothing calls.
func (c *compilation) checkShape(function *ast.FunctionLiteral) (wrong bool) {
	statements := userStatements(function)
	if len(statements) != 1 {
		return false
	}
	switch s := statements[0].(type) {
	case *ast.FunctionDeclaration:
	case *ast.ExpressionStatement:
		switch s.Expression.(type) {
		case *ast.FunctionLiteral, *ast.ArrowFunctionLiteral:
		default:
			return false
		}
	default:
		return false
	}
	c.reportUncalled(statements[0].Idx0())
	return true
}

// reportUncalled reports that the script is a function, which starts at start.
func (c *compilation) reportUncalled(start file.Idx) {
	detail := "a script is the body of a function: write only its statements, without the function around them" + c.inputHint()
	if c.src.Kind == source.Code {
		detail = "write only its statements, or call it at the end: main()"
	} else if c.isFile() {
		detail = "write export default before the function"
	}
	c.report(diag.Diagnostic{
		Severity: diag.Error, Code: "script-syntax", Summary: "the " + c.kindName() + " is a function that nothing calls",
		Detail: detail,
	}, start, start+1)
}

// userStatements returns the statements of the author in the compiled function: those in its block
// or, for a lowered script, those in the function that the block calls at its end.
func userStatements(function *ast.FunctionLiteral) []ast.Statement {
	block, _ := function.Body.List[0].(*ast.BlockStatement)
	if block == nil || len(block.List) == 0 {
		return nil
	}
	last, _ := block.List[len(block.List)-1].(*ast.ReturnStatement)
	if last == nil {
		return block.List
	}
	call, _ := last.Argument.(*ast.CallExpression)
	if call == nil {
		return block.List
	}
	if body, ok := call.Callee.(*ast.FunctionLiteral); ok && len(body.Body.List) == 1 {
		if inner, ok := body.Body.List[0].(*ast.BlockStatement); ok {
			return inner.List
		}
	}
	return block.List
}

// report adds a diagnostic for a range of the tree, unless the author did not write it.
func (c *compilation) report(d diag.Diagnostic, start, end file.Idx) {
	if len(c.list) >= maxReports {
		return
	}
	at, ok := c.origin.between(int(start)-1, int(end)-1)
	if !ok {
		return
	}
	d.Range = at
	c.list = append(c.list, d)
}

// checkMembers reports members of vars, input and the host objects that do not exist.
func (c *compilation) checkMembers(a *analysis) {
	vars, known := memberNames(c.src.Vars)
	for _, m := range a.members {
		if len(c.list) >= maxReports {
			return
		}
		root, _, _ := strings.Cut(m.object, ".")
		if _, free := a.globalRef(root); !free || isObjectPrototypeMember(m.name) || a.assigned[m.object+"."+m.name] {
			continue
		}
		switch {
		case m.object == "vars" && known:
			c.checkMember(m, vars, diag.Error, "unknown-variable", "there is no variable %q",
				"variables are declared by variable blocks in mcpd.hcl")
		case m.object == c.inputGlobal() && c.src.Kind != source.Hook && c.src.Inputs != nil:
			what, advice := c.declares()
			if what == "parameter" && len(c.src.Inputs) > 0 {
				advice += ": " + strings.Join(c.src.Inputs, ", ")
			}
			severity := diag.Warning
			if !a.isLeaked(m.object) && a.reassigned[m.object] == 0 && !a.isReferenced("globalThis") && c.ownText(m.start, m.end) {
				severity = diag.Error
			}
			c.checkMember(m, c.src.Inputs, severity, "unknown-input", "there is no "+what+" %q", advice)
		case c.src.Kind == source.Code && c.isGroup(m.object):
			c.checkToolOfCode(m)
		case m.object == "tools":
			c.checkTool(m)
		case isGranting(m.object):
			c.checkMember(m, c.granted(m.object), diag.Error, "unknown-grant", m.object+".%s is not granted", c.grantAdvice(m.object, m.name))
		case c.checkWithheld(m):
		default:
			if names, fixed := c.fixedMembers(m.object); fixed {
				c.checkMember(m, names, diag.Warning, "undefined-name", m.object+" has no member %q", "there is "+strings.Join(names, ", "))
			}
		}
	}
}

// declares returns the name for members of the input, and advice on how to declare one.
func (c *compilation) declares() (what, advice string) {
	switch c.src.Kind {
	case source.Resource:
		return "parameter", "parameters are the {variables} of the uri_template"
	case source.Complete:
		return "parameter", "parameters are the variables of the template, or the arguments of the prompt"
	case source.Prompt:
		return "argument", "declare it with an argument block"
	}
	return "input", "declare it with an input block"
}

func (c *compilation) checkMember(m member, names []string, severity diag.Severity, code, summary, detail string) {
	if len(names) == 0 && isGranting(m.object) || slices.Contains(names, m.name) {
		return // without any grant the object itself is reported
	}
	if guess := DidYouMean(m.name, names); guess != "" {
		detail = guess + " " + detail
	}
	c.report(diag.Diagnostic{
		Severity: severity, Code: code, Summary: fmt.Sprintf(summary, m.name), Detail: detail,
	}, m.start, m.end)
}

func (c *compilation) granted(kind string) []string {
	var names []string
	for _, o := range c.src.Objects {
		if o.Kind == kind {
			names = append(names, o.Name)
		}
	}
	return names
}

// checkLocales warns of methods that format by locale, which the engine does not support.
func (c *compilation) checkLocales(a *analysis) {
	if c.src.Kind == source.Code {
		return
	}
	for _, method := range a.locales {
		name := method.Name.String()
		c.report(diag.Diagnostic{
			Severity: diag.Warning, Code: "script-locale", Summary: name + " ignores locales in this JavaScript engine",
			Detail: "write numbers.format(n, { decimals, group, point }) for a number, dates.format(date, pattern, { zone }) for a date",
		}, method.Idx, method.Idx1())
	}
}

// memberNames returns the sorted names of the members of a JSON object; none for an absent object.
func memberNames(object json.RawMessage) (names []string, ok bool) {
	if len(object) == 0 {
		return nil, true
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(object, &members) != nil {
		return nil, false
	}
	return slices.Sorted(maps.Keys(members)), true
}

func (c *compilation) checkTool(m member) {
	granted := c.granted("tools")
	if len(granted) == 0 || CoversTool(granted, m.name) {
		return // without any grant the object itself is reported
	}
	detail := fmt.Sprintf("granted is %s; add %q to the tools of the call block", strings.Join(granted, ", "), m.name)
	if guess := DidYouMean(m.name, slices.DeleteFunc(granted, wildcard.Is)); guess != "" {
		detail = guess + " " + detail
	}
	c.report(diag.Diagnostic{
		Severity: diag.Error, Code: "unknown-grant", Summary: fmt.Sprintf("tools.%s is not granted", m.name), Detail: detail,
	}, m.start, m.end)
}

// CoversTool reports whether one of the names and patterns of a grant covers a tool. Names that the
// language looks up on every object are covered only by an exact name: await tools, or `${tools}`,
// must not call a tool by accident.
func CoversTool(patterns []string, name string) bool {
	if slices.Contains(patterns, name) && !wildcard.Is(name) {
		return true
	}
	if name == "then" || isObjectPrototypeMember(name) {
		return false
	}
	return slices.ContainsFunc(patterns, func(p string) bool { return wildcard.Matches(p, name) })
}
