package hclfile

import (
	"encoding/json"
	"fmt"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
)

// wholeSchema decodes input_schema or output_schema: file("x.json") and text
// are kept to the byte, objects that are written out keep the order of their
// keys. It returns nil when it reported a mistake.
func (d *decoder) wholeSchema(attr *hclsyntax.Attribute, origin map[string]diag.Range, input bool) json.RawMessage {
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
		d.fail("bad-schema", where, "the schema of a tool's arguments must say that they are an object", `add type = "object" at its top level`)
		return nil
	}
	return raw
}

// schemaText returns the JSON text of a schema and where it stands.
func (d *decoder) schemaText(attr *hclsyntax.Attribute, x hclsyntax.Expression, origin map[string]diag.Range) (json.RawMessage, diag.Range, bool) {
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
	if !ok || !d.bounded(x, v) {
		return nil, where, false
	}
	if !hasKind(v, stringKind) {
		return appendJSON(nil, v), where, true
	}
	return d.checkedSchema(diag.WholeFile(d.f.path, v.AsString()), where, func(problem *diag.Diagnostic) { problem.Range = where })
}

// schemaFile returns the bytes of the file that a schema stands in.
func (d *decoder) schemaFile(x *hclsyntax.FunctionCallExpr, where diag.Range) (json.RawMessage, diag.Range, bool) {
	args, ok := d.eval.arguments(x)
	if !ok {
		return nil, where, false
	}
	_, content, ok := d.eval.openFile(x, args)
	if !ok {
		return nil, where, false
	}
	return d.checkedSchema(diag.WholeFile(d.f.beside(args[0].AsString()), string(content)), where, func(problem *diag.Diagnostic) {
		problem.Notes = append(problem.Notes, diag.Note{Range: where, Message: "the file is used here"})
	})
}

// checkedSchema returns the text of a schema, or reports what is wrong with it as JSON.
func (d *decoder) checkedSchema(t diag.Text, where diag.Range, place func(*diag.Diagnostic)) (json.RawMessage, diag.Range, bool) {
	if problem := checkJSON(t); problem != nil {
		place(problem)
		d.problems = append(d.problems, *problem)
		return nil, where, false
	}
	return json.RawMessage(t.Body()), where, true
}
