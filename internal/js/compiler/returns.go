package compiler

import (
	"slices"

	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/file"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/js/syntax"
	"github.com/mcpd/mcpd/scripting/source"
)

// noReturn is the code of the warning for a script that returns nothing.
const noReturn = "no-return"

// checkReturns warns of a script that must return a value and does not, or with an unused value as
// last statement. A script with an effect may return nothing.
func (c *compilation) checkReturns(function *ast.FunctionLiteral, a *analysis) {
	if c.src.Kind == source.Hook || c.src.Kind == source.Code || c.list.HasErrors() {
		return
	}
	statements := userStatements(function)
	if len(statements) == 0 || returnsOrThrows(statements) {
		return
	}
	last := statements[len(statements)-1]
	expression, _ := last.(*ast.ExpressionStatement)
	if expression != nil && (isValue(expression.Expression) || !c.hasEffect(expression.Expression, a)) {
		c.report(diag.Diagnostic{
			Severity: diag.Warning, Code: noReturn, Summary: "the value of the last line is dropped, and the script returns nothing",
			Detail: "write return before it",
		}, expression.Expression.Idx0(), expression.Expression.Idx1())
		return
	}
	if c.src.MustReturn {
		at := startOf(last)
		c.report(diag.Diagnostic{
			Severity: diag.Warning, Code: noReturn, Summary: "the script returns nothing", Detail: "its result must be " + c.resultHint() + "; write return and the value",
		}, at, at+1)
		return
	}
	if declaresValue(last) && !hasAwait(function.Body) && !c.hasEffect(nil, a) {
		c.report(diag.Diagnostic{
			Severity: diag.Warning, Code: noReturn, Summary: "the script returns nothing and has no effect", Detail: "write return and the value",
		}, startOf(last), startOf(last)+1)
	}
}

// startOf returns the position of a statement. The parser sets none for an if statement; its
// condition is used instead.
func startOf(s ast.Statement) file.Idx {
	if s, ok := s.(*ast.IfStatement); ok {
		return s.Test.Idx0()
	}
	return s.Idx0()
}

// hasAwait reports whether a node contains await, or yield, which lowering uses for await.
func hasAwait(n ast.Node) bool {
	return contains(n, func(n ast.Node) bool {
		switch n.(type) {
		case *ast.AwaitExpression, *ast.YieldExpression:
			return true
		}
		return false
	}, func(ast.Node) bool { return false })
}

// declaresValue reports whether a statement declares a variable with a value.
func declaresValue(s ast.Statement) bool {
	var list []*ast.Binding
	switch s := s.(type) {
	case *ast.LexicalDeclaration:
		list = s.List
	case *ast.VariableStatement:
		list = s.List
	}
	return slices.ContainsFunc(list, func(b *ast.Binding) bool { return b.Initializer != nil })
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

// returnsOrThrows reports whether the statements return a value, or contain a throw.
func returnsOrThrows(statements []ast.Statement) bool {
	found, inner := false, 0
	var look func(ast.Node)
	look = func(n ast.Node) {
		switch n := n.(type) {
		case *ast.FunctionLiteral, *ast.ArrowFunctionLiteral, *ast.ClassLiteral:
			inner++
			syntax.Children(n, look)
			inner--
			return
		case *ast.ReturnStatement:
			found = found || n.Argument != nil && inner == 0
		case *ast.ThrowStatement:
			found = true
		}
		if !found {
			syntax.Children(n, look)
		}
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
