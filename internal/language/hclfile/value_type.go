package hclfile

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
)

// kind is the outermost constructor of a type.
type kind string

const (
	anyKind     kind = "any"
	stringKind  kind = "string"
	numberKind  kind = "number"
	integerKind kind = "integer"
	bigintKind  kind = "bigint"
	boolKind    kind = "bool"
	listKind    kind = "list"
	mapKind     kind = "map"
	objectKind  kind = "object"
)

// valueType is a type in a file, such as list(string).
type valueType struct {
	kind kind
	// elem is the type of list items or map values.
	elem *valueType
	// attrs are the attributes of an object, in declared order.
	attrs []attrType
	where hcl.Range
}

type attrType struct {
	name     string
	typ      *valueType
	optional bool
	// fallback is the default, or cty.NilVal.
	fallback cty.Value
	where    hcl.Range
}

func (t *valueType) attr(name string) *attrType {
	for i := range t.attrs {
		if t.attrs[i].name == name {
			return &t.attrs[i]
		}
	}
	return nil
}

func (t *valueType) describe() string {
	switch t.kind {
	case anyKind:
		return "any value"
	case integerKind, objectKind:
		return "an " + string(t.kind)
	default:
		return "a " + string(t.kind)
	}
}

// typeWords are the names of types, for suggestions.
var typeWords = []string{"any", "string", "number", "integer", "bigint", "bool", "list", "map", "object"}

// otherWords are names of other languages for our types.
var otherWords = map[string]string{
	"int": "integer", "int64": "integer", "uint64": "bigint", "long": "bigint", "decimal": "string", "float": "number", "double": "number", "boolean": "bool", "str": "string",
	"text": "string", "array": "list(T)", "set": "list(T) with unique = true", "tuple": "list(T)", "dict": "map(T)",
	"null": "required = false", "date": "string with format = \"date\"", "datetime": "string with format = \"date-time\"",
}

// typeOfExpr decodes a type. It returns nil after it has reported an error.
func (d *decoder) typeOfExpr(x hclsyntax.Expression) *valueType {
	switch x := x.(type) {
	case *hclsyntax.ScopeTraversalExpr:
		return d.typeWord(x)
	case *hclsyntax.FunctionCallExpr:
		return d.typeCall(x)
	case *hclsyntax.ParenthesesExpr:
		return d.typeOfExpr(x.Expression)
	case *hclsyntax.TemplateExpr:
		if v, ok := d.eval.value(x); ok {
			d.badType(x.SrcRange, "a type must not be in quotes", "write "+clip(v.AsString()))
		}
	default:
		d.badType(x.Range(), "this is not a type", "write a type such as string or list(string)")
	}
	return nil
}

func (d *decoder) badType(where hcl.Range, summary, detail string) {
	d.fail("bad-type", d.f.rng(where), summary, detail)
}

func (d *decoder) typeWord(x *hclsyntax.ScopeTraversalExpr) *valueType {
	word := x.Traversal.RootName()
	if len(x.Traversal) > 1 {
		d.badType(x.SrcRange, "a type cannot be computed", "write it literally, such as list(string)")
		return nil
	}
	switch k := kind(word); k {
	case anyKind, stringKind, numberKind, integerKind, bigintKind, boolKind:
		return &valueType{kind: k, where: x.SrcRange}
	case listKind, mapKind:
		d.badType(x.SrcRange, fmt.Sprintf("the type %s needs an element type", word), fmt.Sprintf("write %s(string)", word))
	case objectKind:
		d.badType(x.SrcRange, "the type object needs its attributes", "write object({ name = string }), or use field blocks instead of a type")
	default:
		d.unknownType(word, x.SrcRange)
	}
	return nil
}

func (d *decoder) unknownType(word string, where hcl.Range) {
	detail := diag.DidYouMean(word, typeWords)
	if other, ok := otherWords[word]; ok {
		detail = "write " + other
	}
	if detail == "" {
		detail = "use string, number, integer, bigint, bool, any, list(T), map(T) and object({…})"
	}
	d.badType(where, fmt.Sprintf("there is no type %q", clip(word)), detail)
}

func (d *decoder) typeCall(x *hclsyntax.FunctionCallExpr) *valueType {
	k := kind(x.Name)
	switch k {
	case listKind, mapKind, objectKind:
	case "optional":
		d.badType(x.Range(), "use optional() only for an attribute of object({…})", "write required = false in the block instead")
		return nil
	case anyKind, stringKind, numberKind, integerKind, bigintKind, boolKind:
		d.badType(x.Range(), fmt.Sprintf("the type %s takes no arguments", x.Name), "write "+x.Name)
		return nil
	default:
		d.unknownType(x.Name, x.NameRange)
		return nil
	}
	if len(x.Args) != 1 || x.ExpandFinal {
		d.badType(x.Range(), fmt.Sprintf("the type %s takes one argument", x.Name), "write list(T), map(T) or object({…})")
		return nil
	}
	if k == objectKind {
		return d.objectType(x)
	}
	elem := d.typeOfExpr(x.Args[0])
	if elem == nil {
		return nil
	}
	return &valueType{kind: k, elem: elem, where: x.Range()}
}

func (d *decoder) objectType(x *hclsyntax.FunctionCallExpr) *valueType {
	o, ok := x.Args[0].(*hclsyntax.ObjectConsExpr)
	if !ok {
		d.badType(x.Args[0].Range(), "object() needs its attributes in braces", "write object({ name = string })")
		return nil
	}
	t := &valueType{kind: objectKind, where: x.Range()}
	valid := true
	for _, item := range o.Items {
		a, ok := d.attrOfType(item)
		if ok && t.attr(a.name) != nil {
			d.duplicate(a.where, t.attr(a.name).where, fmt.Sprintf("the object has a second attribute %q", a.name))
			continue
		}
		valid = valid && ok
		t.attrs = append(t.attrs, a)
	}
	if !valid {
		return nil
	}
	return t
}

// attrOfType decodes k = T, k = optional(T) or k = optional(T, default).
func (d *decoder) attrOfType(item hclsyntax.ObjectConsItem) (attrType, bool) {
	name, ok := d.eval.key(item.KeyExpr)
	if !ok {
		return attrType{}, false
	}
	a := attrType{name: name, where: item.KeyExpr.Range()}
	if !definition.IsName(name) {
		d.checkName("the attribute", name, a.where)
		return a, false
	}
	call, ok := item.ValueExpr.(*hclsyntax.FunctionCallExpr)
	if !ok || call.Name != "optional" {
		a.typ = d.typeOfExpr(item.ValueExpr)
		return a, a.typ != nil
	}
	if len(call.Args) < 1 || len(call.Args) > 2 || call.ExpandFinal {
		d.badType(call.Range(), "optional() takes a type and an optional default", "write optional(string) or optional(string, \"\")")
		return a, false
	}
	a.optional = true
	if a.typ = d.typeOfExpr(call.Args[0]); a.typ == nil || len(call.Args) == 1 {
		return a, a.typ != nil
	}
	v, ok := d.eval.value(call.Args[1])
	if !ok || !d.checkType(call.Args[1], v, a.typ, fmt.Sprintf("the default of %q", name)) {
		return a, false
	}
	a.fallback = v
	return a, true
}

// checkType reports where v, the value of x, does not have type t. what names the value in
// messages, such as "the default". Literal parts of x are reported at their own position.
func (d *decoder) checkType(x hclsyntax.Expression, v cty.Value, t *valueType, what string) bool {
	if p, ok := x.(*hclsyntax.ParenthesesExpr); ok {
		x = p.Expression
	}
	if t.kind == anyKind {
		return d.checkSize(x, v)
	}
	if !hasKind(v, t.kind) {
		d.fail("wrong-type", d.f.rng(x.Range()), fmt.Sprintf("%s must be %s, not %s", what, t.describe(), describeValue(v, t.kind)), asKind(v, t.kind))
		return false
	}
	switch t.kind {
	case listKind:
		return d.checkItems(x, v, t, what)
	case mapKind:
		return d.checkValues(x, v, t, what)
	case objectKind:
		return d.checkObject(x, v, t, what)
	default:
		return true
	}
}

// checkSize reports a value that is too large.
func (d *decoder) checkSize(x hclsyntax.Expression, v cty.Value) bool {
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

// describeValue returns the type of v, in contrast to the wanted kind.
func describeValue(v cty.Value, wanted kind) string {
	if (wanted == integerKind || wanted == bigintKind) && !v.IsNull() && v.Type() == cty.Number {
		return "a fraction"
	}
	return typeOf(v)
}

// asKind returns how to write v as the wanted kind.
func asKind(v cty.Value, wanted kind) string {
	if v.IsNull() {
		return "remove it"
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

func (d *decoder) checkItems(x hclsyntax.Expression, v cty.Value, t *valueType, what string) bool {
	valid := true
	i := 0
	for it := v.ElementIterator(); it.Next(); i++ {
		_, item := it.Element()
		if !d.checkType(itemExpr(x, i), item, t.elem, "an item of "+what) {
			valid = false
		}
	}
	return valid
}

// itemExpr returns the expression of list item i, or x if the list is not literal.
func itemExpr(x hclsyntax.Expression, i int) hclsyntax.Expression {
	if tuple, ok := x.(*hclsyntax.TupleConsExpr); ok && i < len(tuple.Exprs) {
		return tuple.Exprs[i]
	}
	return x
}

// memberExprs returns a function that finds the key and value expressions of an object member.
// Both are x if the member is not literal.
func (d *decoder) memberExprs(x hclsyntax.Expression) func(name string) (key, value hclsyntax.Expression) {
	members := map[string]hclsyntax.ObjectConsItem{}
	if o, ok := x.(*hclsyntax.ObjectConsExpr); ok {
		for _, item := range o.Items {
			if key, ok := d.eval.key(item.KeyExpr); ok {
				members[key] = item
			}
		}
	}
	return func(name string) (key, value hclsyntax.Expression) {
		if m, ok := members[name]; ok {
			return m.KeyExpr, m.ValueExpr
		}
		return x, x
	}
}

func (d *decoder) checkValues(x hclsyntax.Expression, v cty.Value, t *valueType, what string) bool {
	exprs := d.memberExprs(x)
	valid := true
	for it := v.ElementIterator(); it.Next(); {
		key, value := it.Element()
		_, at := exprs(key.AsString())
		if !d.checkType(at, value, t.elem, "a value of "+what) {
			valid = false
		}
	}
	return valid
}

func (d *decoder) checkObject(x hclsyntax.Expression, v cty.Value, t *valueType, what string) bool {
	exprs := d.memberExprs(x)
	valid := true
	present := map[string]bool{}
	for it := v.ElementIterator(); it.Next(); {
		k, value := it.Element()
		key := k.AsString()
		present[key] = true
		keyAt, at := exprs(key)
		a := t.attr(key)
		if a == nil {
			d.fail("wrong-type", d.f.rng(keyAt.Range()), fmt.Sprintf("%s has no attribute %s", what, d.eval.show(key)), cmp.Or(diag.DidYouMean(key, t.names()), "use one of "+strings.Join(t.names(), ", ")))
			valid = false
		} else if !d.checkType(at, value, a.typ, fmt.Sprintf("%q in %s", key, what)) {
			valid = false
		}
	}
	for _, a := range t.attrs {
		if !a.optional && !present[a.name] {
			d.fail("wrong-type", d.f.rng(x.Range()), fmt.Sprintf("%s has no attribute %q", what, a.name), fmt.Sprintf("write %s = …, or optional(…) in the type", a.name))
			valid = false
		}
	}
	return valid
}

func (t *valueType) names() []string {
	names := make([]string, len(t.attrs))
	for i, a := range t.attrs {
		names[i] = a.name
	}
	return names
}
