package catalog

import (
	"cmp"
	"strings"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/hclfile"
)

// ownerOf returns the upstream whose block gives something the name of an item, or else whose
// names begin as that does, of several that of the longest prefix, and the item's own before
// others; nil where there is none, or its own block gives it that name. No server answers to
// the names of another, or comes under what the rules say of them, whether that other can be
// reached or not.
func ownerOf(upstreams []hclfile.Upstream, item *Item) (owner *hclfile.Upstream) {
	var giver *hclfile.Upstream
	for i := range upstreams {
		u := &upstreams[i]
		if gives(u, item) {
			if u.Name == item.Upstream {
				return nil
			}
			giver = u
		}
		if u.Prefix == "" || !strings.HasPrefix(item.Name, u.Prefix) {
			continue
		}
		if owner == nil || len(u.Prefix) > len(owner.Prefix) || len(u.Prefix) == len(owner.Prefix) && u.Name == item.Upstream {
			owner = u
		}
	}
	return cmp.Or(giver, owner)
}

// gives reports whether the block of an upstream gives a tool or a prompt the name of an
// item.
func gives(u *hclfile.Upstream, item *Item) bool {
	if item.Kind != Tools && item.Kind != Prompts {
		return false
	}
	for _, name := range u.Rename {
		if name == item.Name {
			return true
		}
	}
	return false
}

// addressesOf returns what is taken by the files and the embedding program, and where.
func addressesOf(defined []*hclfile.Definitions, registered []*Item) map[leftKey]diag.Range {
	taken := map[leftKey]diag.Range{}
	for _, item := range registered {
		taken[leftKey{item.Kind, item.Address}] = item.Where
	}
	for _, d := range defined {
		for i := range d.Tools {
			taken[leftKey{Tools, d.Tools[i].Name}] = d.Tools[i].NameRange
		}
		for i := range d.Resources {
			taken[leftKey{Resources, d.Resources[i].URI}] = d.Resources[i].NameRange
		}
		for i := range d.Templates {
			if t := d.Templates[i].URITemplate; t != nil {
				taken[leftKey{Templates, t.String()}] = d.Templates[i].NameRange
			}
		}
		for i := range d.Prompts {
			taken[leftKey{Prompts, d.Prompts[i].Name}] = d.Prompts[i].NameRange
		}
	}
	return taken
}
