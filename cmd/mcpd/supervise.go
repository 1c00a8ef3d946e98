package main

import (
	"github.com/spf13/cobra"

	"github.com/mcpd/mcpd/internal/process/supervisor"
)

// superviseVerb is the verb by which mcpd starts itself to run a program of an
// exec grant.
const superviseVerb = "supervise"

// supervise returns the command that runs a program, nil where there is none.
func supervise(e env) []string {
	if e.self == "" {
		return nil
	}
	return []string{e.self, e.name, superviseVerb}
}

func newSupervise(e env) *cobra.Command {
	return &cobra.Command{
		Use:    superviseVerb,
		Short:  "Run a program for another mcpd, which starts it",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := supervisor.Main(e.stdin); err != nil {
				return findings("%v", err)
			}
			return nil
		},
	}
}
