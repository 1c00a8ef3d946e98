package configcheck

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/hclfile"
)

// Offered is one thing that no file defines.
type Offered struct {
	// Kind is "tool", "resource" or "prompt", and Name what it is called here. The embedding
	// program has no resources.
	Kind, Name string
	// Upstream is the server whose tool mcpd.lock accepts, "" for the embedding program.
	Upstream string
	Range    diag.Range
}

// Elsewhere is what no file defines.
type Elsewhere struct {
	// Offered are the items of the embedding program, and the tools of upstream servers that
	// mcpd.lock accepts.
	Offered []Offered
	// Locked are the upstreams whose tools mcpd.lock has: what is not among Offered does not
	// exist. Of other upstreams, and of other kinds, nothing is known.
	Locked []string
	// Refer receives the names and patterns that only upstream servers can say something
	// about; nil ignores them.
	Refer func(Reference)
	// Incomplete says that files may define more, since one could not be parsed as a whole.
	Incomplete bool
}

// Reference is a name or a pattern in a file by which upstream servers may offer something.
type Reference struct {
	hclfile.Name
	Kind string
	// Of is the definition with the pattern, for messages.
	Of string
	// Upstreams are the servers that may offer it, in the order of their blocks.
	Upstreams []*hclfile.Upstream
}

// Offers is what upstream servers offer now.
type Offers struct {
	// Names are all names of a kind that are in use, in order.
	Names map[string][]string
	// Told reports whether a server has listed what it offers of a kind.
	Told func(upstream, kind string) bool
}

// CheckReferences warns of references to things that no server offers now.
func CheckReferences(references []Reference, offers Offers) (problems diag.List) {
	for i := range references {
		if d := references[i].check(offers); d != nil {
			problems = append(problems, *d)
		}
	}
	return problems
}

func (r *Reference) check(offers Offers) *diag.Diagnostic {
	names := offers.Names[r.Kind]
	if slices.ContainsFunc(names, r.Matches) {
		return nil
	}
	silent := slices.IndexFunc(r.Upstreams, func(u *hclfile.Upstream) bool { return !offers.Told(u.Name, r.Kind) })
	first := r.Upstreams[max(silent, 0)]
	if r.IsPattern() {
		if silent >= 0 {
			return nil
		}
		d := idlePattern(r.Kind, r.Name, r.Of)
		return &d
	}
	d := &diag.Diagnostic{Severity: diag.Warning, Code: "unknown-" + r.Kind, Range: r.Range, Detail: diag.DidYouMeanLonger(r.Text, names)}
	switch {
	case silent >= 0 && first.Prefix != "":
		return nil
	case silent >= 0:
		d.Summary = fmt.Sprintf("there is no %s named %q, unless the upstream %q offers it, which has not told yet", r.Kind, r.Text, first.Name)
	case first.Prefix == "" && !first.Gives(r.Text):
		d.Summary = fmt.Sprintf("there is no %s named %q, and the upstream %q offers none now", r.Kind, r.Text, first.Name)
	default:
		d.Summary = fmt.Sprintf("the upstream %q offers no %s %q now", first.Name, r.Kind, r.Text)
	}
	return d
}

// IsPattern reports whether it is a pattern.
func (r *Reference) IsPattern() bool { return strings.Contains(r.Text, "*") }

// elsewhere remembers what no file defines, and returns what is the embedding program's.
func (c *checker) elsewhere(e Elsewhere) (builtin []hclfile.Name) {
	c.refer = e.Refer
	if c.refer == nil {
		c.refer = func(Reference) {}
	}
	c.locked = e.Locked
	spaces := map[string]*namespace{"tool": c.tools, "resource": c.resources, "prompt": c.prompts}
	for _, o := range e.Offered {
		if o.Upstream != "" {
			spaces[o.Kind].accepted[o.Name] = true
			continue
		}
		c.define(spaces[o.Kind], o.Name, o.Range)
		if o.Kind == "tool" {
			builtin = append(builtin, hclfile.Name{Text: o.Name, Range: o.Range})
		}
	}
	return builtin
}

// isLocked reports whether mcpd.lock has all that an upstream may offer of a kind.
func (c *checker) isLocked(u *hclfile.Upstream, kind string) bool {
	return kind == "tool" && slices.Contains(c.locked, u.Name)
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

// offeredName checks a name that belongs to upstreams. One that mcpd.lock lacks is a mistake
// where the lock has all their tools; everything else is for the servers to say.
func (c *checker) offeredName(n *namespace, name string, where diag.Range, offerers []*hclfile.Upstream) {
	if n.accepted[name] || slices.ContainsFunc(offerers, func(u *hclfile.Upstream) bool { return !c.isLocked(u, n.kind) }) {
		c.refer(Reference{Name: hclfile.Name{Text: name, Range: where}, Kind: n.kind, Upstreams: offerers})
		return
	}
	first := offerers[0]
	d := diag.Diagnostic{
		Code: "unknown-" + n.kind, Range: where, Summary: fmt.Sprintf("mcpd.lock has no %s %q of the upstream %q", n.kind, name, first.Name),
		Detail: cmp.Or(diag.DidYouMeanLonger(name, n.names()), fmt.Sprintf("correct the name, or accept the tool: mcpd lock accept %s", first.Name)),
	}
	if first.Prefix == "" && !first.Gives(name) {
		d.Summary = fmt.Sprintf("there is no %s named %q, and mcpd.lock has none of the upstream %q", n.kind, name, first.Name)
	}
	c.report(d)
}

// mayOffer returns the upstreams that may offer something which a pattern covers, and of
// which mcpd.lock does not have all.
func (c *checker) mayOffer(kind, pattern string) (may []*hclfile.Upstream) {
	head, _, _ := strings.Cut(pattern, "*")
	for i := range c.config.Upstreams {
		u := &c.config.Upstreams[i]
		if !c.isLocked(u, kind) && (strings.HasPrefix(u.Prefix, head) || strings.HasPrefix(head, u.Prefix)) {
			may = append(may, u)
		}
	}
	return may
}
