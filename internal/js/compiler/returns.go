package compiler

import (
	"slices"

	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/file"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/js/syntax"
	"github.com/mcpd/mcpd/scripting/source"
)

// noReturn is the code of the diagnostic for a script that returns nothing.
const noReturn = "no-return"

// checkReturns reports a script whose statements return no value: as an error if it must return
// one. A throw, or a return without a value where none is needed, shows that the author knows.
func (c *compilation) checkReturns(statements []ast.Statement, a *analysis) {
	if c.src.Kind == source.Hook || c.src.Kind == source.Code || c.list.HasErrors() {
		return
	}
	found := exitsOf(statements)
	if found.value {
		return
	}
	d := diag.Diagnostic{Severity: diag.Warning, Code: noReturn, Summary: "the script returns nothing", Detail: "write return and the value, or return; if the caller needs none"}
	if c.src.MustReturn {
		d.Severity, d.Detail = diag.Error, "its result must be "+c.resultHint()+"; write return and the value"
	}
	if len(statements) == 0 {
		d.Range = c.src.Text.Range(0, 0)
		c.list = append(c.list, d)
		return
	}
	last := statements[len(statements)-1]
	start, end := startOf(last), startOf(last)+1
	expression, _ := last.(*ast.ExpressionStatement)
	switch {
	case found.throws:
		return
	case expression != nil && (isValue(expression.Expression) || !c.hasEffect(expression.Expression, a)):
		d.Summary, d.Detail = "the value of the last line is dropped, and the script returns nothing", "write return before it"
		start, end = expression.Expression.Idx0(), expression.Expression.Idx1()
	case !c.src.MustReturn && found.empty:
		return
	}
	c.report(d, start, end)
}

// startOf returns the position of a statement. The parser sets none for an if statement; its
// condition is used instead.
func startOf(s ast.Statement) file.Idx {
	if s, ok := s.(*ast.IfStatement); ok {
		return s.Test.Idx0()
	}
	return s.Idx0()
}

func (c *compilation) resultHint() string {
	switch c.src.Kind {
	case source.Resource:
		return "the content of the resource"
	case source.Prompt:
		return "the messages of the prompt"
	case source.Complete:
		return "the list of matching values"
	}
	return "an object with the declared outputs"
}

// exits are the ways in which statements end the function around them.
type exits struct {
	value, empty bool // return with and without a value
	throws       bool // in an inner function too
}

func exitsOf(statements []ast.Statement) (found exits) {
	inner := 0
	var look func(ast.Node)
	look = func(n ast.Node) {
		switch n := n.(type) {
		case *ast.FunctionLiteral, *ast.ArrowFunctionLiteral, *ast.ClassLiteral:
			inner++
			syntax.Children(n, look)
			inner--
			return
		case *ast.ReturnStatement:
			found.value = found.value || n.Argument != nil && inner == 0
			found.empty = found.empty || n.Argument == nil && inner == 0
		case *ast.ThrowStatement:
			found.throws = true
		}
		syntax.Children(n, look)
	}
	for _, s := range statements {
		look(s)
	}
	return found
}

// isValue reports whether an expression only computes a value.
func isValue(n ast.Expression) bool {
	switch n := n.(type) {
	case *ast.StringLiteral, *ast.NumberLiteral, *ast.BooleanLiteral, *ast.NullLiteral, *ast.RegExpLiteral, *ast.Identifier, *ast.TemplateLiteral,
		*ast.ArrayLiteral, *ast.ObjectLiteral, *ast.DotExpression, *ast.BracketExpression:
		return true
	case *ast.BinaryExpression:
		return isValue(n.Right) // a && act() is a statement
	case *ast.ConditionalExpression:
		return isValue(n.Consequent) && isValue(n.Alternate)
	}
	return false
}

// hasEffect reports whether a script that ends with an expression may have an effect: it uses a
// host object with effects, or awaits.
func (c *compilation) hasEffect(last ast.Expression, a *analysis) bool {
	switch last.(type) {
	case *ast.AwaitExpression, *ast.AssignExpression:
		return true
	}
	for name := range a.refs {
		switch name {
		case c.inputGlobal(), "agent", "call", "vars", "env", "uri", "value", "content", "JSON", "RegExp", "crypto", "dates", "numbers", "csv", "toml", "yaml",
			"URL", "URLSearchParams", "TextEncoder", "TextDecoder", "structuredClone", "atob", "btoa":
			continue
		}
		if slices.Contains(globalsOf(&c.src, c.names()), name) {
			return true
		}
	}
	return a.isReferenced("globalThis")
}

// ownText reports whether a range is in the script itself, not in an imported file.
func (c *compilation) ownText(start, end file.Idx) bool {
	at, ok := c.origin.between(int(start)-1, int(end)-1)
	return ok && at.File == c.src.Text.File()
}
