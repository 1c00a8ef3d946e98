package main

import "github.com/spf13/cobra"

func newPolicy(e env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Tell how policies decide",
		Long: `Policy tells how the policies of the files decide about a call that you describe,
and which calls of an audit log they would decide otherwise today. Nothing is run.`,
		Example: `  mcpd policy explain refund order=O-7 amount=60
  mcpd policy replay audit/mcpd.jsonl --with ./tools.d`,
		RunE: helpOnVerbs,
		Args: cobra.ArbitraryArgs,
	}
	cmd.AddCommand(newPolicyExplain(e), newPolicyReplay(e))
	return cmd
}
