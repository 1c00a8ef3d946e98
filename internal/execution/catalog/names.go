package catalog

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
)

// names says which upstreams may use which names. It follows from their blocks alone, so
// that a name stays reserved while its server cannot be reached.
type names struct {
	upstreams []definition.Upstream
	// given are the upstreams whose blocks give a tool or a prompt a name, by the name.
	given map[string][]*definition.Upstream
}

func newNames(upstreams []definition.Upstream) *names {
	n := &names{upstreams: upstreams, given: map[string][]*definition.Upstream{}}
	for i := range upstreams {
		for _, name := range upstreams[i].Rename {
			n.given[name] = append(n.given[name], &upstreams[i])
		}
	}
	return n
}

// conflict is why an upstream may not offer something by a name.
type conflict struct {
	why string
	// at is who has the name.
	at diag.Range
	// taken says that the block has to be mended: give one of the two another name.
	taken bool
}

// conflict returns why the upstream of an item may not use its name, nil where it may.
func (n *names) conflict(item *Item) *conflict {
	if given := n.given[item.Name]; given != nil && (item.Kind == Tools || item.Kind == Prompts) {
		if slices.ContainsFunc(given, func(u *definition.Upstream) bool { return u.Name == item.Upstream }) {
			return nil
		}
		return &conflict{fmt.Sprintf("the upstream %q gives one of its own that name", given[0].Name), given[0].RenamedAt(item.Name), true}
	}
	u := n.byPrefix(item)
	if u == nil || u.Name == item.Upstream {
		return nil
	}
	return &conflict{fmt.Sprintf("names that begin with %q are those of the upstream %q", u.Prefix, u.Name), u.NameRange, false}
}

// inUse is the conflict of an item whose address is in use.
func inUse(item *Item, at diag.Range) *conflict {
	if item.Kind == Tools || item.Kind == Prompts {
		return &conflict{"there is one of that name already", at, true}
	}
	return &conflict{"there is one of that address already", at, false}
}

// byPrefix returns the upstream whose names begin as that of an item does: of several that
// of the longest prefix, and the item's own before others.
func (n *names) byPrefix(item *Item) (owner *definition.Upstream) {
	for i := range n.upstreams {
		u := &n.upstreams[i]
		if u.Prefix == "" || !strings.HasPrefix(item.Name, u.Prefix) {
			continue
		}
		if owner == nil || len(u.Prefix) > len(owner.Prefix) || len(u.Prefix) == len(owner.Prefix) && u.Name == item.Upstream {
			owner = u
		}
	}
	return owner
}

// block returns the block of an upstream.
func (n *names) block(upstream string) *definition.Upstream {
	at := slices.IndexFunc(n.upstreams, func(u definition.Upstream) bool { return u.Name == upstream })
	return &n.upstreams[at]
}

// accepted returns who may use the names of tools that mcpd.lock accepts: of several
// upstreams the first.
func (n *names) accepted(known []ToolName) map[string]string {
	holders := map[string]string{}
	for _, t := range known {
		as := &Item{Kind: Tools, Name: t.Name, Address: t.Name, Upstream: t.Upstream}
		if _, held := holders[t.Name]; !held && n.conflict(as) == nil {
			holders[t.Name] = t.Upstream
		}
	}
	return holders
}
