package compiler

import (
	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/file"
	"github.com/dop251/goja/unistring"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/js/syntax"
)

// RanName is the global of a program with coverage: a function that records the number of a
// statement before it runs.
const RanName = "$mcpd$ran$"

// coverage adds a call of [RanName] before each statement of a tree. Positions do not change.
type coverage struct {
	origin *Origin
	// statements are the ranges of the statements, by number. byRange has the numbers: a statement of
	// the author may be several ones of a lowered script.
	statements []diag.Range
	byRange    map[diag.Range]int
}

// addCoverage changes the tree of a script, and returns the ranges of its statements, by number.
func (c *compilation) addCoverage(function *ast.FunctionLiteral) []diag.Range {
	v := coverage{origin: &c.origin, byRange: map[diag.Range]int{}}
	v.visit(function.Body)
	return v.statements
}

func (v *coverage) visit(n ast.Node) {
	syntax.Children(n, v.visit) // before marks are added below n
	switch n := n.(type) {
	case *ast.BlockStatement:
		n.List = v.marked(n.List)
	case *ast.CaseStatement:
		n.Consequent = v.marked(n.Consequent)
	case *ast.IfStatement:
		n.Consequent = v.block(n.Consequent)
		if n.Alternate != nil {
			n.Alternate = v.block(n.Alternate)
		}
	case *ast.ForStatement:
		n.Body = v.block(n.Body)
	case *ast.ForInStatement:
		n.Body = v.block(n.Body)
	case *ast.ForOfStatement:
		n.Body = v.block(n.Body)
	case *ast.WhileStatement:
		n.Body = v.block(n.Body)
	case *ast.DoWhileStatement:
		n.Body = v.block(n.Body)
	}
}

// block returns a statement with its mark, in a block unless it is one.
func (v *coverage) block(s ast.Statement) ast.Statement {
	if _, ok := s.(*ast.BlockStatement); ok {
		return s
	}
	list := v.marked([]ast.Statement{s})
	if len(list) == 1 {
		return s
	}
	return &ast.BlockStatement{LeftBrace: s.Idx0(), List: list, RightBrace: s.Idx1()}
}

// marked returns statements with a mark before each that the author wrote and that does
// something.
func (v *coverage) marked(list []ast.Statement) []ast.Statement {
	out := make([]ast.Statement, 0, 2*len(list))
	for _, s := range list {
		if number, ok := v.number(s); ok {
			out = append(out, &ast.ExpressionStatement{Expression: &ast.CallExpression{
				Callee:           &ast.Identifier{Name: unistring.NewFromString(RanName), Idx: s.Idx0()},
				LeftParenthesis:  s.Idx0(),
				ArgumentList:     []ast.Expression{&ast.NumberLiteral{Idx: s.Idx0(), Value: int64(number)}},
				RightParenthesis: s.Idx0(),
			}})
		}
		out = append(out, s)
	}
	return out
}

// start returns the position of a node. The parser does not set the position of an if statement, which then
// has the position of its condition.
func start(n ast.Node) file.Idx {
	at := n.Idx0()
	if at <= 0 {
		syntax.Children(n, func(child ast.Node) {
			if at <= 0 {
				at = start(child)
			}
		})
	}
	return at
}

// number returns the number of a statement; ok is false if it needs none.
func (v *coverage) number(s ast.Statement) (number int, ok bool) {
	switch s.(type) {
	case *ast.BlockStatement, *ast.EmptyStatement, *ast.FunctionDeclaration:
		return 0, false
	}
	at, ok := v.origin.between(int(start(s))-1, int(s.Idx1())-1)
	if !ok {
		return 0, false
	}
	number, known := v.byRange[at]
	if !known {
		number = len(v.statements)
		v.byRange[at] = number
		v.statements = append(v.statements, at)
	}
	return number, true
}
