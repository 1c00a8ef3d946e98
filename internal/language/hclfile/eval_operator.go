package hclfile

import (
	"fmt"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// conditional evaluates only the chosen side.
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
		e.fail("wrong-type", x.Range(), fmt.Sprintf("a condition must be true or false, not %s", typeOf(v)), "compare it with a value, such as with == or >=")
		return false, false
	}
	return b.True(), true
}

// binary evaluates an operator. It evaluates the right side of && and || only if the left side
// does not decide.
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

// operand returns what to write as operand of type t.
func operand(t cty.Type) string {
	if t == cty.Bool {
		return "compare it with a value, such as with == or >="
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
				detail += "; join strings in a template: \"${var.a} and ${var.b}\""
			}
			return e.fail("wrong-type", parts[i].Range(), fmt.Sprintf("the operator needs %s, not %s", nameOf(param.Type), typeOf(operands[i])), detail)
		}
		operands[i] = v
	}
	v, err := op.Impl.Call(operands)
	if err != nil || v.Type() == cty.Number && !representable(v) {
		return e.fail("bad-value", x.Range(), "the result is not a number", "avoid division by zero, and stay in the range of a 64-bit float")
	}
	return v, true
}

// loop evaluates a for expression. It stops at the first item that fails, so that an error is
// reported once.
func (e *evaluator) loop(x *hclsyntax.ForExpr) (cty.Value, bool) {
	v, ok := e.value(x.CollExpr)
	if !ok {
		return v, false
	}
	if v.IsNull() || !v.CanIterateElements() {
		return e.fail("wrong-type", x.CollExpr.Range(), fmt.Sprintf("a for expression needs a list or an object, not %s", typeOf(v)), "write a list in brackets: [ … ]")
	}
	depth := len(e.loops)
	defer func() { e.loops = e.loops[:depth] }()
	result := loopResult{grouped: x.Group, members: map[string][]cty.Value{}}
	for it := v.ElementIterator(); it.Next(); {
		key, item := it.Element()
		e.loops = e.loops[:depth]
		if x.KeyVar != "" {
			e.loops = append(e.loops, binding{x.KeyVar, key})
		}
		e.loops = append(e.loops, binding{x.ValVar, item})
		if !e.iterate(x, &result) {
			return cty.NilVal, false
		}
	}
	return result.value(x.KeyExpr != nil), true
}

// loopResult is the partial result of a for expression.
type loopResult struct {
	grouped bool
	items   []cty.Value
	// members are the values of each key. Without grouping, there is one per key.
	members map[string][]cty.Value
}

func (e *evaluator) iterate(x *hclsyntax.ForExpr, result *loopResult) bool {
	if x.CondExpr != nil {
		if wanted, ok := e.condition(x.CondExpr); !ok || !wanted {
			return ok
		}
	}
	key := ""
	if x.KeyExpr != nil {
		k, ok := e.value(x.KeyExpr)
		if !ok {
			return false
		}
		if key, ok = e.text(k, x.KeyExpr.Range()); !ok {
			return false
		}
	}
	v, ok := e.value(x.ValExpr)
	if !ok {
		return false
	}
	if x.KeyExpr == nil {
		result.items = append(result.items, v)
		return true
	}
	if len(result.members[key]) > 0 && !result.grouped {
		e.fail("duplicate", x.KeyExpr.Range(), "two items have the key "+e.show(key),
			"write ... after the value to collect the items of each key in a list")
		return false
	}
	result.members[key] = append(result.members[key], v)
	return true
}

func (r *loopResult) value(object bool) cty.Value {
	if !object {
		return cty.TupleVal(r.items)
	}
	attrs := make(map[string]cty.Value, len(r.members))
	for key, values := range r.members {
		attrs[key] = values[0]
		if r.grouped {
			attrs[key] = cty.TupleVal(values)
		}
	}
	return cty.ObjectVal(attrs)
}

// splat evaluates list[*].name. A value that is not a list is treated as a list of one item,
// and null as an empty list.
func (e *evaluator) splat(x *hclsyntax.SplatExpr) (cty.Value, bool) {
	v, ok := e.value(x.Source)
	if !ok {
		return v, false
	}
	if v.IsNull() {
		return cty.EmptyTupleVal, true
	}
	if t := v.Type(); !t.IsTupleType() && !t.IsListType() && !t.IsSetType() {
		v = cty.TupleVal([]cty.Value{v})
	}
	if e.items == nil {
		e.items = map[*hclsyntax.AnonSymbolExpr]cty.Value{}
	}
	defer delete(e.items, x.Item)
	items := make([]cty.Value, 0, v.LengthInt())
	for it := v.ElementIterator(); it.Next(); {
		_, e.items[x.Item] = it.Element()
		item, ok := e.value(x.Each)
		if !ok {
			return cty.NilVal, false
		}
		items = append(items, item)
	}
	return cty.TupleVal(items), true
}
