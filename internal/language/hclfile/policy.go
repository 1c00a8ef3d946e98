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
	at, nameAt := d.definition(b, "the policy")
	p := Policy{
		Name: b.Labels[0], Range: at, NameRange: nameAt,
		Targets: d.targets(b.Body, rules["policy"]), Disclose: DiscloseReason,
		When: d.cel(b.Body, "when"), Allow: d.cel(b.Body, "allow"), Deny: d.cel(b.Body, "deny"), Approval: d.cel(b.Body, "requires_approval"),
	}
	if d.decision(b); len(decides(&p)) != 1 {
		p.Allow, p.Deny, p.Approval = nil, denial(p.NameRange), nil
	}
	if on, ok := d.oneOf(b.Body, "on", "call", "result"); ok {
		p.OnResult = on == "result"
	}
	if approval := b.Body.Attributes["requires_approval"]; p.OnResult && approval != nil {
		d.fail("contradiction", d.f.rng(approval.NameRange), "what has been done needs no approval", "remove on = \"result\", or write allow or deny")
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

// decides returns what a policy decides by: one body, unless it is wrong.
func decides(p *Policy) []*Body {
	return slices.DeleteFunc([]*Body{p.Allow, p.Deny, p.Approval}, func(b *Body) bool { return b == nil })
}

// verdicts are the arguments of which a policy has one.
var verdicts = [...]string{"allow", "deny", "requires_approval"}

// decision reports a policy that decides nothing, or in several ways.
func (d *decoder) decision(b *hclsyntax.Block) {
	var written []*hclsyntax.Attribute
	for _, name := range verdicts {
		if attr := b.Body.Attributes[name]; attr != nil {
			written = append(written, attr)
		}
	}
	switch {
	case len(written) > 1:
		said := fmt.Sprintf("the policy has both %q and %q", written[0].Name, written[1].Name)
		slices.SortFunc(written, func(a, b *hclsyntax.Attribute) int { return a.NameRange.Start.Byte - b.NameRange.Start.Byte })
		earlier, later := written[0], written[1]
		d.fail("contradiction", d.f.rng(later.NameRange), said, "write two policies: all of them must allow a call",
			diag.Note{Range: d.f.rng(earlier.NameRange), Message: fmt.Sprintf("%q is set here", earlier.Name)})
	case !d.meant(b.Body, rules["policy"], verdicts[:]...):
		d.fail("missing-argument", d.f.rng(b.DefRange()), "the policy decides nothing", "write allow = \"…\", deny = \"…\" or requires_approval = \"…\", a CEL expression")
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
