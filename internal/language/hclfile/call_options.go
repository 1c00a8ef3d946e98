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

// call decodes the settings for every call of a definition.
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

// run decodes the script of a block. It returns nil if it is missing or was reported, or if a
// grant was reported, because the script would lack it.
func (d *decoder) run(b *hclsyntax.Block) *definition.Code {
	if attr := b.Body.Attributes["run"]; attr != nil && !hasMisplacedGrant(b.Body, rules[b.Type]) {
		return d.code(attr, definition.JavaScript, definition.TypeScript)
	}
	return nil
}

// hasMisplacedGrant reports whether body, or its allow block, contains a misplaced or
// misspelled grant.
func hasMisplacedGrant(body *hclsyntax.Body, r *rule) bool {
	isGrant := func(word string) bool {
		return word == "allow" || rules["allow"].hasBlock(word) || slices.Contains(askNames, word)
	}
	misplaced := func(word string) bool {
		return r.arg(word) == nil && !r.hasBlock(word) && (isGrant(word) || isGrant(r.suggest(word)))
	}
	for name := range body.Attributes {
		if misplaced(name) {
			return true
		}
	}
	return slices.ContainsFunc(body.Blocks, func(b *hclsyntax.Block) bool {
		return misplaced(b.Type) || (b.Type == "allow" || b.Type == "ask") && hasMisplacedGrant(b.Body, rules[b.Type])
	})
}

// checkUnusedGrant reports a grant that no script of the block can use.
func (d *decoder) checkUnusedGrant(b *hclsyntax.Block) {
	if allow := first(b.Body, "allow"); allow != nil {
		d.fail("contradiction", d.f.rng(allow.TypeRange), fmt.Sprintf("the %s block has an allow block but no script", b.Type),
			"remove it: static content needs no grant")
	}
}

// exactlyOne returns which of the named arguments and blocks b contains, or the first of
// several. It reports several, and reports none with summary.
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
		d.fail("contradiction", d.f.rng(found[1].where), fmt.Sprintf("the %s block has both %q and %q", b.Type, found[0].name, found[1].name), "keep one of them",
			diag.Note{Range: d.f.rng(found[0].where), Message: fmt.Sprintf("%q is set here", found[0].name)})
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
		d.fail("bad-value", where, "this is not enough memory for a script", "write at least \"32MiB\"")
		b.Memory = 0
	}
	return b
}

// boundsOf decodes the limits block of a definition. Its timeout may be in the block or a
// separate argument.
func (d *decoder) boundsOf(b *hclsyntax.Block) definition.Bounds {
	var found definition.Bounds
	if limits := first(b.Body, "limits"); limits != nil {
		d.check(limits.Body, boundsOfCall["limits"], "a limits block", limits.DefRange())
		found = d.bounds(limits.Body)
	}
	attr := b.Body.Attributes["timeout"]
	switch {
	case attr != nil && found.Timeout > 0:
		d.fail("contradiction", d.f.rng(attr.NameRange), "the timeout is set twice", "remove one of them",
			diag.Note{Range: found.Ranges["timeout"], Message: "it is also set here"})
	case attr != nil:
		found.Timeout = d.duration(b.Body, "timeout", definition.DefaultTimeout)
		found.Locate("timeout", d.f.rng(attr.Expr.Range()))
	case found.Timeout == 0:
		found.Timeout = definition.DefaultTimeout
	}
	return found
}

// upstreamBounds decodes the limits of calls of an upstream, which uses its own memory.
func (d *decoder) upstreamBounds(b *hclsyntax.Block) definition.Bounds {
	found := d.boundsOf(b)
	if where, written := found.Ranges["memory"]; written {
		d.fail("bad-value", where, "a call cannot limit the memory of an upstream", "remove it, or set memory in its container block")
	}
	return found
}

// minMemory is the minimum memory of a worker process.
const minMemory = 32 << 20
