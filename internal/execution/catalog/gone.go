package catalog

import (
	"context"
	"slices"

	"github.com/mcpd/mcpd/policylang"
)

// maxGone bounds how many items a catalog remembers that earlier ones held.
const maxGone = 1000

// goneKey is what callers called an item by.
type goneKey struct {
	kind    Kind
	address string
}

// gone is an item that an earlier catalog held: when it went, and all that
// tells who may know of it.
type gone struct {
	revision      string
	entry         *Entry
	denyByDefault bool
}

// Follow makes the catalog remember what an earlier one held and it does not.
// It is called before the catalog serves, if ever.
func (c *Catalog) Follow(earlier *Catalog) {
	c.gone = make(map[goneKey]gone, len(earlier.gone))
	for k := range earlier.Entries {
		for _, e := range earlier.Entries[k] {
			if key := (goneKey{Kind(k), e.Address}); len(c.gone) < maxGone && c.Entry(key.kind, key.address) == nil {
				slim := &Entry{Item: &Item{Facts: e.Facts, Upstream: e.Upstream}, Rules: e.Rules}
				c.gone[key] = gone{c.Revision, slim, earlier.DenyByDefault}
			}
		}
	}
	for key, old := range earlier.gone {
		if len(c.gone) < maxGone && c.Entry(key.kind, key.address) == nil {
			c.gone[key] = old
		}
	}
}

// Silenced reports whether what earlier catalogs held is gone because its server cannot be
// reached.
func (c *Catalog) Silenced(k Kind, address string) bool {
	was, ok := c.gone[goneKey{k, address}]
	return ok && slices.Contains(c.offers.Silent, was.entry.Upstream)
}

// Removed returns the revision that removed an item, and false when there was
// none that the caller could see. facts are as in [Catalog.Hides].
func (c *Catalog) Removed(ctx context.Context, k Kind, address string, facts policylang.Input) (revision string, ok bool) {
	was, ok := c.gone[goneKey{k, address}]
	if !ok || (&Catalog{DenyByDefault: was.denyByDefault}).Hides(ctx, was.entry, facts) {
		return "", false
	}
	return was.revision, true
}
