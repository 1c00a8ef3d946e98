package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/engine"
)

func newList(e env) *cobra.Command {
	var f projectFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list [NAME...]",
		Short: "List the tools, resources and prompts in the files",
		Long: `List prints tools and prompts by name, and resources and templates by URI, with the
first line of each description. With names or URIs it prints only these, with their
arguments.`,
		Example: `  mcpd list
  mcpd list add runbook://restart
  mcpd list --json --tools ./other-tools`,
		RunE: func(cmd *cobra.Command, args []string) error { return list(cmd, e, &f, args, asJSON) },
	}
	f.add(cmd)
	f.upstreams.add(cmd)
	cmd.ValidArgsFunction = completeListed(e, &f)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print all fields of each item as JSON")
	return cmd
}

func list(cmd *cobra.Command, e env, f *projectFlags, names []string, asJSON bool) error {
	s, err := f.open(e, engine.Options{})
	if err != nil {
		return err
	}
	defer s.Close(cmd.Context())
	if err := f.load(cmd.Context(), e, s, asJSON); err != nil {
		return err
	}
	all := offeredBy(s.Snapshot())
	if all, err = all.named(names); err != nil {
		return err
	}
	if asJSON {
		return printJSON(e.text(), all.rows())
	}
	return all.print(e, len(names) > 0)
}

// listing holds the items of a snapshot, or some of them, sorted bytewise by address.
type listing struct {
	tools                         []engine.Metadata
	resources, templates, prompts []engine.OfferMetadata
}

func offeredBy(s *engine.Snapshot) (l listing) {
	for _, tool := range s.Tools() {
		l.tools = append(l.tools, tool.Metadata())
	}
	for kind, offers := range l.offers() {
		for _, offer := range s.Offers(kind) {
			*offers = append(*offers, offer.Metadata())
		}
	}
	return l
}

// offers returns the lists of resources, templates and prompts by kind.
func (l *listing) offers() map[call.Kind]*[]engine.OfferMetadata {
	return map[call.Kind]*[]engine.OfferMetadata{
		call.Resources: &l.resources, call.Templates: &l.templates, call.Prompts: &l.prompts,
	}
}

// named returns the items with one of the names, or all items if names is empty.
func (l listing) named(names []string) (part listing, err error) {
	if len(names) == 0 {
		return l, nil
	}
	found := map[string]bool{}
	wanted := func(of ...string) bool {
		hit := slices.ContainsFunc(of, func(name string) bool { return slices.Contains(names, name) })
		for _, name := range of {
			found[name] = found[name] || hit
		}
		return hit
	}
	for _, m := range l.tools {
		if wanted(m.Name) {
			part.tools = append(part.tools, m)
		}
	}
	parts := part.offers()
	for kind, offers := range l.offers() {
		for _, m := range *offers {
			if wanted(m.Address, m.Name) {
				*parts[kind] = append(*parts[kind], m)
			}
		}
	}
	for _, name := range names {
		if !found[name] {
			return part, findingsError("the files define no %q; %s", name, cmp.Or(diag.DidYouMean(name, l.addresses()), "mcpd list shows all names"))
		}
	}
	return part, nil
}

// addresses returns the names and URIs of all items, tools first.
func (l *listing) addresses() []string {
	var all []string
	for _, line := range slices.Concat(l.lines()...) {
		all = append(all, line.address)
	}
	return all
}

// listLine is the output for one item.
type listLine struct {
	address, summary string
	// arguments of a prompt, or variables of a template
	arguments []engine.Argument
	// schema of the arguments of a tool
	schema json.RawMessage
}

func (l *listing) lines() [][]listLine {
	groups := make([][]listLine, 1, 4)
	for _, m := range l.tools {
		description := ""
		if m.Description != nil {
			description = *m.Description
		}
		arguments := m.InputSchema
		if m.DeclaredSchema != nil {
			arguments = m.DeclaredSchema
		}
		groups[0] = append(groups[0], listLine{address: m.Name, summary: summaryOf(description), schema: arguments})
	}
	for _, offers := range [][]engine.OfferMetadata{l.resources, l.templates, l.prompts} {
		var group []listLine
		for _, m := range offers {
			group = append(group, listLine{address: m.Address, summary: summaryOf(cmp.Or(m.Description, m.Title)), arguments: m.Arguments})
		}
		groups = append(groups, group)
	}
	return groups
}

// print prints a line for each item, and a heading for each group if there are several
// groups. With detail it prints the arguments below each line.
func (l *listing) print(e env, detail bool) error {
	var out strings.Builder
	groups := l.lines()
	several := len(slices.DeleteFunc(slices.Clone(groups), func(g []listLine) bool { return len(g) == 0 })) > 1
	for i, group := range groups {
		if len(group) == 0 {
			continue
		}
		if several {
			if out.Len() > 0 {
				out.WriteString("\n")
			}
			fmt.Fprintf(&out, "%s:\n", [...]string{"tools", "resources", "templates", "prompts"}[i])
		}
		width := 0
		for _, line := range group {
			width = max(width, min(len(line.address), maxColumn))
		}
		for _, line := range group {
			fmt.Fprintln(&out, strings.TrimRight(fmt.Sprintf("%-*s  %s", width, line.address, line.summary), " "))
			if detail {
				line.writeArguments(&out)
			}
		}
	}
	_, err := fmt.Fprint(e.stdout, out.String())
	return err
}

// maxColumn is the longest address that is padded to align the summaries.
const maxColumn = 48

// longestSummary is the maximum length of a summary, in runes.
const longestSummary = 120

// summaryOf returns the first paragraph of a description in one line, cut at a word if it is
// too long.
func summaryOf(description string) string {
	paragraph, _, _ := strings.Cut(strings.ReplaceAll(strings.TrimSpace(description), "\r\n", "\n"), "\n\n")
	shown := []rune(diag.Printable(strings.Join(strings.Fields(paragraph), " ")))
	if len(shown) <= longestSummary {
		return string(shown)
	}
	cut := string(shown[:longestSummary])
	if blank := strings.LastIndexByte(cut, ' '); blank > 0 {
		cut = cut[:blank]
	}
	return cut + " …"
}

// rows is the JSON output of list. Every list is present, even if empty.
type rows struct {
	Tools     []toolRow     `json:"tools"`
	Resources []resourceRow `json:"resources"`
	Templates []templateRow `json:"templates"`
	Prompts   []promptRow   `json:"prompts"`
}

// toolRow is the JSON output for a tool.
type toolRow struct {
	Name         string            `json:"name"`
	Title        string            `json:"title"`
	Description  *string           `json:"description"`
	InputSchema  json.RawMessage   `json:"input_schema"`
	OutputSchema json.RawMessage   `json:"output_schema"`
	TimeoutMS    int64             `json:"timeout_ms"`
	Idempotent   bool              `json:"idempotent"`
	ReadOnly     *bool             `json:"read_only"`
	Destructive  *bool             `json:"destructive"`
	OpenWorld    *bool             `json:"open_world"`
	Labels       map[string]string `json:"labels"`
}

// resourceRow is the JSON output for a resource.
type resourceRow struct {
	URI string `json:"uri"`
	resourceRowFields
	Size *int64 `json:"size"`
}

// templateRow is the JSON output for a template.
type templateRow struct {
	URITemplate string `json:"uri_template"`
	resourceRowFields
	Variables []argumentRow `json:"variables"`
}

// resourceRowFields holds the fields that resources and templates share.
type resourceRowFields struct {
	Name        string          `json:"name"`
	Title       string          `json:"title"`
	Description *string         `json:"description"`
	MIMEType    *string         `json:"mime_type"`
	Annotations json.RawMessage `json:"annotations"`
}

// promptRow is the JSON output for a prompt.
type promptRow struct {
	Name        string        `json:"name"`
	Title       string        `json:"title"`
	Description *string       `json:"description"`
	Arguments   []argumentRow `json:"arguments"`
}

// argumentRow is an argument of a prompt or a variable of a template.
type argumentRow struct {
	Name        string  `json:"name"`
	Title       string  `json:"title"`
	Description *string `json:"description"`
	Required    bool    `json:"required"`
}

func (l *listing) rows() rows {
	r := rows{[]toolRow{}, []resourceRow{}, []templateRow{}, []promptRow{}}
	for _, m := range l.tools {
		r.Tools = append(r.Tools, toolRow{
			Name: m.Name, Title: m.Title, Description: m.Description, InputSchema: m.InputSchema, OutputSchema: m.OutputSchema,
			TimeoutMS: m.Timeout.Milliseconds(), Idempotent: m.Idempotent,
			ReadOnly: m.ReadOnly, Destructive: m.Destructive, OpenWorld: m.OpenWorld, Labels: m.Labels,
		})
	}
	for _, m := range l.resources {
		row := resourceRow{URI: m.Address, resourceRowFields: saidBy(m)}
		if m.Size >= 0 {
			row.Size = &m.Size
		}
		r.Resources = append(r.Resources, row)
	}
	for _, m := range l.templates {
		r.Templates = append(r.Templates, templateRow{URITemplate: m.Address, resourceRowFields: saidBy(m), Variables: argumentRows(m.Arguments)})
	}
	for _, m := range l.prompts {
		r.Prompts = append(r.Prompts, promptRow{m.Address, m.Title, orNull(m.Description), argumentRows(m.Arguments)})
	}
	return r
}

func saidBy(m engine.OfferMetadata) resourceRowFields {
	return resourceRowFields{m.Name, m.Title, orNull(m.Description), orNull(m.MIMEType), m.Annotations}
}

func argumentRows(arguments []engine.Argument) []argumentRow {
	list := make([]argumentRow, len(arguments))
	for i, a := range arguments {
		list[i] = argumentRow{a.Name, a.Title, orNull(a.Description), a.Required}
	}
	return list
}

// orNull returns nil for an empty string.
func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
