package main

import "github.com/spf13/cobra"

// nothing refuses the operands of a verb that takes none.
func nothing(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage("mcpd %s takes no %q; see mcpd %[1]s --help", cmd.Name(), args[0])
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
