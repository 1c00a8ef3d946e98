package hclfile

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/base/jsontext"
	"github.com/mcpd/mcpd/internal/language/definition"
)

// schemaWriter writes JSON Schema 2020-12 and records the origin of each part. The properties
// of objects are in declared order.
type schemaWriter struct {
	out []byte
	// locate records the range of the part at a JSON pointer; it may be nil.
	locate func(pointer string, where hcl.Range)
	// safe limits integers to the exact integers of JavaScript. named writes bigint instead of
	// integer.
	safe, named bool
}

// origins returns a locate function that adds to a list.
func (d *decoder) origins(list *definition.Origins) func(string, hcl.Range) {
	return func(pointer string, where hcl.Range) {
		*list = append(*list, definition.Origin{Pointer: pointer, Range: d.f.rng(where)})
	}
}

func (w *schemaWriter) note(pointer string, where hcl.Range) {
	if w.locate != nil {
		w.locate(pointer, where)
	}
}

// member starts a member of the current object.
func (w *schemaWriter) member(name string) {
	if w.out[len(w.out)-1] != '{' {
		w.out = append(w.out, ',')
	}
	w.out = append(jsontext.AppendString(w.out, name), ':')
}

func (w *schemaWriter) raw(name string, value []byte) {
	w.member(name)
	w.out = append(w.out, value...)
}

// object writes the schema of an object with the given fields.
func (w *schemaWriter) object(fields []*field, open bool) {
	w.out = append(w.out, '{')
	w.raw("type", []byte(`"object"`))
	w.fields(fields, "", open)
	w.out = append(w.out, '}')
}

// fields writes the schema members for the fields of an object.
func (w *schemaWriter) fields(fields []*field, pointer string, open bool) {
	w.member("properties")
	w.out = append(w.out, '{')
	var names []string
	for _, f := range fields {
		at := pointer + "/properties/" + escapePointer(f.name)
		w.note(at, f.head)
		w.member(f.name)
		w.field(f, at)
		if f.required {
			names = append(names, f.name)
		}
	}
	w.out = append(w.out, '}')
	w.closing(names, open)
}

// closing writes the end of the schema of an object.
func (w *schemaWriter) closing(required []string, open bool) {
	if len(required) > 0 {
		w.raw("required", appendStrings(nil, required))
	}
	w.raw("additionalProperties", strconv.AppendBool(nil, open))
}

func appendStrings(b []byte, list []string) []byte {
	b = append(b, '[')
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = jsontext.AppendString(b, s)
	}
	return append(b, ']')
}

func (w *schemaWriter) field(f *field, pointer string) {
	w.out = append(w.out, '{')
	w.typeName(f.typ, pointer)
	for _, k := range f.keywords {
		w.note(pointer+"/"+k.name, k.where)
		w.raw(k.name, w.narrowed(f.typ, k))
	}
	w.bounds(f.typ, f.keywords)
	if f.fields != nil {
		w.fields(f.fields, pointer, false)
	} else {
		w.structure(f.typ, pointer)
	}
	w.out = append(w.out, '}')
}

// The exact integers of JavaScript.
const (
	leastSafe = "-9007199254740991"
	mostSafe  = "9007199254740991"
)

// bounds writes the default limits of an integer.
func (w *schemaWriter) bounds(t *valueType, written []keyword) {
	if !w.safe || t.kind != integerKind {
		return
	}
	for _, bound := range []struct{ name, value string }{{"minimum", leastSafe}, {"maximum", mostSafe}} {
		if !slices.ContainsFunc(written, func(k keyword) bool { return k.name == bound.name }) {
			w.raw(bound.name, []byte(bound.value))
		}
	}
}

// narrowed returns the value of a keyword. A limit outside of the safe integers becomes the
// safe limit.
func (w *schemaWriter) narrowed(t *valueType, k keyword) []byte {
	if !w.safe || t.kind != integerKind || k.name != "minimum" && k.name != "maximum" {
		return k.value
	}
	f, err := strconv.ParseFloat(string(k.value), 64)
	switch {
	case err != nil:
		return k.value
	case k.name == "minimum" && f < -(1<<53-1):
		return []byte(leastSafe)
	case k.name == "maximum" && f > 1<<53-1:
		return []byte(mostSafe)
	}
	return k.value
}

// typeName writes the member "type". The type any has none.
func (w *schemaWriter) typeName(t *valueType, pointer string) {
	name := string(t.kind)
	switch t.kind {
	case anyKind:
		return
	case boolKind:
		name = "boolean"
	case bigintKind:
		if !w.named {
			name = "integer"
		}
	case listKind:
		name = "array"
	case mapKind:
		name = "object"
	}
	w.note(pointer+"/type", t.where)
	w.raw("type", jsontext.AppendString(nil, name))
}

// structure writes the content type of a list, map or object.
func (w *schemaWriter) structure(t *valueType, pointer string) {
	switch t.kind {
	case listKind:
		w.nested("items", t.elem, pointer)
	case mapKind:
		w.nested("additionalProperties", t.elem, pointer)
	case objectKind:
		w.attributes(t, pointer)
	}
}

func (w *schemaWriter) nested(name string, t *valueType, pointer string) {
	at := pointer + "/" + name
	w.note(at, t.where)
	w.member(name)
	w.valueType(t, at, cty.NilVal)
}

// valueType writes the schema of a type, with its default if it has one.
func (w *schemaWriter) valueType(t *valueType, pointer string, fallback cty.Value) {
	w.out = append(w.out, '{')
	w.typeName(t, pointer)
	if fallback != cty.NilVal {
		w.raw("default", appendJSON(nil, fallback))
	}
	w.bounds(t, nil)
	w.structure(t, pointer)
	w.out = append(w.out, '}')
}

func (w *schemaWriter) attributes(t *valueType, pointer string) {
	w.member("properties")
	w.out = append(w.out, '{')
	var names []string
	for _, a := range t.attrs {
		at := pointer + "/properties/" + escapePointer(a.name)
		w.note(at, a.where)
		w.member(a.name)
		w.valueType(a.typ, at, a.fallback)
		if !a.optional {
			names = append(names, a.name)
		}
	}
	w.out = append(w.out, '}')
	w.closing(names, false)
}

func schemaOf(t *valueType) json.RawMessage {
	w := schemaWriter{}
	w.valueType(t, "", cty.NilVal)
	return w.out
}

// bigintPointers returns the locations of unbounded integers in a value with the given fields,
// in the form of [definition.Tool.BigInts].
func bigintPointers(fields []*field) []string {
	var found []string
	for _, f := range fields {
		found = append(found, bigintsOf(f.typ, "/"+f.name)...)
	}
	return found
}

func bigintsOf(t *valueType, pointer string) []string {
	switch t.kind {
	case bigintKind:
		return []string{pointer}
	case listKind, mapKind:
		return bigintsOf(t.elem, pointer+"/*")
	}
	var found []string
	for _, a := range t.attrs {
		found = append(found, bigintsOf(a.typ, pointer+"/"+a.name)...)
	}
	return found
}

// sensitivePointers returns the JSON pointers of all sensitive fields in a value.
func sensitivePointers(fields []*field, pointer string) []string {
	var found []string
	for _, f := range fields {
		at := pointer + "/" + escapePointer(f.name)
		if f.sensitive {
			found = append(found, at)
			continue
		}
		found = append(found, sensitivePointers(f.fields, at)...)
	}
	return found
}

// wholeSchema decodes input_schema or output_schema. file("x.json") and text are kept verbatim;
// literal objects keep the order of their keys. It returns nil after it has reported an error.
func (d *decoder) wholeSchema(attr *hclsyntax.Attribute, origin *definition.Origins, input bool) json.RawMessage {
	raw, where, ok := d.schemaText(attr, attr.Expr, origin)
	if !ok {
		return nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil || members == nil {
		d.fail("bad-schema", where, fmt.Sprintf("%q must be a JSON object", attr.Name), "write file(\"schema.json\"), jsonencode({…}) or an object")
		return nil
	}
	if t := string(members["type"]); input && t != `"object"` {
		d.fail("bad-schema", where, "the schema of a tool's arguments must have type object", `add type = "object" at its top level`)
		return nil
	}
	return raw
}

// schemaText returns the JSON text of a schema and its range.
func (d *decoder) schemaText(attr *hclsyntax.Attribute, x hclsyntax.Expression, origin *definition.Origins) (json.RawMessage, diag.Range, bool) {
	where := d.f.rng(x.Range())
	switch x := x.(type) {
	case *hclsyntax.ParenthesesExpr:
		return d.schemaText(attr, x.Expression, origin)
	case *hclsyntax.ObjectConsExpr:
		raw, ok := d.eval.jsonOf(x, d.origins(origin))
		return raw, where, ok
	case *hclsyntax.TemplateExpr:
		if h := d.f.heredocAt(x); h != nil {
			t := h.text(d.f)
			return d.checkedSchema(t, t.All(), func(*diag.Diagnostic) {})
		}
	case *hclsyntax.FunctionCallExpr:
		if x.Name == "jsonencode" && len(x.Args) == 1 && !x.ExpandFinal {
			raw, ok := d.eval.jsonOf(x.Args[0], d.origins(origin))
			return raw, where, ok
		}
		if x.Name == "file" {
			return d.schemaFile(x, where)
		}
	}
	v, ok := d.eval.value(x)
	if !ok || !d.checkSize(x, v) {
		return nil, where, false
	}
	if !hasKind(v, stringKind) {
		return appendJSON(nil, v), where, true
	}
	return d.checkedSchema(diag.WholeFile(d.f.path, v.AsString()), where, func(problem *diag.Diagnostic) { problem.Range = where })
}

// schemaFile returns the content of a schema file.
func (d *decoder) schemaFile(x *hclsyntax.FunctionCallExpr, where diag.Range) (json.RawMessage, diag.Range, bool) {
	written, _, content, ok := d.eval.openFile(x)
	if !ok {
		return nil, where, false
	}
	return d.checkedSchema(diag.WholeFile(d.f.displayPath(written), string(content)), where, func(problem *diag.Diagnostic) {
		problem.Notes = append(problem.Notes, diag.Note{Range: where, Message: "the file is used here"})
	})
}

// checkedSchema returns the text of a schema, or reports why it is not valid JSON.
func (d *decoder) checkedSchema(t diag.Text, where diag.Range, locate func(*diag.Diagnostic)) (json.RawMessage, diag.Range, bool) {
	if problem := checkJSON(t); problem != nil {
		locate(problem)
		d.problems = append(d.problems, *problem)
		return nil, where, false
	}
	return json.RawMessage(t.Body()), where, true
}
