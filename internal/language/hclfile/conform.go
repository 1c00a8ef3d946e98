package hclfile

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/mcpd/mcpd/diag"
)

// conform reports where v, the value of x, is not of the type t. what names
// the value for messages, such as "the default". Parts that x writes out are
// reported at their own place.
func (d *decoder) conform(x hclsyntax.Expression, v cty.Value, t *valueType, what string) bool {
	if p, ok := x.(*hclsyntax.ParenthesesExpr); ok {
		x = p.Expression
	}
	if t.kind == anyKind {
		return d.bounded(x, v)
	}
	if !hasKind(v, t.kind) {
		d.fail("wrong-type", d.f.rng(x.Range()), fmt.Sprintf("%s must be %s, not %s", what, t.describe(), describeValue(v, t.kind)), asKind(v, t.kind))
		return false
	}
	switch t.kind {
	case listKind:
		return d.conformItems(x, v, t, what)
	case mapKind:
		return d.conformValues(x, v, t, what)
	case objectKind:
		return d.conformObject(x, v, t, what)
	default:
		return true
	}
}

// bounded reports a value that is too large.
func (d *decoder) bounded(x hclsyntax.Expression, v cty.Value) bool {
	_, ok := d.eval.measure(v, x.Range())
	return ok
}

func hasKind(v cty.Value, k kind) bool {
	if v.IsNull() {
		return false
	}
	t := v.Type()
	switch k {
	case stringKind:
		return t == cty.String
	case numberKind:
		return t == cty.Number
	case integerKind, bigintKind:
		return t == cty.Number && v.AsBigFloat().IsInt()
	case boolKind:
		return t == cty.Bool
	case listKind:
		return t.IsTupleType() || t.IsListType()
	default:
		return t.IsObjectType() || t.IsMapType()
	}
}

// describeValue names the type of v as the opposite of what is wanted.
func describeValue(v cty.Value, wanted kind) string {
	if (wanted == integerKind || wanted == bigintKind) && !v.IsNull() && v.Type() == cty.Number {
		return "a fraction"
	}
	return typeOf(v)
}

// asKind says what to write in the place of v, which is not of the kind.
func asKind(v cty.Value, wanted kind) string {
	if v.IsNull() {
		return "leave it out"
	}
	switch wanted {
	case stringKind:
		return "write it in quotes"
	case numberKind:
		return "write digits, without quotes"
	case integerKind, bigintKind:
		return "write a whole number, without quotes"
	case boolKind:
		return "write true or false, without quotes"
	case listKind:
		return "write it in brackets: [ … ]"
	default:
		return "write it in braces: { name = … }"
	}
}

func (d *decoder) conformItems(x hclsyntax.Expression, v cty.Value, t *valueType, what string) bool {
	good := true
	i := 0
	for it := v.ElementIterator(); it.Next(); i++ {
		_, item := it.Element()
		if !d.conform(itemExpr(x, i), item, t.elem, "an item of "+what) {
			good = false
		}
	}
	return good
}

// itemExpr returns the expression of a list's item i, or x when x does not write the items out.
func itemExpr(x hclsyntax.Expression, i int) hclsyntax.Expression {
	if tuple, ok := x.(*hclsyntax.TupleConsExpr); ok && i < len(tuple.Exprs) {
		return tuple.Exprs[i]
	}
	return x
}

// memberExprs returns the expressions of an object's members by key, or nil
// when x does not write them out.
func (d *decoder) memberExprs(x hclsyntax.Expression) map[string]hclsyntax.ObjectConsItem {
	o, ok := x.(*hclsyntax.ObjectConsExpr)
	if !ok {
		return nil
	}
	members := make(map[string]hclsyntax.ObjectConsItem, len(o.Items))
	for _, item := range o.Items {
		if key, ok := d.eval.key(item.KeyExpr); ok {
			members[key] = item
		}
	}
	return members
}

func (d *decoder) conformValues(x hclsyntax.Expression, v cty.Value, t *valueType, what string) bool {
	members := d.memberExprs(x)
	good := true
	for it := v.ElementIterator(); it.Next(); {
		key, value := it.Element()
		at := x
		if m, ok := members[key.AsString()]; ok {
			at = m.ValueExpr
		}
		if !d.conform(at, value, t.elem, "a value of "+what) {
			good = false
		}
	}
	return good
}

func (d *decoder) conformObject(x hclsyntax.Expression, v cty.Value, t *valueType, what string) bool {
	members := d.memberExprs(x)
	good := true
	present := map[string]bool{}
	for it := v.ElementIterator(); it.Next(); {
		k, value := it.Element()
		key := k.AsString()
		present[key] = true
		at, keyAt := x, x
		if m, ok := members[key]; ok {
			at, keyAt = m.ValueExpr, m.KeyExpr
		}
		a := t.attr(key)
		if a == nil {
			d.fail("wrong-type", d.f.rng(keyAt.Range()), fmt.Sprintf("%s has no attribute %s", what, d.eval.show(key)), cmp.Or(diag.DidYouMean(key, t.names()), "its attributes are "+strings.Join(t.names(), ", ")))
			good = false
		} else if !d.conform(at, value, a.typ, fmt.Sprintf("%q in %s", key, what)) {
			good = false
		}
	}
	for _, a := range t.attrs {
		if !a.optional && !present[a.name] {
			d.fail("wrong-type", d.f.rng(x.Range()), fmt.Sprintf("%s lacks the attribute %q", what, a.name), fmt.Sprintf("write %s = …, or optional(…) in the type", a.name))
			good = false
		}
	}
	return good
}

func (t *valueType) names() []string {
	names := make([]string, len(t.attrs))
	for i, a := range t.attrs {
		names[i] = a.name
	}
	return names
}
