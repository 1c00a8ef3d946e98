package hclfile

import (
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/uritemplate"
)

func (d *decoder) template(b *hclsyntax.Block) definition.Template {
	r := rules["resource_template"]
	nameAt := d.definition(b, "the template")
	t := definition.Template{
		Name: b.Labels[0], NameRange: nameAt,
		MIMEType: d.mimeType(b.Body), Annotations: d.annotationsOf(b.Body), Icons: d.icons(b.Body, r), Call: d.call(b),
	}
	t.Title, _ = d.text(b.Body, "title")
	t.Description, _ = d.text(b.Body, "description")
	if attr := b.Body.Attributes["uri_template"]; attr != nil {
		t.URITemplate, t.URIRange = d.uriTemplate(attr, b.Body), d.f.rng(attr.Expr.Range())
	}
	d.params(b, r, &t)
	d.templateContents(b, &t)
	t.Hashes = d.hashes()
	return t
}

// uriTemplate decodes the URI template. It returns nil after it has reported an error.
func (d *decoder) uriTemplate(attr *hclsyntax.Attribute, body *hclsyntax.Body) *uritemplate.Template {
	for _, traversal := range hclsyntax.Variables(attr.Expr) {
		if root := traversal.RootName(); len(traversal) == 1 && root != "var" && root != "local" {
			d.fail("unknown-name", d.f.rng(traversal.SourceRange()), fmt.Sprintf("there is no value %q", root), fmt.Sprintf("write {%s} for a variable of the template", root))
			return nil
		}
	}
	text, ok := d.text(body, attr.Name)
	if !ok {
		return nil
	}
	template, err := uritemplate.Parse(text)
	var refused *uritemplate.Error
	switch {
	case errors.As(err, &refused):
		code := "bad-template"
		if refused.Ambiguous {
			code = "ambiguous-template"
		}
		d.fail(code, d.partRange(attr.Expr, text, refused.Start, refused.End), refused.Message, refused.Hint)
		return nil
	case !definition.HasScheme(text):
		d.fail("bad-uri", d.f.rng(attr.Expr.Range()), "the URIs of the template are not absolute", "start it with a scheme, such as \"crm://customers/{id}\"")
		return nil
	case len(template.Names()) == 0:
		d.fail("bad-template", d.f.rng(attr.Expr.Range()), "the template has no variables", "write a resource block, or a variable in braces: {id}")
		return nil
	}
	return template
}

// params decodes the settings for the variables of the template.
func (d *decoder) params(b *hclsyntax.Block, r *rule, t *definition.Template) {
	if t.URITemplate != nil {
		for _, name := range t.URITemplate.Names() {
			t.Params = append(t.Params, definition.Param{Name: name, Range: t.URIRange})
		}
	}
	params, completions := declaredNames{}, declaredNames{}
	for _, inner := range blocks(b.Body, r) {
		switch inner.Type {
		case "param":
			d.declare(params, inner)
			d.param(inner, d.paramOf(inner, t))
		case "complete":
			d.declare(completions, inner)
			d.paramOf(inner, t).Complete = d.complete(inner)
		}
	}
}

// paramOf returns the variable with the label of a block. It reports an unknown name and
// returns a dummy.
func (d *decoder) paramOf(b *hclsyntax.Block, t *definition.Template) *definition.Param {
	name := b.Labels[0]
	if i := slices.IndexFunc(t.Params, func(p definition.Param) bool { return p.Name == name }); i >= 0 {
		return &t.Params[i]
	}
	if t.URITemplate != nil {
		names := t.URITemplate.Names()
		d.fail("unknown-name", d.f.rng(b.LabelRanges[0]), fmt.Sprintf("the template has no variable %q", clip(name)),
			orList(d.eval.didYouMean(name, slices.Values(names)), "its variables are", names))
	}
	return &definition.Param{}
}

func (d *decoder) param(b *hclsyntax.Block, p *definition.Param) {
	d.checkBody(b)
	p.Range = d.f.rng(b.DefRange())
	p.Description, _ = d.text(b.Body, "description")
	if s, ok := d.text(b.Body, "pattern"); ok {
		if d.regexp(s, b.Body.Attributes["pattern"].Expr) != nil {
			p.Pattern = s
		}
	}
}

// templateContents decodes the content of the resources of a template.
func (d *decoder) templateContents(b *hclsyntax.Block, t *definition.Template) {
	switch d.exactlyOne(b, rules["resource_template"], "the resources of the template are empty", "text", "run") {
	case "run":
		t.Run = d.run(b)
	case "text":
		names := make([]string, len(t.Params))
		for i := range t.Params {
			names[i] = t.Params[i].Name
		}
		if t.URITemplate != nil {
			t.Text = d.textTemplate(b.Body, "text", "variable", names)
		}
		if t.MIMEType == "" {
			t.MIMEType = definition.PlainType
		}
		if !slices.ContainsFunc(t.Params, func(p definition.Param) bool { return p.Complete != nil && p.Complete.Run != nil }) {
			d.checkUnusedGrant(b)
		}
	}
}

// maxSuggested bounds the values of a completion in a file.
const maxSuggested = 1000

// complete decodes a complete block. It returns nil after it has reported an error.
func (d *decoder) complete(b *hclsyntax.Block) *definition.Complete {
	d.checkBody(b)
	c := &definition.Complete{}
	switch d.exactlyOne(b, rules["complete"], "the completion has no values", "values", "run") {
	case "run":
		c.Run = d.run(b)
	case "values":
		c.Values = d.suggested(b.Body)
	}
	if c.Run == nil && c.Values == nil {
		return nil
	}
	return c
}

// suggested decodes the list of completion values.
func (d *decoder) suggested(body *hclsyntax.Body) []string {
	list, ok := d.stringList(body, "values")
	if attr := body.Attributes["values"]; ok && (len(list) == 0 || len(list) > maxSuggested) {
		d.fail("bad-value", d.f.rng(attr.Expr.Range()), fmt.Sprintf("\"values\" contains %s", count(len(list), "value")), fmt.Sprintf("list 1 to %d of them, or compute them with run", maxSuggested))
		return nil
	}
	taken := declaredNames{}
	for _, e := range list {
		d.declareName(taken, e.text, e.where, "the value %s occurs twice in \"values\"", d.eval.show(e.text))
	}
	return textsOf(list)
}
