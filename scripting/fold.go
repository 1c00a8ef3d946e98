package scripting

import (
	"github.com/dop251/goja/ast"
)

// unfold keeps the engine from computing constant expressions when it
// compiles: it takes exponential time for 1 && 1 && …, and nothing could
// interrupt 9n ** 9n ** 9n. A constant operand in a sequence of one is no
// constant to it, and means the same. Literals with one sign stay constants.
func unfold(n ast.Node) {
	children(n, unfold)
	switch n := n.(type) {
	case *ast.BinaryExpression:
		if constant(n.Left) {
			n.Left = &ast.SequenceExpression{Sequence: []ast.Expression{n.Left}}
		}
	case *ast.UnaryExpression:
		if _, nested := n.Operand.(*ast.UnaryExpression); nested && constant(n.Operand) {
			n.Operand = &ast.SequenceExpression{Sequence: []ast.Expression{n.Operand}}
		}
	}
}

// constant reports whether the engine takes an expression to be a constant,
// given that the expressions in it were unfolded.
func constant(n ast.Expression) bool {
	switch n := n.(type) {
	case *ast.NumberLiteral, *ast.StringLiteral, *ast.BooleanLiteral, *ast.NullLiteral:
		return true
	case *ast.UnaryExpression:
		return constant(n.Operand)
	}
	return false
}
