package overlay

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/federation/upstream"
	"github.com/mcpd/mcpd/internal/language/hclfile"
)

// unknown warns of names in the block that the server lists nothing by: a tool that is meant
// to be left out is offered, and what is said of it in the place of its server holds for
// none. Where the server was not asked, what was accepted of it says nothing of what is
// left out, nor of prompts.
func (m *maker) unknown(l *upstream.Listing, asked bool) {
	tools, prompts := m.namesIn(l.Tools), m.namesIn(l.Prompts)
	for _, n := range m.block.Include {
		m.unlisted(n, "include", tools)
	}
	for i := range m.block.Overrides {
		o := &m.block.Overrides[i]
		m.unlisted(hclfile.Name{Text: o.Tool, Range: o.Range}, "an override block", tools)
	}
	if !asked {
		return
	}
	for _, n := range m.block.Exclude {
		m.unlisted(n, "exclude", tools)
	}
	all := slices.Concat(tools, prompts)
	for _, from := range slices.Sorted(maps.Keys(m.block.Rename)) {
		m.unlisted(hclfile.Name{Text: from, Range: m.block.NameRange}, "rename", all)
	}
}

// unlisted warns of a name or a pattern that covers nothing of a list.
func (m *maker) unlisted(n hclfile.Name, where string, names []string) {
	if slices.ContainsFunc(names, n.Matches) {
		return
	}
	d := diag.Diagnostic{
		Severity: diag.Warning, Code: "unknown-tool", Range: n.Range,
		Summary: fmt.Sprintf("the upstream %q lists nothing that is called %q, which %s names", m.block.Name, n.Text, where),
		Detail:  diag.DidYouMean(n.Text, names),
	}
	if strings.Contains(n.Text, "*") {
		d.Code, d.Summary = "pattern-matches-nothing", fmt.Sprintf("the upstream %q lists nothing that the pattern %q of %s covers", m.block.Name, n.Text, where)
	}
	m.problems = append(m.problems, d)
}

// namesIn returns how a server calls the entries of a list, from behind the veil.
func (m *maker) namesIn(list []json.RawMessage) []string {
	names := make([]string, 0, len(list))
	for _, entry := range list {
		if name := decoded(entry).text("name"); name != "" {
			names = append(names, m.veil.Redact(name))
		}
	}
	return names
}
