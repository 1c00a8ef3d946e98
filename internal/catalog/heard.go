package catalog

import (
	"slices"

	"github.com/mcpd/mcpd/internal/hclfile"
)

// offer is what a server offers by what callers would call it, whatever it is.
type offer struct {
	leftKey
	upstream string
}

// hear remembers what the catalog that was made last has of upstream servers.
func (b *Builder) hear() {
	spoke := map[string]bool{}
	b.offered, b.excused = map[leftItem]bool{}, map[namedKind]bool{}
	holders := map[leftKey]string{}
	for kind := range b.built.Entries {
		for _, e := range b.built.Entries[kind] {
			if e.Upstream != "" {
				spoke[e.Upstream], b.offered[leftItem{leftKey{e.Kind, e.Address}, e.Key}] = true, true
				b.excused[namedKind{e.Kind.String(), e.Name}] = true
				if e.Kind == Tools || e.Kind == Prompts {
					holders[leftKey{e.Kind, e.Address}] = e.Upstream
				}
			}
		}
	}
	left := map[offer]bool{}
	for _, l := range b.built.LeftOut {
		left[offer{l.leftKey, l.Upstream}], spoke[l.Upstream] = true, true
	}
	for key, upstream := range b.holders {
		if _, served := holders[key]; !served && (slices.Contains(b.built.silent, upstream) || left[offer{key, upstream}]) {
			holders[key] = upstream
		}
	}
	b.holders = holders
	for _, name := range b.built.excused {
		b.excused[name] = true
	}
	heard := map[string]hclfile.Hash{}
	for i := range b.built.Upstreams {
		u := &b.built.Upstreams[i]
		before, known := b.heard[u.Name]
		if spoke[u.Name] || known && before == u.Meaning {
			heard[u.Name] = u.Meaning
		}
	}
	b.heard = heard
}

// holds returns what tells of a tool or a prompt whose it is, nil for nobody's: who has served
// it first keeps the name, whatever others come to offer, as long as it offers the same or
// cannot be reached.
func (b *Builder) holds(found *build, items []*Item) func(leftKey) *hclfile.Upstream {
	offers := map[offer]bool{}
	for _, item := range items {
		offers[offer{leftKey{item.Kind, item.Address}, item.Upstream}] = true
	}
	for _, l := range found.left { // such as a tool in quarantine
		offers[offer{l.leftKey, l.Upstream}] = true
	}
	return func(key leftKey) *hclfile.Upstream {
		name := b.holders[key]
		at := slices.IndexFunc(found.upstreams, func(u hclfile.Upstream) bool { return u.Name == name })
		if at < 0 || !offers[offer{key, name}] && !slices.Contains(found.silent, name) {
			return nil
		}
		return &found.upstreams[at]
	}
}
