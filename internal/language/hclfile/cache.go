package hclfile

import (
	"fmt"
	"time"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/grant"
)

// The values of [Cache.Scope]: who is given the results of whose calls.
const (
	CachePrincipal = "principal"
	CacheServer    = "server"
)

// maxCached is how long a result may be given again at most.
const maxCached = 24 * time.Hour

// Cache is the cache block of a tool: its results are given again for a while.
type Cache struct {
	TTL time.Duration
	// Scope is [CachePrincipal] or [CacheServer].
	Scope string
	Range diag.Range
}

// cache decodes the cache block of a tool, nil when there is none. A result is
// given again only where nobody can tell it from that of another run: by a tool
// that changes nothing, asks nobody and keeps nothing for its caller alone.
func (d *decoder) cache(b *hclsyntax.Block, t *Tool) *Cache {
	c := d.cacheBlock(b)
	if c == nil {
		return nil
	}
	d.cacheable(b, t, c)
	return c
}

// cacheBlock decodes the cache block within another one, nil when there is none.
func (d *decoder) cacheBlock(b *hclsyntax.Block) *Cache {
	block := first(b.Body, "cache")
	if block == nil {
		return nil
	}
	d.checkBody(block)
	c := &Cache{Scope: CachePrincipal, Range: d.f.rng(block.DefRange())}
	c.TTL = d.durationWithin(block.Body, "ttl", 0, maxCached)
	if scope, ok := d.oneOf(block.Body, "scope", CachePrincipal, CacheServer); ok {
		c.Scope = scope
	}
	return c
}

// overrideCache decodes the cache block of an override block, nil when there is none. It is
// the operator who says that the tool only reads: the word of its server is not enough.
func (d *decoder) overrideCache(b *hclsyntax.Block, o *Override) *Cache {
	c := d.cacheBlock(b)
	if c != nil {
		d.repeatable(b, c, o.ReadOnly, o.Idempotent == nil || *o.Idempotent)
	}
	return c
}

// overridesCacheable reports caches of tools whose server may ask its client.
func (d *decoder) overridesCacheable(b *hclsyntax.Block, u *Upstream) {
	attr := b.Body.Attributes["ask"]
	if attr == nil || len(u.Ask.Names()) == 0 {
		return
	}
	for i := range u.Overrides {
		if c := u.Overrides[i].Cache; c != nil {
			d.fail("contradiction", c.Range, "the tool has a cache, and its server may ask the client", "remove one of the two: what one user answers is not for another call",
				diag.Note{Range: d.f.rng(attr.SrcRange), Message: "it may ask here"})
		}
	}
}

// repeatable reports that a tool with a cache does not say that it only reads, or that a
// second call of it is like the first.
func (d *decoder) repeatable(b *hclsyntax.Block, c *Cache, readOnly *bool, idempotent bool) {
	switch attr := b.Body.Attributes["read_only"]; {
	case attr == nil && !d.meant(b.Body, rules[b.Type], "read_only"):
		d.fail("contradiction", c.Range, "the tool has a cache, and does not say that it only reads", "write read_only = true if that is so; a call that changes something has to be made each time")
	case readOnly != nil && !*readOnly:
		d.fail("contradiction", c.Range, "the tool has a cache, and does more than to read", "remove the cache: a call that changes something has to be made each time",
			diag.Note{Range: d.f.rng(attr.SrcRange), Message: "it is not read-only here"})
	}
	if attr := b.Body.Attributes["idempotent"]; attr != nil && !idempotent {
		d.fail("contradiction", c.Range, "the tool has a cache, and a second call of it is not like the first", "remove the cache, or idempotent = false",
			diag.Note{Range: d.f.rng(attr.SrcRange), Message: "it is not idempotent here"})
	}
}

// cacheable reports what keeps the results of a tool from being given again.
func (d *decoder) cacheable(b *hclsyntax.Block, t *Tool, c *Cache) {
	d.repeatable(b, c, t.ReadOnly, t.Idempotent)
	if t.Grant.Ask != nil {
		d.fail("contradiction", c.Range, "the tool has a cache, and may ask its client", "remove one of the two: what one user answers is not for another call",
			diag.Note{Range: t.GrantRanges["ask"], Message: "it may ask here"})
	}
	if t.Grant.Call != nil {
		d.fail("contradiction", c.Range, "the tool has a cache, and calls other tools", "remove one of the two: what another tool answers is for its own cache to keep, and for its own policies to give",
			diag.Note{Range: t.GrantRanges["call"], Message: "it may call here"})
	}
	for _, m := range t.Grant.Modules {
		d.fail("contradiction", c.Range, "the tool has a cache, and uses an object of the program, which knows who calls", "remove one of the two",
			diag.Note{Range: t.GrantRanges["modules."+m.Name], Message: "it is granted here"})
	}
	for _, kv := range t.Grant.KV {
		if kv.Scope == grant.ScopeSession || kv.Scope == grant.ScopePrincipal && c.Scope == CacheServer {
			d.fail("contradiction", c.Range, fmt.Sprintf("the tool keeps values of each %s, and a cache would give what they made to another one", kv.Scope), "remove the cache, or use a wider scope of values, or a narrower one of the cache",
				diag.Note{Range: t.GrantRanges["kv."+kv.Name+".scope"], Message: "whose values it keeps"})
		}
	}
}
