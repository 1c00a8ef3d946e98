package hclfile

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/mcpd/mcpd/diag"
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

// valueType is a type as a file writes it, such as list(string).
type valueType struct {
	kind kind
	// elem is the type of a list's items or a map's values.
	elem *valueType
	// attrs are an object's, in declared order.
	attrs []attrType
	where hcl.Range
}

type attrType struct {
	name     string
	typ      *valueType
	optional bool
	// fallback is the default, cty.NilVal when there is none.
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

// describe names the type for messages, with its article.
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

// typeWords are the names that a type may be written with, for did-you-mean.
var typeWords = []string{"any", "string", "number", "integer", "bigint", "bool", "list", "map", "object"}

// otherWords are names that other languages have for our types.
var otherWords = map[string]string{
	"int": "integer", "int64": "integer", "uint64": "bigint", "long": "bigint", "decimal": "string", "float": "number", "double": "number", "boolean": "bool", "str": "string",
	"text": "string", "array": "list(T)", "set": "list(T) with unique = true", "tuple": "list(T)", "dict": "map(T)",
	"null": "required = false", "date": "string with format = \"date\"", "datetime": "string with format = \"date-time\"",
}

// typeOfExpr reads a type. It returns nil when it has reported a mistake.
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
			d.badType(x.SrcRange, "a type is written without quotes", "write "+clip(v.AsString()))
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
		d.badType(x.SrcRange, "a type cannot be computed", "write it out, such as list(string)")
		return nil
	}
	switch k := kind(word); k {
	case anyKind, stringKind, numberKind, integerKind, bigintKind, boolKind:
		return &valueType{kind: k, where: x.SrcRange}
	case listKind, mapKind:
		d.badType(x.SrcRange, fmt.Sprintf("the type %s needs the type of what it holds", word), fmt.Sprintf("write %s(string)", word))
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
		detail = "the types are string, number, integer, bigint, bool, any, list(T), map(T) and object({…})"
	}
	d.badType(where, fmt.Sprintf("there is no type %q", clip(word)), detail)
}

func (d *decoder) typeCall(x *hclsyntax.FunctionCallExpr) *valueType {
	k := kind(x.Name)
	switch k {
	case listKind, mapKind, objectKind:
	case "optional":
		d.badType(x.Range(), "optional() can stand only for an attribute of object({…})", "write required = false in the block instead")
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
		d.badType(x.Args[0].Range(), "object() takes its attributes in braces", "write object({ name = string })")
		return nil
	}
	t := &valueType{kind: objectKind, where: x.Range()}
	good := true
	for _, item := range o.Items {
		a, ok := d.attrOfType(item)
		if ok && t.attr(a.name) != nil {
			d.duplicate(a.where, t.attr(a.name).where, fmt.Sprintf("the object has a second attribute %q", a.name))
			continue
		}
		good = good && ok
		t.attrs = append(t.attrs, a)
	}
	if !good {
		return nil
	}
	return t
}

// attrOfType reads k = T, k = optional(T) or k = optional(T, default).
func (d *decoder) attrOfType(item hclsyntax.ObjectConsItem) (attrType, bool) {
	name, ok := d.eval.key(item.KeyExpr)
	if !ok {
		return attrType{}, false
	}
	a := attrType{name: name, where: item.KeyExpr.Range()}
	if !IsName(name) {
		d.checkName("the attribute", name, a.where)
		return a, false
	}
	call, ok := item.ValueExpr.(*hclsyntax.FunctionCallExpr)
	if !ok || call.Name != "optional" {
		a.typ = d.typeOfExpr(item.ValueExpr)
		return a, a.typ != nil
	}
	if len(call.Args) < 1 || len(call.Args) > 2 || call.ExpandFinal {
		d.badType(call.Range(), "optional() takes a type and perhaps a default", "write optional(string) or optional(string, \"\")")
		return a, false
	}
	a.optional = true
	if a.typ = d.typeOfExpr(call.Args[0]); a.typ == nil || len(call.Args) == 1 {
		return a, a.typ != nil
	}
	v, ok := d.eval.value(call.Args[1])
	if !ok || !d.conform(call.Args[1], v, a.typ, fmt.Sprintf("the default of %q", name)) {
		return a, false
	}
	a.fallback = v
	return a, true
}
