package main

import "github.com/spf13/cobra"

// noOperand refuses the operands of a verb that takes none.
func noOperand(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage("%s takes no %q; see %[1]s --help", cmd.CommandPath(), args[0])
	}
	return nil
}

// oneFolder lets a verb take a folder, and no more.
func oneFolder(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usage("mcpd %s takes one folder, not %d; see mcpd %[1]s --help", cmd.Name(), len(args))
	}
	return nil
}
