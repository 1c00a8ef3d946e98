package catalog

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/hclfile"
)

// owners are the upstreams by the names that are theirs. No server answers to the names of
// another, or comes under what the rules say of them, whether that other can be reached or not.
type owners struct {
	upstreams []hclfile.Upstream
	// given are those whose blocks give a tool or a prompt a name, by the name.
	given map[string][]*hclfile.Upstream
}

func ownersOf(upstreams []hclfile.Upstream) *owners {
	o := &owners{upstreams: upstreams, given: map[string][]*hclfile.Upstream{}}
	for i := range upstreams {
		for _, name := range upstreams[i].Rename {
			o.given[name] = append(o.given[name], &upstreams[i])
		}
	}
	return o
}

// owner is an upstream that has a name which another one offers.
type owner struct {
	// why says for what reason, and at where.
	why string
	at  diag.Range
	// renames says that its block gives something the name, and not its prefix.
	renames bool
}

// other returns the upstream that a name belongs to and that is not the item's, nil where
// there is none.
func (o *owners) other(item *Item) *owner {
	if given := o.given[item.Name]; given != nil && (item.Kind == Tools || item.Kind == Prompts) {
		if slices.ContainsFunc(given, func(u *hclfile.Upstream) bool { return u.Name == item.Upstream }) {
			return nil
		}
		return &owner{fmt.Sprintf("the upstream %q gives one of its own that name", given[0].Name), given[0].RenamedAt(item.Name), true}
	}
	u := o.byPrefix(item)
	if u == nil || u.Name == item.Upstream {
		return nil
	}
	return &owner{fmt.Sprintf("names that begin with %q are those of the upstream %q", u.Prefix, u.Name), u.NameRange, false}
}

// byPrefix returns the upstream whose names begin as that of an item does: of several that
// of the longest prefix, and the item's own before others.
func (o *owners) byPrefix(item *Item) (owner *hclfile.Upstream) {
	for i := range o.upstreams {
		u := &o.upstreams[i]
		if u.Prefix == "" || !strings.HasPrefix(item.Name, u.Prefix) {
			continue
		}
		if owner == nil || len(u.Prefix) > len(owner.Prefix) || len(u.Prefix) == len(owner.Prefix) && u.Name == item.Upstream {
			owner = u
		}
	}
	return owner
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
