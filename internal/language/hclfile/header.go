package hclfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/grant"
)

// connectionHeaders belong to the connection or frame the message (RFC 9110
// section 7.6.1), so that no file may set them.
var connectionHeaders = []string{
	"connection", "content-length", "host", "keep-alive", "proxy-authorization", "proxy-connection",
	"te", "trailer", "transfer-encoding", "upgrade",
}

// header decodes a header that egress sets.
func (d *decoder) header(b *hclsyntax.Block, taken named) (grant.Header, bool) {
	d.checkBody(b)
	name := b.Labels[0]
	where := d.f.rng(b.LabelRanges[0])
	switch lower := strings.ToLower(name); {
	case !isToken(name):
		d.fail("bad-name", where, "this is not the name of an HTTP header", "use letters, digits and - as in \"Authorization\"")
		return grant.Header{}, false
	case slices.Contains(connectionHeaders, lower):
		d.fail("bad-name", where, fmt.Sprintf("the header %q belongs to the connection and cannot be set", name), "remove it")
		return grant.Header{}, false
	default:
		d.claimName(taken, lower, b.LabelRanges[0], "there is a second header %q", name)
	}
	attr := b.Body.Attributes["value"]
	if attr == nil {
		return grant.Header{}, false
	}
	parts, ok := d.privateText(attr.Expr)
	return grant.Header{Name: name, Value: grant.Value{Parts: parts}}, ok
}

// privateText is secretText for what is shown to nobody, so that it may be sensitive.
func (d *decoder) privateText(x hclsyntax.Expression) ([]grant.Part, bool) {
	d.eval.private = true
	defer func() { d.eval.private = false }()
	return d.secretText(x)
}

// secretText computes text that may hold secrets: secret.x, a string with
// ${secret.x} in it, or base64encode() of such.
func (d *decoder) secretText(x hclsyntax.Expression) ([]grant.Part, bool) {
	if !usesSecret(x) {
		return d.plainText(x)
	}
	switch x := x.(type) {
	case *hclsyntax.ParenthesesExpr:
		return d.secretText(x.Expression)
	case *hclsyntax.TemplateWrapExpr:
		return d.secretText(x.Wrapped)
	case *hclsyntax.TemplateExpr:
		return d.secretTemplate(x)
	case *hclsyntax.FunctionCallExpr:
		if x.Name == "base64encode" && len(x.Args) == 1 && !x.ExpandFinal {
			inner, ok := d.secretText(x.Args[0])
			return []grant.Part{{Base64: &grant.Value{Parts: inner}}}, ok
		}
	case *hclsyntax.ScopeTraversalExpr:
		if name, where, ok := secretName(x); ok {
			return d.secret(name, where)
		}
	}
	d.fail("misplaced-secret", d.f.rng(x.Range()), "a secret cannot be used in this way",
		"write secret.NAME, a string with ${secret.NAME} in it, or base64encode() of those")
	return nil, false
}

func (d *decoder) secretTemplate(x *hclsyntax.TemplateExpr) ([]grant.Part, bool) {
	var parts []grant.Part
	all := true
	for _, p := range x.Parts {
		inner, ok := d.secretText(p)
		parts, all = append(parts, inner...), all && ok
	}
	return parts, all
}

func (d *decoder) secret(name string, where hcl.Range) ([]grant.Part, bool) {
	if !slices.Contains(d.eval.scope.Secrets, name) {
		if d.eval.scope.Incomplete {
			return nil, false
		}
		detail := diag.DidYouMean(name, d.eval.scope.Secrets)
		if detail == "" && !isIdentifier(name) {
			detail = "secrets are declared in mcpd.hcl"
		}
		if detail == "" {
			detail = fmt.Sprintf("declare it in mcpd.hcl: secret %q { env = \"%s\" }", name, strings.ToUpper(name))
		}
		d.fail("unknown-name", d.f.rng(where), fmt.Sprintf("there is no secret %q", name), detail)
		return nil, false
	}
	return []grant.Part{{Secret: name}}, true
}

// plainText computes text without secrets, for a header.
func (d *decoder) plainText(x hclsyntax.Expression) ([]grant.Part, bool) {
	v, ok := d.eval.value(x)
	if !ok {
		return nil, false
	}
	s, err := convertTo(v, cty.String)
	if err != nil || s.IsNull() {
		d.fail("wrong-type", d.f.rng(x.Range()), fmt.Sprintf("the value of a header must be a string, not %s", typeOf(v)), "write text between quotes")
		return nil, false
	}
	text := s.AsString()
	if len(text) > maxText || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
		d.fail("bad-value", d.f.rng(x.Range()), "the value of a header must be one line of printable text", "remove line ends and control characters; base64encode(…) makes text of anything")
		return nil, false
	}
	return []grant.Part{{Literal: text}}, true
}

// usesSecret reports whether x refers to a secret.
func usesSecret(x hclsyntax.Expression) bool {
	return slices.ContainsFunc(x.Variables(), func(t hcl.Traversal) bool { return t.RootName() == "secret" })
}
