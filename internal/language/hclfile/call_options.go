package hclfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
)

// call decodes what a block says of every call of it.
func (d *decoder) call(b *hclsyntax.Block) definition.Call {
	c := definition.Call{
		Labels:     d.stringMap(b.Body, "labels"),
		Bounds:     d.boundsOf(b),
		AskTimeout: d.durationWithin(b.Body, "ask_timeout", definition.DefaultAskTimeout, definition.MaxAskTimeout),
	}
	if allow := first(b.Body, "allow"); allow != nil {
		c.Grant, c.GrantRanges = d.allow(allow)
	}
	return c
}

// run decodes the script of a block, nil when there is none or it was reported. A
// script whose grants are reported is not checked: it would lack them.
func (d *decoder) run(b *hclsyntax.Block) *definition.Body {
	if attr := b.Body.Attributes["run"]; attr != nil && !hasMisplacedGrant(b.Body, rules[b.Type]) {
		return d.code(attr, definition.JavaScript, definition.TypeScript)
	}
	return nil
}

// misgrants reports whether body, or its allow block, holds a word of a grant that
// may not stand there, or one that is written wrong.
func hasMisplacedGrant(body *hclsyntax.Body, r *rule) bool {
	isGrant := func(word string) bool {
		return word == "allow" || rules["allow"].hasBlock(word) || slices.Contains(askNames, word)
	}
	stray := func(word string) bool {
		return r.arg(word) == nil && !r.hasBlock(word) && (isGrant(word) || isGrant(r.suggest(word)))
	}
	for name := range body.Attributes {
		if stray(name) {
			return true
		}
	}
	return slices.ContainsFunc(body.Blocks, func(b *hclsyntax.Block) bool {
		return stray(b.Type) || (b.Type == "allow" || b.Type == "ask") && hasMisplacedGrant(b.Body, rules[b.Type])
	})
}

// idle reports a grant that no body of the block can use.
func (d *decoder) checkUnusedGrant(b *hclsyntax.Block) {
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
	if len(found) == 0 && d.hasSimilar(b.Body, r, names...) {
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

func (d *decoder) bounds(body *hclsyntax.Body) definition.Bounds {
	b := definition.Bounds{
		Timeout: d.duration(body, "timeout", 0),
		Memory:  d.size(body, "memory", definition.MaxMemory),
		Output:  d.size(body, "output", definition.MaxOutput),
	}
	b.Concurrency = d.intAttr(body, "concurrency", 1, maxConcurrency)
	for _, name := range boundNames {
		if attr := body.Attributes[name]; attr != nil {
			b.Locate(name, d.f.rng(attr.Expr.Range()))
		}
	}
	if where := b.Ranges["memory"]; b.Memory > 0 && b.Memory < minMemory {
		d.fail("bad-value", where, "no process of a body can do with so little memory", "write at least \"32MiB\"")
		b.Memory = 0
	}
	return b
}

// boundsOf decodes the limits block of what is called. Its timeout may stand
// there, or as an argument of its own.
func (d *decoder) boundsOf(b *hclsyntax.Block) definition.Bounds {
	var found definition.Bounds
	if limits := first(b.Body, "limits"); limits != nil {
		d.check(limits.Body, boundsOfCall["limits"], "a limits block", limits.DefRange())
		found = d.bounds(limits.Body)
	}
	attr := b.Body.Attributes["timeout"]
	switch {
	case attr != nil && found.Timeout > 0:
		d.fail("contradiction", d.f.rng(attr.NameRange), "the timeout is given twice", "remove one of the two",
			diag.Note{Range: found.Ranges["timeout"], Message: "it is given here, too"})
	case attr != nil:
		found.Timeout = d.duration(b.Body, "timeout", definition.DefaultTimeout)
		found.Locate("timeout", d.f.rng(attr.Expr.Range()))
	case found.Timeout == 0:
		found.Timeout = definition.DefaultTimeout
	}
	return found
}

// boundsAway decodes the bounds of what another server does, whose memory is its own.
func (d *decoder) upstreamBounds(b *hclsyntax.Block) definition.Bounds {
	found := d.boundsOf(b)
	if where, written := found.Ranges["memory"]; written {
		d.fail("bad-value", where, "the memory of another server is not bounded by a call", "remove it; where mcpd compose runs the server, write memory in the container block")
	}
	return found
}

// minMemory is the least that a process of a body can do with.
const minMemory = 32 << 20
