package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/engine"
)

func newList(e env) *cobra.Command {
	var f files
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list [TOOL...]",
		Short: "List the tools in the files",
		Long: `List prints the name and the first line of the description of every tool in
the files, or of those that are named.`,
		Example: `  mcpd list
  mcpd list add --json
  mcpd list --json --tools ./other-tools`,
		RunE: func(cmd *cobra.Command, args []string) error { return list(cmd, e, &f, args, asJSON) },
	}
	f.add(cmd)
	cmd.ValidArgsFunction = completeTools(e, &f, nil)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print names, descriptions and schemas as JSON")
	return cmd
}

func list(cmd *cobra.Command, e env, f *files, names []string, asJSON bool) error {
	s, err := f.open(e, engine.Options{})
	if err != nil {
		return err
	}
	defer s.Close(cmd.Context())
	if err := f.load(cmd.Context(), e, s, asJSON); err != nil {
		return err
	}
	tools, err := named(s.Snapshot().Tools(), names)
	if err != nil {
		return err
	}
	if asJSON {
		rows := make([]toolRow, len(tools))
		for i, tool := range tools {
			rows[i] = rowOf(tool.Metadata())
		}
		return printJSON(e.stdout, rows)
	}
	return printTools(e, tools)
}

// printTools prints a line for each tool.
func printTools(e env, tools []*engine.Tool) error {
	width := 0
	for _, tool := range tools {
		width = max(width, len(tool.Name()))
	}
	for _, tool := range tools {
		line := tool.Name()
		if d := tool.Metadata().Description; d != nil {
			line = fmt.Sprintf("%-*s  %s", width, line, summaryOf(*d))
		}
		if _, err := fmt.Fprintln(e.stdout, strings.TrimRight(line, " ")); err != nil {
			return err
		}
	}
	return nil
}

// summaryOf returns the first line of a description, as a terminal may show it.
func summaryOf(description string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(description), "\n")
	return diag.Printable(first)
}

// named returns the tools of these names, in the order of the names: all when there are none.
func named(tools []*engine.Tool, names []string) ([]*engine.Tool, error) {
	if len(names) == 0 {
		return tools, nil
	}
	known := map[string]*engine.Tool{}
	for _, tool := range tools {
		known[tool.Name()] = tool
	}
	var found []*engine.Tool
	for _, name := range names {
		if known[name] == nil {
			hint := diag.DidYouMean(name, slices.Sorted(maps.Keys(known)))
			if hint == "" {
				hint = "mcpd list shows all"
			}
			return nil, findings("there is no tool %q; %s", name, hint)
		}
		found = append(found, known[name])
	}
	return found, nil
}

// toolRow is what list says of a tool to machines.
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

func rowOf(m engine.Metadata) toolRow {
	return toolRow{
		Name: m.Name, Title: m.Title, Description: m.Description, InputSchema: m.InputSchema, OutputSchema: m.OutputSchema,
		TimeoutMS: m.Timeout.Milliseconds(), Idempotent: m.Idempotent,
		ReadOnly: m.ReadOnly, Destructive: m.Destructive, OpenWorld: m.OpenWorld, Labels: m.Labels,
	}
}
