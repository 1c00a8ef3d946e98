package hclfile

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/base/jsontext"
	"github.com/mcpd/mcpd/internal/language/definition"
)

// envPrefix is the prefix of environment variables with values. Values of undeclared variables
// are ignored, because other programs may use them.
const envPrefix = "MCPD_VAR_"

// variables decodes the variable blocks with their values.
func (d *decoder) variables(all []*hclsyntax.Block, values definition.VarValues) map[string]definition.Variable {
	vars := map[string]definition.Variable{}
	taken := declaredNames{}
	for _, b := range all {
		d.declare(taken, b)
		v := d.variable(b, values)
		if _, again := vars[v.Name]; !again {
			vars[v.Name] = v
		}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if _, declared := vars[name]; declared || strings.HasPrefix(values[name].Origin, envPrefix) {
			continue
		}
		detail := diag.DidYouMean(name, slices.Collect(maps.Keys(vars)))
		d.fail("unknown-name", diag.Range{File: d.f.path}, fmt.Sprintf("%s: there is no variable %q", values[name].Origin, clip(name)),
			cmp.Or(detail, fmt.Sprintf("declare it: variable %q { type = string }", clip(name))))
	}
	return vars
}

func (d *decoder) variable(b *hclsyntax.Block, values definition.VarValues) definition.Variable {
	d.checkIdentifier("the variable", b.Labels[0], b.LabelRanges[0])
	d.checkBody(b)
	v := definition.Variable{Name: b.Labels[0], Range: d.f.rng(b.DefRange())}
	v.Description, _ = d.text(b.Body, "description")
	v.Sensitive, _ = d.boolean(b.Body, "sensitive", false)
	t := &valueType{kind: anyKind}
	typed := true
	if attr := b.Body.Attributes["type"]; attr != nil {
		if read := d.typeOfExpr(attr.Expr); read != nil {
			t = read
		} else {
			typed = false
		}
	}
	if len(bigintsOf(t, "")) > 0 {
		d.badType(b.Body.Attributes["type"].Expr.Range(), "a variable cannot be a bigint", "write type = string, and use BigInt(vars.NAME) in a script")
		t, typed = &valueType{kind: anyKind}, false
	}
	v.Type = schemaOf(t)
	if typed {
		v.SetDecoded(t)
	}
	v.Value = d.fallback(b, t, typed)
	given, ok := values[v.Name]
	switch {
	case ok && typed && given.JSON != nil:
		v.Value, v.Given = given.JSON, &given.Text
	case ok && typed:
		v.Value, v.Given = d.given(b, t, given), &given.Text
	case v.Value == nil && b.Body.Attributes["default"] == nil:
		d.fail("missing-value", v.Range, fmt.Sprintf("the variable %q has no value", v.Name),
			fmt.Sprintf("give it a default, a line in a *.mcpdvars file next to this one, --var %s=… or %s%s", v.Name, envPrefix, v.Name))
	}
	return v
}

// fallback decodes the default of a variable, or returns nil.
func (d *decoder) fallback(b *hclsyntax.Block, t *valueType, typed bool) json.RawMessage {
	attr := b.Body.Attributes["default"]
	if attr == nil {
		return nil
	}
	if vars := attr.Expr.Variables(); len(vars) > 0 {
		d.fail("expression", d.f.rng(vars[0].SourceRange()), "the default of a variable cannot refer to other values", "write a literal")
		return nil
	}
	v, ok := d.eval.value(attr.Expr)
	if !ok || !typed || !d.checkSize(attr.Expr, v) || !d.checkType(attr.Expr, v, t, "the default") {
		return nil
	}
	return appendJSON(nil, v)
}

// given converts a supplied value to JSON. Messages never contain it.
func (d *decoder) given(b *hclsyntax.Block, t *valueType, g definition.VarValue) json.RawMessage {
	fail := func() json.RawMessage {
		d.fail("bad-value", d.f.rng(b.DefRange()), fmt.Sprintf("%s: the value of %q is not %s", g.Origin, b.Labels[0], t.describe()), givenHint(t))
		return nil
	}
	if len(g.Text) > maxText {
		return fail()
	}
	if t.kind == stringKind || t.kind == anyKind {
		return jsontext.AppendString(nil, g.Text)
	}
	if _, problem := scan([]byte(g.Text)); problem != nil {
		return fail()
	}
	x, problems := hclsyntax.ParseExpression([]byte(g.Text), "", hcl.InitialPos)
	if problems.HasErrors() || len(x.Variables()) > 0 {
		return fail()
	}
	// The text is not part of the file, so its errors are reported together.
	var ignored diag.List
	outside := &decoder{f: &File{path: d.f.path, source: g.Text, positions: newPositions(g.Text)}}
	outside.eval = newEvaluator(outside.f, Scope{}, &ignored)
	v, ok := outside.eval.value(x)
	if !ok || !outside.checkSize(x, v) || !outside.checkType(x, v, t, "the value") {
		return fail()
	}
	return appendJSON(nil, v)
}

func givenHint(t *valueType) string {
	switch t.kind {
	case boolKind:
		return "write true or false"
	case numberKind, integerKind:
		return "write digits"
	default:
		return "write it in HCL or JSON, such as [\"a\", \"b\"]"
	}
}

// ParseVars parses a *.mcpdvars file: one NAME = literal per line, in HCL.
func ParseVars(src Source) (_ definition.VarValues, problems diag.List) {
	f := &File{path: src.Path}
	defer f.reportPanic(&problems)
	if problem := checkBytes(src); problem != nil {
		return nil, diag.List{*problem}
	}
	f.source, f.positions = string(src.Bytes), newPositions(string(src.Bytes))
	problems = f.parseHCL(src.Bytes)
	if problems.HasErrors() {
		return nil, f.finish(problems)
	}
	d := newDecoder(f, Scope{})
	d.check(f.body, &rule{anyArgument: true}, "a file of values", f.body.SrcRange)
	values := definition.VarValues{}
	for name, attr := range f.body.Attributes {
		v, ok := d.eval.value(attr.Expr)
		if !ok || !d.checkSize(attr.Expr, v) {
			continue
		}
		text := string(appendJSON(nil, v))
		if hasKind(v, stringKind) {
			text = v.AsString()
		}
		values[name] = definition.VarValue{Text: text, Origin: d.f.rng(attr.NameRange).String()}
	}
	return values, f.finish(append(problems, d.problems...))
}
