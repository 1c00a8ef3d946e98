package crossref

import (
	"slices"
	"strings"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/hclfile"
)

// Offered is one thing that no file defines.
type Offered struct {
	// Kind is "tool", "resource" or "prompt", and Name what it is called here. The embedding
	// program has no resources.
	Kind, Name string
	// Upstream is the name of the server that offers it, "" for the embedding program.
	Upstream string
	// ToolsAlone says that nothing is known of what else that server offers.
	ToolsAlone bool
	// Range is where it is from: the name of the upstream block.
	Range diag.Range
}

// listing is what a server offers of a kind.
type listing struct{ upstream, kind string }

// elsewhere remembers what no file defines, and returns what is the embedding program's.
func (c *checker) elsewhere(offers []Offered) (builtin []hclfile.Name) {
	c.listed = map[listing]bool{}
	spaces := map[string]*namespace{"tool": c.tools, "resource": c.resources, "prompt": c.prompts}
	for _, o := range offers {
		if o.Upstream == "" {
			c.define(spaces[o.Kind], o.Name, o.Range)
			if o.Kind == "tool" {
				builtin = append(builtin, hclfile.Name{Text: o.Name, Range: o.Range})
			}
			continue
		}
		for kind := range spaces {
			c.listed[listing{o.Upstream, kind}] = c.listed[listing{o.Upstream, kind}] || !o.ToolsAlone || kind == "tool"
		}
		if n := spaces[o.Kind]; n != nil {
			if _, taken := n.places[o.Name]; !taken {
				n.places[o.Name] = o.Range
			}
		}
	}
	return builtin
}

// offerer returns the upstream that may offer what has a name, "" for none, and whether
// one by whose prefix it seems to be has not told yet what it offers of a kind. What it
// offers is for it to say, and comes and goes: a name of it is no mistake of the files.
func (c *checker) offerer(kind, name string) (upstream string, unlisted bool) {
	for i := range c.config.Upstreams {
		u := &c.config.Upstreams[i]
		if !mayBeOf(u, name) {
			continue
		}
		if upstream = u.Name; !c.listed[listing{u.Name, kind}] && u.Prefix != "" {
			return upstream, true
		}
	}
	return upstream, false
}

// mayBeOf reports whether what an upstream offers may have a name here.
func mayBeOf(u *hclfile.Upstream, name string) bool {
	if strings.HasPrefix(name, u.Prefix) {
		return true
	}
	for _, renamed := range u.Rename {
		if renamed == name {
			return true
		}
	}
	return false
}

// mayOffer reports whether an upstream that has told nothing of a kind yet may offer what a
// pattern covers.
func (c *checker) mayOffer(kind, pattern string) bool {
	head, _, _ := strings.Cut(pattern, "*")
	return slices.ContainsFunc(c.config.Upstreams, func(u hclfile.Upstream) bool {
		return !c.listed[listing{u.Name, kind}] && (strings.HasPrefix(u.Prefix, head) || strings.HasPrefix(head, u.Prefix))
	})
}
