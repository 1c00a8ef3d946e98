package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"

	"github.com/mcpd/mcpd/internal/source"
)

// Withdraw returns the catalog that was built and served last, without what upstream
// servers do not offer any more as it is there, or nobody has accepted. Files that have
// mistakes keep nothing in it: none but the lock file is read. Nothing new comes in.
func (b *Builder) Withdraw() *Catalog {
	lock := source.ReadLock(b.options.LockPath)
	offered := b.options.Federate(b.whole.Upstreams, b.whole.SecretKeys, LockFile{lock.Name, lock.Bytes})
	still, named := map[leftItem]bool{}, map[offer]bool{}
	for _, item := range offered.Items {
		key := leftKey{item.Kind, item.Address}
		still[leftItem{key, item.Key}], named[offer{key, item.Upstream}] = true, true
	}
	c := b.whole.without(func(e *Entry) bool { return e.Upstream != "" && !still[leftItem{leftKey{e.Kind, e.Address}, e.Key}] })
	c.LeftOut, c.Known, c.silent = offered.LeftOut, offered.Known, offered.Silent
	for _, left := range b.whole.LeftOut { // for a reason that is not the server's
		if named[offer{left.leftKey, left.Upstream}] {
			c.LeftOut = append(c.LeftOut, left)
		}
	}
	return c
}

// without returns a catalog without some of its entries. Its revision is another one
// unless there are none of them.
func (c *Catalog) without(out func(*Entry) bool) *Catalog {
	less := *c
	h := sha256.New()
	h.Write([]byte(c.Revision))
	some := false
	for kind := range c.Entries {
		less.Entries[kind], less.byAddress[kind] = nil, maps.Clone(c.byAddress[kind])
		for _, e := range c.Entries[kind] {
			if !out(e) {
				less.Entries[kind] = append(less.Entries[kind], e)
				continue
			}
			some = true
			delete(less.byAddress[kind], e.Address)
			h.Write([]byte(e.Address + "\x00"))
			h.Write(e.Key[:])
		}
	}
	less.templates = slices.DeleteFunc(slices.Clone(c.templates), out)
	if some {
		less.Revision = hex.EncodeToString(h.Sum(nil)[:16])
	}
	return &less
}
