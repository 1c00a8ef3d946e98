package compiler

import (
	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/file"
	"github.com/dop251/goja/token"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/js/syntax"
)

// minIterations is the number of iterations that is worth a warning.
const minIterations = 1_000

// concatCheck finds text that grows in a loop by concatenation, which copies all of it each time.
type concatCheck struct {
	// function is the number of the current function, and functions the number of functions so far.
	function, functions int
	// loops is the number of loops around the current position, in the current function, that may
	// iterate often.
	loops int
	// texts has the declarations of variables with text as initial value.
	texts   map[string]nesting
	appends []concatenation
}

// nesting is a position: the function, and the number of loops around it.
type nesting struct{ function, loops int }

type concatenation struct {
	name       string
	at         nesting
	start, end file.Idx
}

// checkConcat reports variables that are declared with a text outside of a loop and grow in it.
// Loops with few iterations do not count.
func (c *compilation) checkConcat(body ast.Node, found *analysis) {
	g := concatCheck{texts: map[string]nesting{}}
	g.node(body)
	reported := map[string]bool{}
	for _, a := range g.appends {
		from, text := g.texts[a.name]
		outside := a.at.loops > 0
		if from.function == a.at.function {
			outside = a.at.loops > from.loops
		}
		if !text || !outside || reported[a.name] || found.redeclared[a.name] {
			continue
		}
		reported[a.name] = true
		c.report(diag.Diagnostic{
			Severity: diag.Warning, Code: "script-slow",
			Summary: a.name + " grows in a loop, which copies all of it each time",
			Detail:  "collect the parts in an array, parts.push(…), and join them after the loop: parts.join(\"\")",
		}, a.start, a.end)
	}
}

func (c *concatCheck) node(n ast.Node) {
	switch n := n.(type) {
	case *ast.FunctionLiteral, *ast.ArrowFunctionLiteral:
		c.called(n, 0)
		return
	case *ast.CallExpression:
		if isForEach(n) {
			c.node(n.Callee)
			for _, argument := range n.ArgumentList {
				c.called(argument, 1)
			}
			return
		}
	case *ast.ForStatement:
		c.loop(n, n.Body, endsSoon(n.Test))
		return
	case *ast.WhileStatement:
		c.loop(n, n.Body, endsSoon(n.Test))
		return
	case *ast.DoWhileStatement:
		c.loop(n, n.Body, endsSoon(n.Test))
		return
	case *ast.ForOfStatement:
		_, written := n.Source.(*ast.ArrayLiteral)
		c.loop(n, n.Body, written)
		return
	case *ast.Binding:
		c.declared(n)
	case *ast.AssignExpression:
		c.assigned(n)
	}
	syntax.Children(n, c.node)
}

// called walks a function that is called in loops.
func (c *concatCheck) called(function ast.Node, loops int) {
	outer, before := c.function, c.loops
	c.functions++
	c.function, c.loops = c.functions, loops
	syntax.Children(function, c.node)
	c.function, c.loops = outer, before
}

// isForEach reports whether a call is list.forEach(function), with a list that is not a literal.
func isForEach(n *ast.CallExpression) bool {
	method, _ := n.Callee.(*ast.DotExpression)
	if method == nil || method.Identifier.Name != "forEach" || len(n.ArgumentList) != 1 {
		return false
	}
	switch n.ArgumentList[0].(type) {
	case *ast.FunctionLiteral, *ast.ArrowFunctionLiteral:
		_, written := method.Left.(*ast.ArrayLiteral)
		return !written
	}
	return false
}

// loop walks a loop. Only its body is in the loop.
func (c *concatCheck) loop(loop ast.Node, body ast.Statement, short bool) {
	syntax.Children(loop, func(n ast.Node) {
		if n == ast.Node(body) && !short {
			c.loops++
			defer func() { c.loops-- }()
		}
		c.node(n)
	})
}

func endsSoon(test ast.Expression) bool {
	comparison, _ := test.(*ast.BinaryExpression)
	if comparison == nil {
		return false
	}
	for _, side := range []ast.Expression{comparison.Left, comparison.Right} {
		if bound, ok := side.(*ast.NumberLiteral); ok {
			n, whole := bound.Value.(int64)
			return whole && n < minIterations && (n > 0 || side == comparison.Left)
		}
	}
	return false
}

func (c *concatCheck) declared(n *ast.Binding) {
	id, _ := n.Target.(*ast.Identifier)
	if id == nil {
		return
	}
	switch n.Initializer.(type) {
	case *ast.StringLiteral, *ast.TemplateLiteral:
		c.texts[id.Name.String()] = nesting{c.function, c.loops}
	}
}

// assigned records s += x and s = s + x.
func (c *concatCheck) assigned(n *ast.AssignExpression) {
	id, _ := n.Left.(*ast.Identifier)
	if id == nil {
		return
	}
	adds := n.Operator == token.PLUS
	if sum, ok := n.Right.(*ast.BinaryExpression); ok && n.Operator == token.ASSIGN && sum.Operator == token.PLUS {
		first, _ := leftmost(sum).(*ast.Identifier)
		adds = first != nil && first.Name == id.Name
	}
	if adds {
		c.appends = append(c.appends, concatenation{id.Name.String(), nesting{c.function, c.loops}, id.Idx, n.Right.Idx1()})
	}
}

func leftmost(sum *ast.BinaryExpression) ast.Expression {
	for {
		inner, ok := sum.Left.(*ast.BinaryExpression)
		if !ok || inner.Operator != token.PLUS {
			return sum.Left
		}
		sum = inner
	}
}
