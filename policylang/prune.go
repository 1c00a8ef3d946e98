package policylang

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// pruner takes out of an expression what a tool's arguments decide for every
// call: has(args.x) is false where the tool can have no x, and what it guards
// is gone with it.
type pruner struct {
	scope *scope
	info  *ast.SourceInfo
	make  ast.ExprFactory
	// settled are the nodes that were put in for a known answer. The
	// author's own true and false are left alone, so that mistakes beside them
	// are still found.
	settled map[int64]bool
}

// prune rewrites tree in place.
func prune(tree *ast.AST, s *scope) {
	p := pruner{scope: s, info: tree.SourceInfo(), make: ast.NewExprFactory(), settled: map[int64]bool{}}
	ast.PostOrderVisit(tree.Expr(), ast.NewExprVisitor(p.reduce))
}

func (p *pruner) reduce(e ast.Expr) {
	switch e.Kind() {
	case ast.SelectKind:
		if p.neverThere(e) {
			p.settle(e, false)
		}
	case ast.CallKind:
		p.reduceCall(e)
	}
}

// neverThere reports whether e is the has() of a member that the schema of the
// arguments, or of the result, rules out.
func (p *pruner) neverThere(e ast.Expr) bool {
	if !e.AsSelect().IsTestOnly() {
		return false
	}
	operand := e.AsSelect().Operand()
	names := path(operand)
	if names == nil || !isTools(names[0]) {
		return false
	}
	owner := p.scope.shapeOf(operand)
	return owner != nil && owner.fields != nil && !owner.open && owner.fields[e.AsSelect().FieldName()] == nil
}

func (p *pruner) reduceCall(e ast.Expr) {
	args := e.AsCall().Args()
	switch e.AsCall().FunctionName() {
	case operators.LogicalNot:
		if value, ok := p.answer(args[0]); ok {
			p.settle(e, !value)
		}
	case operators.LogicalAnd:
		p.reduceJunction(e, args, false)
	case operators.LogicalOr:
		p.reduceJunction(e, args, true)
	case operators.Conditional:
		if value, ok := p.answer(args[0]); ok && value {
			p.replace(e, args[1])
		} else if ok {
			p.replace(e, args[2])
		}
	}
}

// reduceJunction settles && and ||, of which one answer decides whatever the
// other side says, errors included.
func (p *pruner) reduceJunction(e ast.Expr, sides []ast.Expr, decides bool) {
	left, leftKnown := p.answer(sides[0])
	right, rightKnown := p.answer(sides[1])
	switch {
	case leftKnown && left == decides, rightKnown && right == decides:
		p.settle(e, decides)
	case leftKnown && rightKnown:
		p.settle(e, !decides)
	}
}

func (p *pruner) answer(e ast.Expr) (value, ok bool) {
	if !p.settled[e.ID()] || e.Kind() != ast.LiteralKind {
		return false, false
	}
	return e.AsLiteral() == types.True, true
}

func (p *pruner) settle(e ast.Expr, value bool) {
	e.SetKindCase(p.make.NewLiteral(e.ID(), types.Bool(value)))
	p.settled[e.ID()] = true
}

// replace puts by, a part of e, in the place of e.
func (p *pruner) replace(e, by ast.Expr) {
	if r, ok := p.info.GetOffsetRange(by.ID()); ok {
		p.info.SetOffsetRange(e.ID(), r)
	}
	settled := p.settled[by.ID()]
	e.SetKindCase(by)
	p.settled[e.ID()] = settled
}
