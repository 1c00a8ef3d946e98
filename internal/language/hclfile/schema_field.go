package hclfile

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/internal/base/jsontext"
	"github.com/mcpd/mcpd/internal/language/definition"
)

// field is an input, output or field block.
type field struct {
	name      string
	head      hcl.Range
	typ       *valueType
	required  bool
	sensitive bool
	// header is the HTTP header that mirrors the value.
	header string
	// keywords are the members of the schema besides the type, in order.
	keywords []keyword
	// fields are nested blocks; typ is then their object type.
	fields []*field
	from   *definition.Code
}

// keyword is a member of a JSON Schema.
type keyword struct {
	name  string
	value json.RawMessage
	where hcl.Range
}

// field decodes an input, output or field block. If its type is invalid, it accepts any value,
// so that its users are not reported too.
func (d *decoder) field(b *hclsyntax.Block) *field {
	d.checkName("the "+b.Type, b.Labels[0], b.LabelRanges[0])
	d.checkBody(b)
	f := &field{name: b.Labels[0], head: b.DefRange()}
	f.fields = d.fields(b, "field")
	f.typ = d.fieldType(b, f)
	f.sensitive, _ = d.boolean(b.Body, "sensitive", false)
	d.requirement(b, f)
	d.words(b, f)
	if b.Type == "input" {
		d.inputOnly(b, f)
	}
	if f.typ == nil {
		f.typ = &valueType{kind: anyKind}
	} else {
		d.constraints(b, f)
	}
	return f
}

// fields decodes the blocks of one type in b: inputs, outputs or fields.
func (d *decoder) fields(b *hclsyntax.Block, blockType string) []*field {
	var fields []*field
	taken := declaredNames{}
	for _, inner := range ofType(blocks(b.Body, rules[b.Type]), blockType) {
		single := d.declare(taken, inner)
		if f := d.field(inner); single {
			fields = append(fields, f)
		}
	}
	return fields
}

// fieldType returns the declared type, or the object type of the field blocks.
func (d *decoder) fieldType(b *hclsyntax.Block, f *field) *valueType {
	attr := b.Body.Attributes["type"]
	hasFields := len(blocks(b.Body, rules[b.Type])) > 0
	switch {
	case attr != nil && hasFields:
		d.fail("contradiction", d.f.rng(attr.NameRange), fmt.Sprintf("the %s has a type and field blocks", b.Type),
			"remove the type, or write object({…}) without field blocks")
		return nil
	case attr != nil:
		return d.typeOfExpr(attr.Expr)
	case !hasFields:
		d.fail("missing-argument", d.f.rng(b.DefRange()), fmt.Sprintf("the %s %q has no type", b.Type, b.Labels[0]),
			"write type = string, or describe an object with field blocks")
		return nil
	}
	t := &valueType{kind: objectKind, where: b.DefRange()}
	for _, inner := range f.fields {
		t.attrs = append(t.attrs, attrType{name: inner.name, typ: inner.typ, optional: !inner.required, where: inner.head})
	}
	return t
}

// requirement decodes required and default, which exclude each other.
func (d *decoder) requirement(b *hclsyntax.Block, f *field) {
	fallback := b.Body.Attributes["default"]
	f.required, _ = d.boolean(b.Body, "required", fallback == nil)
	if fallback != nil && f.required {
		d.fail("contradiction", d.f.rng(b.Body.Attributes["required"].SrcRange), fmt.Sprintf("the %s is required and has a default", b.Type),
			"remove one of them: a field with a default is optional")
	}
}

// words decodes the texts for people and models.
func (d *decoder) words(b *hclsyntax.Block, f *field) {
	for _, name := range []string{"title", "description"} {
		if s, ok := d.text(b.Body, name); ok {
			f.keywords = append(f.keywords, keyword{name, jsontext.AppendString(nil, s), b.Body.Attributes[name].Expr.Range()})
		}
	}
}

// inputOnly decodes the arguments that only inputs have.
func (d *decoder) inputOnly(b *hclsyntax.Block, f *field) {
	if attr := b.Body.Attributes["from"]; attr != nil {
		f.from = d.code(attr, definition.CEL)
		for _, other := range []string{"default", "required", "header"} {
			d.rejectAttr(b.Body, other, fmt.Sprintf("an input with \"from\" has no %q", other), "remove it: callers never send a computed input")
		}
		return
	}
	header, ok := d.text(b.Body, "header")
	if !ok {
		return
	}
	where := b.Body.Attributes["header"].Expr.Range()
	if !isToken(header) {
		d.fail("bad-value", d.f.rng(where), "this is not a valid HTTP header name", "use letters, digits and - as in \"Region\"")
		return
	}
	if f.typ != nil && (f.typ.kind == listKind || f.typ.kind == mapKind || f.typ.kind == objectKind || f.typ.kind == anyKind || f.typ.kind == bigintKind) {
		d.fail("wrong-constraint", d.f.rng(where), fmt.Sprintf("%s cannot be sent in a header", f.typ.describe()),
			"use a string, number, integer or bool")
		return
	}
	f.header = header
	f.keywords = append(f.keywords, keyword{"x-mcp-header", jsontext.AppendString(nil, header), where})
}

// isToken reports whether s is a token of RFC 9110 section 5.6.2.
func isToken(s string) bool {
	return s != "" && len(s) <= definition.MaxName && strings.Trim(s, definition.WordCharacters+"!#$%&'*+-.^`|~") == ""
}
