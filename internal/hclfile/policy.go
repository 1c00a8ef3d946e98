package hclfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
)

// policy decodes a policy block.
func (d *decoder) policy(b *hclsyntax.Block) Policy {
	d.checkName("the policy", b.Labels[0], b.LabelRanges[0])
	d.check(b.Body, rules["policy"], "a policy block", b.DefRange())
	d.begin(b)
	p := Policy{
		Name: b.Labels[0], Range: d.f.rng(blockRange(b)), NameRange: d.f.rng(b.LabelRanges[0]),
		Targets: d.targets(b.Body, rules["policy"]), Disclose: DiscloseReason,
		When: d.cel(b.Body, "when"), Allow: d.cel(b.Body, "allow"), Deny: d.cel(b.Body, "deny"),
	}
	d.decision(b)
	if (p.Allow == nil) == (p.Deny == nil) {
		p.Allow, p.Deny = nil, denial(p.NameRange)
	}
	d.reason(b, &p)
	if disclose, ok := d.oneOf(b.Body, "disclose", DiscloseReason, DiscloseGeneric, DiscloseHide); ok {
		p.Disclose = disclose
	}
	p.Hashes = d.hashes()
	return p
}

// denial stands in for the decision of a policy whose mistake was told, so
// that nobody tells it again in other words. It denies every call.
func denial(where diag.Range) *Body {
	return &Body{Language: CEL, Text: diag.NewText(where.File, "tool.name == tool.name", where.Start)}
}

func (d *decoder) cel(body *hclsyntax.Body, name string) *Body {
	if attr := body.Attributes[name]; attr != nil {
		return d.code(attr, CEL)
	}
	return nil
}

// decision reports a policy that decides nothing, or in two ways.
func (d *decoder) decision(b *hclsyntax.Block) {
	allow, deny := b.Body.Attributes["allow"], b.Body.Attributes["deny"]
	switch {
	case allow != nil && deny != nil:
		later, earlier := deny, allow
		if deny.NameRange.Start.Byte < allow.NameRange.Start.Byte {
			later, earlier = allow, deny
		}
		d.fail("contradiction", d.f.rng(later.NameRange), "the policy has both \"allow\" and \"deny\"", "write two policies: all of them must allow a call",
			diag.Note{Range: d.f.rng(earlier.NameRange), Message: fmt.Sprintf("%q is set here", earlier.Name)})
	case !d.meant(b.Body, rules["policy"], "allow", "deny", "requires_approval"):
		d.fail("missing-argument", d.f.rng(b.DefRange()), "the policy decides nothing", "write allow = \"…\" or deny = \"…\", a CEL expression")
	}
}

// reason decodes the reason: text, or a raw CEL heredoc that computes it.
func (d *decoder) reason(b *hclsyntax.Block, p *Policy) {
	attr := b.Body.Attributes["reason"]
	if attr == nil {
		return
	}
	if t, ok := attr.Expr.(*hclsyntax.TemplateExpr); ok {
		if h := d.f.heredocAt(t); h != nil && h.raw {
			p.ReasonExpr = d.code(attr, CEL)
			return
		}
	}
	if root := ofCall(attr.Expr); root != "" {
		d.fail("unknown-name", d.f.rng(attr.Expr.Range()), fmt.Sprintf("a reason that uses %s is computed for each call", root), "write reason = <<CEL … CEL")
		return
	}
	text, ok := d.text(b.Body, "reason")
	if ok && text == "" {
		d.fail("bad-value", d.f.rng(attr.Expr.Range()), "the reason is empty", "say why a call is denied; the caller reads it")
	}
	if seemsComputed(text) {
		d.warn("bad-value", d.f.rng(attr.Expr.Range()), "the caller reads this reason as it stands, though it looks like CEL",
			"write reason = <<CEL … CEL to compute it")
	}
	p.Reason = text
}

// ofCall returns the first name in an expression of HCL that only CEL knows.
func ofCall(x hclsyntax.Expression) string {
	for _, v := range x.Variables() {
		if root := v.RootName(); slices.Contains(ofCalls, root) {
			return root
		}
	}
	return ""
}

// seemsComputed reports whether a text looks like CEL that joins strings with
// what a call says.
func seemsComputed(text string) bool {
	packed := strings.ReplaceAll(text, " ", "")
	joins := func(part string) bool { return strings.Contains(packed, part) }
	if !slices.ContainsFunc([]string{"'+", "+'", `"+`, `+"`}, joins) {
		return false
	}
	return slices.ContainsFunc([]string{"args.", "args[", "principal.", "agent.", "tool.", "call.", "vars."}, joins)
}
