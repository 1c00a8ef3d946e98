package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/mcpd/mcpd/engine"
)

func newList(e env) *cobra.Command {
	var f files
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the tools in the files",
		Long:  "List prints the name and the first line of the description of every tool in the files.",
		Example: `  mcpd list
  mcpd list --json --tools ./other-tools`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return list(cmd, e, &f, asJSON) },
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print names, descriptions and schemas as JSON")
	return cmd
}

func list(cmd *cobra.Command, e env, f *files, asJSON bool) error {
	s, err := f.open(e, engine.Options{})
	if err != nil {
		return err
	}
	defer s.Close(cmd.Context())
	if _, err := load(cmd.Context(), e, s, f.config); err != nil {
		return err
	}
	tools := s.Snapshot().Tools()
	if asJSON {
		rows := make([]map[string]any, len(tools))
		for i, tool := range tools {
			m := tool.Metadata()
			rows[i] = map[string]any{
				"name": m.Name, "title": m.Title, "description": m.Description, "input_schema": m.InputSchema,
				"output_schema": m.OutputSchema, "timeout_ms": m.Timeout.Milliseconds(),
				"idempotent": m.Idempotent, "labels": m.Labels,
			}
		}
		return printJSON(e.stdout, rows)
	}
	table := tabwriter.NewWriter(e.stdout, 0, 0, 2, ' ', 0)
	for _, tool := range tools {
		m := tool.Metadata()
		description := ""
		if m.Description != nil {
			description, _, _ = strings.Cut(*m.Description, "\n")
		}
		if _, err := fmt.Fprintf(table, "%s\t%s\n", m.Name, description); err != nil {
			return err
		}
	}
	return table.Flush()
}
