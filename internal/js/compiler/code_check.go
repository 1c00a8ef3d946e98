package compiler

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/file"
	"github.com/dop251/goja/token"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/base/truncate"
	"github.com/mcpd/mcpd/scripting/source"
)

// isKeyword reports whether an argument has the form name=value.
func isKeyword(argument ast.Expression) bool {
	assign, ok := argument.(*ast.AssignExpression)
	if !ok || assign.Operator != token.ASSIGN {
		return false
	}
	_, ok = assign.Left.(*ast.Identifier)
	return ok
}

// maxCallShown limits the suggested call in a message, in bytes.
const maxCallShown = 400

// checkKeywords reports calls with Python keyword arguments, and suggests the call in JavaScript.
func (c *compilation) checkKeywords(a *analysis) {
	if c.src.Kind != source.Code {
		return
	}
	for _, call := range a.keywords {
		if len(c.list) >= maxReports {
			return
		}
		tool := c.isToolCall(a, call.Callee)
		meant := tool || slices.ContainsFunc(call.ArgumentList, func(argument ast.Expression) bool {
			return isKeyword(argument) && a.undeclared[argument.(*ast.AssignExpression).Left.(*ast.Identifier).Name.String()]
		})
		if !meant {
			continue
		}
		callee := c.sourceOf(call.Callee)
		written := truncate.Start(callee+"("+c.argumentsOf(call, tool)+")", maxCallShown)
		if before := c.origin.src[:max(0, int(call.Idx0())-1)]; tool && !strings.HasSuffix(strings.TrimSpace(before), "await") {
			written = "await " + written
		}
		c.report(diag.Diagnostic{
			Severity: diag.Error, Code: "script-keywords", Summary: callee + "(name=value) is not valid JavaScript",
			Detail: "write " + written,
		}, call.Idx0(), call.Idx1())
	}
}

func (c *compilation) isToolCall(a *analysis, callee ast.Expression) bool {
	var object ast.Expression
	switch n := callee.(type) {
	case *ast.Identifier:
		_, free := a.globalRef(n.Name.String())
		return free && slices.Contains(c.names().Bare, n.Name.String())
	case *ast.DotExpression:
		object = n.Left
	case *ast.BracketExpression:
		object = n.Left
	}
	id, ok := object.(*ast.Identifier)
	if !ok {
		return false
	}
	_, free := a.globalRef(id.Name.String())
	return free && c.isGroup(id.Name.String())
}

// argumentsOf returns the arguments of a call, with one object for the named ones. A tool takes
// nothing else.
func (c *compilation) argumentsOf(call *ast.CallExpression, tool bool) string {
	var plain, named []string
	for _, argument := range call.ArgumentList {
		if !isKeyword(argument) {
			text := c.sourceOf(argument)
			if tool {
				text = "NAME: " + text
			}
			plain = append(plain, text)
			continue
		}
		assign := argument.(*ast.AssignExpression)
		named = append(named, c.sourceOf(assign.Left)+": "+c.sourceOf(assign.Right))
	}
	if c.sourceOf(call.Callee) == "print" {
		return strings.Join(plain, ", ") // the arguments end and sep of Python do not exist
	}
	if tool {
		return "{ " + strings.Join(slices.Concat(plain, named), ", ") + " }"
	}
	return strings.Join(append(plain, "{ "+strings.Join(named, ", ")+" }"), ", ")
}

// sourceOf returns the source of an expression, with JavaScript constants instead of constants of
// Python.
func (c *compilation) sourceOf(n ast.Expression) string {
	text := truncate.Start(c.origin.src[max(0, int(n.Idx0())-1):min(int(n.Idx1())-1, len(c.origin.src))], maxCallShown)
	switch text {
	case "True":
		return "true"
	case "False":
		return "false"
	case "None":
		return "null"
	}
	return strings.Join(strings.Fields(text), " ")
}

// isGroup reports whether a name is tools, or a group of tools.
func (c *compilation) isGroup(name string) bool {
	return name == "tools" || c.names().Members[name] != nil
}

func (c *compilation) checkToolOfCode(m member) {
	if c.names().Of(m.object, m.name) != "" {
		return
	}
	detail := c.memberAdvice(m)
	c.report(diag.Diagnostic{
		Severity: diag.Error, Code: "unknown-tool", Summary: fmt.Sprintf("%s has no tool %q", m.object, m.name), Detail: detail,
	}, m.start, m.end)
}

// memberAdvice returns advice for a member that a group, or tools, does not have.
func (c *compilation) memberAdvice(m member) string {
	names := c.names()
	if text, at, ok := c.origin.original(int(m.start) - 1); ok {
		if meant := names.suggestHyphenated(text.Body(), at); meant != "" {
			return meant
		}
	}
	if own := names.suggestUnprefixed(m.name); own != "" {
		return own
	}
	if advice := metaToolHint(m.name); advice != "" {
		return advice
	}
	guess := closest(m.name, names.In(m.object))
	switch {
	case guess == "":
		return names.suggest(m.name)
	case isIdentifier(guess):
		return fmt.Sprintf("did you mean %q?", guess)
	}
	return "did you mean " + names.callExpr(m.object, guess) + "?"
}

// toolAdvice suggests a tool for an unknown name at a position, if a tool has a similar name.
func (c *compilation) toolAdvice(name string, at file.Idx) string {
	if c.src.Kind != source.Code {
		return ""
	}
	if text, at, ok := c.origin.original(int(at) - 1); ok {
		if meant := c.names().suggestHyphenated(text.Body(), at); meant != "" {
			return meant
		}
	}
	return c.names().suggestUnprefixed(name)
}

// promiseCall returns the form of a call that returns a promise: of a tool, a group of tools, or
// parallel.
func (c *compilation) promiseCall(name string) (call string, ok bool) {
	switch {
	case name == "parallel":
		return "parallel([…])", true
	case c.isGroup(name):
		return name + ".NAME({ … })", true
	case slices.Contains(c.names().Bare, name):
		return name + "({ … })", true
	}
	return "", false
}

// missingNames returns the messages of the ReferenceErrors for unknown names in agent code, up to a
// limit. The messages suggest tools.
func (c *compilation) missingNames(a *analysis) map[string]string {
	missing := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(a.refs)) {
		at, free := a.globalRef(name)
		if !free || a.typeofTested[name] || c.isDefined(name) {
			continue
		}
		if len(missing) >= maxReports {
			break
		}
		message := name + " is not defined"
		if c.removed.names[name] {
			message += ": its import was removed, and nothing can be imported"
		}
		if guess := cmp.Or(c.toolAdvice(name, at), c.suggestTool(name)); guess != "" {
			message += "; " + guess
		}
		missing[name] = message
	}
	return missing
}

// unknownCodeNameAdvice returns advice for names of other JavaScript hosts.
func unknownCodeNameAdvice(name string) (advice string, ok bool) {
	if advice, ok = codeHints[name]; ok {
		return advice, true
	}
	if _, elsewhere := otherHostHints[name]; elsewhere {
		return "code can use only its tools", true
	}
	advice = metaToolHint(name)
	return advice, advice != ""
}

// codeHints is advice for names that scripts have and agent code lacks.
var codeHints = byName([]hint{
	{"eval", "text cannot be run as code here"},
	{"require", "nothing can be imported: all tools are available"},
	{"Buffer", "use Uint8Array, TextEncoder, TextDecoder, atob and btoa"},
	{"log", "write console.log(…)"},
	{"Intl", "write toFixed(2) for a number and toISOString() for a date"},
	{"performance", "write Date.now()"},
	{"self http fs env exec kv sql secrets vars input", "code can use only its tools"},
})

// metaToolHint explains why agent code cannot call the tools next to run_code.
func metaToolHint(name string) string {
	switch name {
	case "run_code", "search_tools", "describe_tool", "call_tool":
		return "code cannot call it: clients call it directly; in code, call a tool as await tools[\"NAME\"]({ … })"
	}
	return ""
}

// checkGroups reports calls of a group of tools as if it were a tool.
func (c *compilation) checkGroups(a *analysis) {
	if c.src.Kind != source.Code {
		return
	}
	for _, call := range a.groupCalls {
		group := c.sourceOf(call.Callee)
		if _, free := a.globalRef(group); !free || a.assigned[group] {
			continue
		}
		written := group + ".NAME"
		if in := c.names().In(group); group != "tools" && (len(in) == 1 || slices.Contains(in, group)) {
			written = c.names().callExpr(group, in[max(0, slices.Index(in, group))])
		}
		c.report(diag.Diagnostic{
			Severity: diag.Error, Code: "unknown-tool", Summary: group + " is a group of tools, not a tool", Detail: "write await " + written + "({ … })",
		}, call.Callee.Idx0(), call.Callee.Idx1())
	}
}
