package hclfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
)

// callArgs are the arguments that [Call] is made of.
func callArgs() []argument { return args("labels", "timeout", "ask_timeout") }

// call decodes what a block says of every call of it.
func (d *decoder) call(b *hclsyntax.Block) Call {
	c := Call{
		Labels:     d.textMap(b.Body, "labels"),
		Bounds:     d.boundsOf(b),
		AskTimeout: d.durationWithin(b.Body, "ask_timeout", DefaultAskTimeout, maxAskTimeout),
	}
	if allow := first(b.Body, "allow"); allow != nil {
		c.Grant, c.GrantRanges = d.allow(allow)
	}
	return c
}

// run decodes the body of a block, nil when there is none or it was reported.
func (d *decoder) run(body *hclsyntax.Body) *Body {
	if attr := body.Attributes["run"]; attr != nil {
		return d.code(attr, JavaScript, TypeScript)
	}
	return nil
}

// idle reports a grant that no body of the block can use.
func (d *decoder) idle(b *hclsyntax.Block) {
	if allow := first(b.Body, "allow"); allow != nil {
		d.fail("contradiction", d.f.rng(allow.TypeRange), fmt.Sprintf("the %s block has an allow block and no body", b.Type),
			"remove it: what stands in the file needs no grant")
	}
}

// exactlyOne returns which of the arguments and blocks with the given names b,
// of rule r, holds, the first if there are several. It reports several, and none as summary.
func (d *decoder) exactlyOne(b *hclsyntax.Block, r *rule, summary string, names ...string) string {
	type choice struct {
		name  string
		where hcl.Range
	}
	var found []choice
	for _, name := range names {
		if attr := b.Body.Attributes[name]; attr != nil {
			found = append(found, choice{name, attr.NameRange})
		}
		for _, inner := range b.Body.Blocks {
			if inner.Type == name && r.hasBlock(name) {
				found = append(found, choice{name, inner.TypeRange})
				break
			}
		}
	}
	if len(found) == 0 && d.meant(b.Body, r, names...) {
		return ""
	}
	if len(found) == 0 {
		d.fail("missing-argument", d.f.rng(b.DefRange()), summary, "write one of "+strings.Join(names, ", "))
		return ""
	}
	slices.SortFunc(found, func(a, b choice) int { return a.where.Start.Byte - b.where.Start.Byte })
	if len(found) > 1 {
		d.fail("contradiction", d.f.rng(found[1].where), fmt.Sprintf("the %s block has both %q and %q", b.Type, found[0].name, found[1].name), "keep one of the two",
			diag.Note{Range: d.f.rng(found[0].where), Message: fmt.Sprintf("%q stands here", found[0].name)})
	}
	return found[0].name
}
