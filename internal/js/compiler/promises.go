package compiler

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/file"
	"github.com/dop251/goja/token"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/scripting/source"
)

// noteMember records a member of a promise of a host object, or of its result.
func (a *analysis) noteMember(of ast.Expression, name string, start, end file.Idx) {
	if root := a.promiseCall(of); root != "" {
		a.promiseMembers = append(a.promiseMembers, member{root, name, start, end})
	}
	if root := a.awaitedCall(of); root != "" {
		a.resultMembers = append(a.resultMembers, member{root, name, start, end})
	}
}

// noteResult records a variable that is declared with a promise or with its result.
func (a *analysis) noteResult(n *ast.Binding) {
	switch target := n.Target.(type) {
	case *ast.Identifier:
		if root := a.promiseCall(n.Initializer); root != "" {
			a.promiseVars[target.Name.String()] = root
		}
		if root := a.awaitedCall(n.Initializer); root != "" {
			a.resultVars[target.Name.String()] = root
		}
	case *ast.ObjectPattern:
		if root := a.awaitedCall(n.Initializer); root != "" {
			a.resultMembers = append(a.resultMembers, destructuredMembers(root, target)...)
		}
	}
}

// awaitedCall returns the name root of await root.NAME.METHOD(...) or await root(...); empty for
// other expressions.
func (a *analysis) awaitedCall(n ast.Expression) string {
	if await, ok := n.(*ast.AwaitExpression); ok {
		return a.promiseCall(await.Argument)
	}
	return ""
}

// promiseCall returns the name root of an expression root.NAME.METHOD(...), root(...),
// exec.NAME(...), tools.NAME(...), GROUP.NAME(...) or GROUP["NAME"](...); empty for other
// expressions.
func (a *analysis) promiseCall(n ast.Expression) string {
	call, _ := n.(*ast.CallExpression)
	if call == nil {
		return ""
	}
	if id, ok := call.Callee.(*ast.Identifier); ok {
		return id.Name.String()
	}
	if method, ok := call.Callee.(*ast.BracketExpression); ok && isLiteralKey(method.Member) {
		if id, ok := method.Left.(*ast.Identifier); ok && (id.Name == "tools" || a.groups[id.Name.String()]) {
			return id.Name.String()
		}
	}
	if method, ok := call.Callee.(*ast.DotExpression); ok {
		if id, ok := method.Left.(*ast.Identifier); ok && (id.Name == "exec" || id.Name == "tools" || a.groups[id.Name.String()]) {
			return id.Name.String()
		}
		if object, ok := method.Left.(*ast.DotExpression); ok {
			if id, ok := object.Left.(*ast.Identifier); ok {
				return id.Name.String()
			}
		}
	}
	return ""
}

// checkPromises reports uses of promises as if they were results.
func (c *compilation) checkPromises(a *analysis) {
	a.checkArguments()
	for _, m := range a.promiseMembers {
		if call, ok := c.promisingCall(a, m.object); ok {
			c.checkPromise(m, fmt.Sprintf("did you forget await? write (await %s).%s", call, m.name))
		}
	}
	for _, m := range a.promiseDestructured {
		if call, ok := c.promisingCall(a, m.object); ok {
			c.checkPromise(m, fmt.Sprintf("did you forget await? write { %s } = await %s", m.name, call))
		}
	}
	for _, u := range a.promiseUses {
		c.checkUse(a, u, u.object)
	}
	for _, u := range a.variableUses {
		if !a.redeclared[u.object] && !a.assigned[u.object] {
			c.checkUse(a, u, a.promiseVars[u.object])
		}
	}
	for _, m := range a.members {
		if a.redeclared[m.object] || a.assigned[m.object] || a.assigned[m.object+"."+m.name] {
			continue
		}
		if call, ok := c.promisingCall(a, a.promiseVars[m.object]); ok {
			c.checkPromise(m, fmt.Sprintf("did you forget await? write %s = await %s", m.object, call))
		}
	}
}

// checkUse reports a promise that is used as text or as a list.
func (c *compilation) checkUse(a *analysis, u misuse, root string) {
	if call, ok := c.promisingCall(a, root); ok {
		c.report(diag.Diagnostic{Severity: c.severityOfUnawaited(), Code: "missing-await", Summary: u.message, Detail: "did you forget await? write await " + call}, u.start, u.end)
	}
}

// checkResults reports members that no result of a granted object has.
func (c *compilation) checkResults(a *analysis) {
	if c.src.Kind == source.Code {
		return // the results of tools are unknown
	}
	for _, m := range a.resultMembers {
		c.checkResult(a, m.object, m)
	}
	for _, m := range a.members {
		if object, ok := a.resultVars[m.object]; ok && !a.redeclared[m.object] && !a.assigned[m.object] && !a.assigned[m.object+"."+m.name] {
			c.checkResult(a, object, m)
		}
		if response, ok := strings.CutSuffix(m.object, ".headers"); ok && a.resultVars[response] == "http" && !a.redeclared[response] && !a.assigned[response] {
			if _, ok := c.promisingCall(a, "http"); ok && slices.Contains([]string{"get", "has", "entries", "keys", "values", "forEach"}, m.name) {
				c.report(diag.Diagnostic{
					Severity: diag.Warning, Code: "undefined-name", Summary: fmt.Sprintf("the headers of a response have no method %q", m.name),
					Detail: fmt.Sprintf(`they are an object with names in lower case: write %s["content-type"]`, m.object),
				}, m.start, m.end)
			}
		}
	}
}

func (c *compilation) checkResult(a *analysis, object string, m member) {
	names := membersOfResult(object)
	if _, ok := c.promisingCall(a, object); !ok || names == nil || isObjectPrototypeMember(m.name) {
		return
	}
	what := "what " + object + " answers"
	if object == "http" {
		what = "a response"
	}
	c.checkMember(m, names, diag.Warning, "undefined-name", what+" has no member %q", "there is "+strings.Join(names, ", "))
}

// membersOfResult returns the members of the results of a granted object; nil if results differ.
// Results of a model are passed on as the client sends them.
func membersOfResult(object string) []string {
	switch object {
	case "http":
		return []string{"status", "ok", "url", "headers", "text", "json", "bytes"}
	case "exec":
		return []string{"code", "stdout", "stderr", "bytes"}
	case "elicit":
		return []string{"action", "content"}
	case "sample":
		return []string{"role", "content", "model", "stopReason", "_meta"}
	}
	return nil
}

// promisingCall returns the form of a call of a granted object that returns a promise.
func (c *compilation) promisingCall(a *analysis, object string) (call string, ok bool) {
	if _, free := a.globalRef(object); !free {
		return "", false
	}
	switch {
	case c.src.Kind == source.Code:
		return c.promiseCall(object)
	case object == "http":
		return "http.NAME.get(url)", true
	case object == "fs":
		return "fs.NAME.readText(path)", true
	case object == "exec":
		return "exec.NAME(params)", true
	case object == "tools":
		return "tools.NAME(args)", true
	case object == "modules":
		return "modules.NAME.FUNCTION(args)", true
	case object == "kv":
		return "kv.NAME.get(key)", true
	case object == "sql":
		return "sql.NAME.query(statement)", true
	case slices.Contains(c.granted("ask"), object):
		return object + "(…)", true
	}
	return "", false
}

// severityOfUnawaited returns the severity of a missing await. For agent code it is an error before
// the code runs.
func (c *compilation) severityOfUnawaited() diag.Severity {
	if c.src.Kind == source.Code {
		return diag.Error
	}
	return diag.Warning
}

func (c *compilation) checkPromise(m member, detail string) {
	switch {
	case m.name == "then", m.name == "catch", m.name == "finally", isObjectPrototypeMember(m.name):
	default:
		c.report(diag.Diagnostic{
			Severity: c.severityOfUnawaited(), Code: "missing-await", Summary: fmt.Sprintf("a promise has no member %q", m.name), Detail: detail,
		}, m.start, m.end)
	}
}

// Messages for promises that are used as results.
const (
	PromiseAsText    = "as text a promise is [object Promise]"
	PromiseAsList    = "a promise is not a list"
	promiseAsJSON    = "as JSON a promise is {}"
	promiseAsObject  = "a promise has no members"
	promiseUnfolded  = "a promise cannot be spread"
	promiseInConsole = "a printed promise does not show its value"
)

// argument is an argument of a function that cannot use promises.
type argument struct {
	function string // or the object that the function is a member of
	value    ast.Expression
	message  string
}

// noteUse records a promise, or a variable, that is used in a wrong way.
func (a *analysis) noteUse(n ast.Expression, message string) {
	if id, ok := n.(*ast.Identifier); ok {
		a.variableUses = append(a.variableUses, misuse{id.Name.String(), message, n.Idx0(), n.Idx1()})
	} else if root := a.promiseCall(n); root != "" {
		a.promiseUses = append(a.promiseUses, misuse{root, message, n.Idx0(), n.Idx1()})
	}
}

// visitUse records values that are converted to text, or iterated.
func (a *analysis) visitUse(n ast.Node) {
	switch n := n.(type) {
	case *ast.TemplateLiteral:
		if n.Tag == nil {
			for _, part := range n.Expressions {
				a.noteUse(part, PromiseAsText)
			}
		}
	case *ast.BinaryExpression:
		if n.Operator == token.PLUS {
			a.noteUse(n.Left, PromiseAsText)
			a.noteUse(n.Right, PromiseAsText)
		}
	case *ast.ForOfStatement:
		a.noteUse(n.Source, PromiseAsList)
	case *ast.SpreadElement:
		a.noteUse(n.Expression, promiseUnfolded)
	}
}

// visitDestructuring records what [a, b] = x and { a, b } = x take from a promise.
func (a *analysis) visitDestructuring(target, source ast.Node) {
	value, _ := source.(ast.Expression)
	switch target := target.(type) {
	case *ast.ArrayPattern:
		a.noteUse(value, PromiseAsList)
	case *ast.ObjectPattern:
		if root := a.promiseCall(value); root != "" {
			a.promiseDestructured = append(a.promiseDestructured, destructuredMembers(root, target)...)
		}
	}
}

// visitArguments records arguments of built-in functions that use them as text, as a list or as an
// object.
func (a *analysis) visitArguments(n *ast.CallExpression) {
	function := staticPath(n.Callee)
	message, limit := "", 1
	switch function {
	case "JSON.stringify":
		message = promiseAsJSON
	case "String":
		message = PromiseAsText
	case "Array.from":
		message = PromiseAsList
	case "Object.keys", "Object.values", "Object.entries":
		message = promiseAsObject
	case "print", "console.log", "console.info", "console.debug", "console.warn", "console.error":
		message, limit = promiseInConsole, len(n.ArgumentList)
	default:
		return
	}
	root := n.Callee
	if dot, ok := root.(*ast.DotExpression); ok {
		root = dot.Left
	}
	for _, value := range n.ArgumentList[:min(limit, len(n.ArgumentList))] {
		a.promiseArguments = append(a.promiseArguments, argument{staticPath(root), value, message})
	}
}

// checkArguments records uses of the arguments of functions that are not redefined.
func (a *analysis) checkArguments() {
	for _, p := range a.promiseArguments {
		if _, free := a.globalRef(p.function); free {
			a.noteUse(p.value, p.message)
		}
	}
}
