package crossref

import (
	"fmt"
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

// Elsewhere is what no file defines.
type Elsewhere struct {
	// Offered is all that there is now.
	Offered []Offered
	// Excuse reports whether a name of a kind that no upstream offers now is no mistake,
	// though a definition is about it: it is warned of then. It is asked of each such name,
	// and nil excuses none.
	Excuse func(kind, name string) bool
	// Incomplete says that files may define more, since one could not be parsed as a whole.
	Incomplete bool
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

// offerers returns the upstreams that a name is of, if there is anything of it: those whose
// blocks give one of theirs that name, or else those whose prefix it begins with and is the
// longest. None but the last have a prefix that says nothing: what is of them may be meant
// for a file.
func (c *checker) offerers(name string) (offerers []*hclfile.Upstream) {
	longest := 0
	for i := range c.config.Upstreams {
		u := &c.config.Upstreams[i]
		switch {
		case u.Gives(name):
			return []*hclfile.Upstream{u}
		case !strings.HasPrefix(name, u.Prefix) || len(u.Prefix) < longest:
		case len(u.Prefix) > longest:
			longest, offerers = len(u.Prefix), []*hclfile.Upstream{u}
		default:
			offerers = append(offerers, u)
		}
	}
	return offerers
}

// unknownOffer reports a name that is none of those of upstreams which it is of. What they
// offer is for them to say, and comes and goes: a name that was good once, or cannot be
// known yet, is no mistake of the files.
func (c *checker) unknownOffer(n *namespace, name string, where diag.Range, offerers []*hclfile.Upstream) {
	d := diag.Diagnostic{Code: "unknown-" + n.kind, Range: where, Detail: diag.DidYouMeanLonger(name, n.names())}
	unlisted := slices.IndexFunc(offerers, func(u *hclfile.Upstream) bool { return !c.listed[listing{u.Name, n.kind}] })
	first := offerers[max(unlisted, 0)]
	switch {
	case unlisted >= 0 && first.Prefix != "":
		return
	case unlisted >= 0:
		d.Severity = diag.Warning
		d.Summary = fmt.Sprintf("there is no %s named %q, unless the upstream %q offers it, which has not told yet", n.kind, name, first.Name)
	case first.Prefix == "" && !first.Gives(name):
		d.Summary = fmt.Sprintf("there is no %s named %q, and the upstream %q offers none", n.kind, name, first.Name)
	default:
		d.Summary = fmt.Sprintf("the upstream %q offers no %s %q", first.Name, n.kind, name)
	}
	if unlisted < 0 && c.excuse(n.kind, name) {
		d.Severity, d.Summary = diag.Warning, d.Summary+" now"
	}
	if d.Detail == "" && d.Severity == diag.Error {
		d.Detail = "correct the name; mcpd list shows those that there are"
	}
	c.report(d)
}

// mayOffer reports whether an upstream that has told nothing of a kind yet may offer what a
// pattern covers.
func (c *checker) mayOffer(kind, pattern string) bool {
	head, _, _ := strings.Cut(pattern, "*")
	return slices.ContainsFunc(c.config.Upstreams, func(u hclfile.Upstream) bool {
		return !c.listed[listing{u.Name, kind}] && (strings.HasPrefix(u.Prefix, head) || strings.HasPrefix(head, u.Prefix))
	})
}
