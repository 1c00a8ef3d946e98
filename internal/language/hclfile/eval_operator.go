package hclfile

import (
	"fmt"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// conditional computes the chosen side only.
func (e *evaluator) conditional(x *hclsyntax.ConditionalExpr) (cty.Value, bool) {
	chosen, ok := e.condition(x.Condition)
	switch {
	case !ok:
		return cty.NilVal, false
	case chosen:
		return e.value(x.TrueResult)
	default:
		return e.value(x.FalseResult)
	}
}

func (e *evaluator) condition(x hclsyntax.Expression) (result, ok bool) {
	v, ok := e.value(x)
	if !ok {
		return false, false
	}
	b, err := convertTo(v, cty.Bool)
	if err != nil || b.IsNull() {
		e.fail("wrong-type", x.Range(), fmt.Sprintf("a condition must be true or false, not %s", typeOf(v)), "compare it with something, such as with == or >=")
		return false, false
	}
	return b.True(), true
}

// binary computes an operator. The right side of && and || is computed only
// when the left side does not decide.
func (e *evaluator) binary(x *hclsyntax.BinaryOpExpr) (cty.Value, bool) {
	if x.Op == hclsyntax.OpLogicalAnd || x.Op == hclsyntax.OpLogicalOr {
		left, ok := e.condition(x.LHS)
		if !ok || left == (x.Op == hclsyntax.OpLogicalOr) {
			return cty.BoolVal(left), ok
		}
		right, ok := e.condition(x.RHS)
		return cty.BoolVal(right), ok
	}
	left, okLeft := e.value(x.LHS)
	right, okRight := e.value(x.RHS)
	if !okLeft || !okRight {
		return cty.NilVal, false
	}
	return e.operate(x.Op, x, []hclsyntax.Expression{x.LHS, x.RHS}, []cty.Value{left, right})
}

func (e *evaluator) unary(x *hclsyntax.UnaryOpExpr) (cty.Value, bool) {
	v, ok := e.value(x.Val)
	if !ok {
		return v, false
	}
	return e.operate(x.Op, x, []hclsyntax.Expression{x.Val}, []cty.Value{v})
}

// operand says what to write beside an operator that takes values of type t.
func operand(t cty.Type) string {
	if t == cty.Bool {
		return "compare it with something, such as with == or >="
	}
	return "write " + nameOf(t) + ", without quotes"
}

func (e *evaluator) operate(op *hclsyntax.Operation, x hclsyntax.Expression, parts []hclsyntax.Expression, operands []cty.Value) (cty.Value, bool) {
	for i, param := range op.Impl.Params() {
		if _, ok := e.measure(operands[i], parts[i].Range()); !ok {
			return cty.NilVal, false
		}
		if param.Type == cty.DynamicPseudoType {
			continue
		}
		v, err := convertTo(operands[i], param.Type)
		if err != nil || v.IsNull() {
			detail := operand(param.Type)
			if op == hclsyntax.OpAdd && typeOf(operands[i]) == "a string" {
				detail += "; strings are joined in one: \"${var.a} and ${var.b}\""
			}
			return e.fail("wrong-type", parts[i].Range(), fmt.Sprintf("the operator needs %s, not %s", nameOf(param.Type), typeOf(operands[i])), detail)
		}
		operands[i] = v
	}
	v, err := op.Impl.Call(operands)
	if err != nil || v.Type() == cty.Number && !representable(v) {
		return e.fail("bad-value", x.Range(), "the result is not a number", "do not divide by zero, and stay in the range of a 64-bit float")
	}
	return v, true
}
