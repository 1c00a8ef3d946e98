package configcheck

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/internal/language/hclfile"
)

// namespace is the names of one kind of definition.
type namespace struct {
	kind   string
	places map[string]diag.Range
	// accepted are the names of the tools of upstreams that mcpd.lock accepts.
	accepted map[string]bool
	// sorted are the names in order, when there were so many in both.
	sorted []string
	known  int
}

func newNamespace(kind string) *namespace {
	return &namespace{kind: kind, places: map[string]diag.Range{}, accepted: map[string]bool{}}
}

func (n *namespace) names() []string {
	if known := len(n.places) + len(n.accepted); n.known != known {
		all := slices.AppendSeq(slices.Collect(maps.Keys(n.places)), maps.Keys(n.accepted))
		slices.Sort(all)
		n.sorted, n.known = slices.Compact(all), known
	}
	return n.sorted
}

// define remembers where a name is defined, and reports a second definition in
// another file.
func (c *checker) define(n *namespace, name string, where diag.Range) {
	first, twice := n.places[name]
	if !twice {
		n.places[name] = where
		return
	}
	if first.File == where.File && where.File != "" {
		return // whoever decoded the file has told
	}
	c.report(diag.Diagnostic{
		Code: "duplicate-" + n.kind, Range: where,
		Summary: fmt.Sprintf("%s %q is defined twice", n.kind, name),
		Detail:  "rename one of them or remove it",
		Notes:   []diag.Note{{Range: first, Message: "it is first defined here"}},
	})
}

// exist checks the names and patterns that a definition is about.
func (c *checker) exist(of string, about hclfile.Targets) {
	c.existIn(c.tools, of, about.Tools)
	c.existIn(c.resources, of, about.Resources)
	c.existIn(c.prompts, of, about.Prompts)
}

func (c *checker) existIn(n *namespace, of string, names []hclfile.Name) {
	for _, name := range names {
		switch {
		case name.Text == "*":
		case !strings.Contains(name.Text, "*"):
			c.known(n, name.Text, name.Range)
		case c.incomplete || slices.ContainsFunc(n.names(), name.Matches):
		default:
			if may := c.mayOffer(n.kind, name.Text); may != nil {
				c.refer(Reference{Name: name, Kind: n.kind, Of: of, Upstreams: may})
				continue
			}
			c.report(idlePattern(n.kind, name, of))
		}
	}
}

// idlePattern warns of a pattern that matches nothing.
func idlePattern(kind string, pattern hclfile.Name, of string) diag.Diagnostic {
	return diag.Diagnostic{
		Severity: diag.Warning, Code: "pattern-matches-nothing", Range: pattern.Range,
		Summary: fmt.Sprintf("no %s matches the pattern %q of %s", kind, pattern.Text, of),
		Detail:  fmt.Sprintf("the pattern covers %ss that are added later; remove it if none will be", kind),
	}
}

// known reports a name that does not exist.
func (c *checker) known(n *namespace, name string, where diag.Range) {
	if _, ok := n.places[name]; ok || c.incomplete {
		return
	}
	if offerers := c.offerers(name); len(offerers) > 0 && (n == c.tools || n == c.resources || n == c.prompts) {
		c.offeredName(n, name, where, offerers)
		return
	}
	detail := diag.DidYouMeanLonger(name, n.names())
	if detail == "" {
		detail = "define it, or correct the name"
	}
	c.report(diag.Diagnostic{
		Code: "unknown-" + n.kind, Range: where,
		Summary: fmt.Sprintf("there is no %s named %q", n.kind, name), Detail: detail,
	})
}

// checkCalls checks the names and patterns of the tools that the definitions of
// a file may call.
func (c *checker) checkCalls(f *hclfile.Definitions) {
	eachGrant(f, func(kind, name string, granted grant.Set, ranges map[string]diag.Range) {
		c.existIn(c.tools, fmt.Sprintf("%s %q", kind, name), callable(granted, ranges))
	})
}

// callable returns what a grant lets be called. What has no place nobody has written.
func callable(granted grant.Set, ranges map[string]diag.Range) []hclfile.Name {
	var names []hclfile.Name
	for _, text := range granted.Call {
		if where, written := ranges["tools."+text]; written {
			names = append(names, hclfile.Name{Text: text, Range: where})
		}
	}
	return names
}

// mayCall reports whether a grant lets a tool be called.
func mayCall(granted grant.Set, tool string) bool {
	return slices.ContainsFunc(granted.Call, func(text string) bool { return hclfile.Name{Text: text}.Matches(tool) })
}
