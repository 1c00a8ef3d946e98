package main

import (
	"context"
	"math"

	"github.com/spf13/cobra"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/execution/pipeline"
)

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

// policyExplain are the flags of policy explain.
type policyExplain struct {
	files    files
	supposed supposition
	asJSON   bool
}

func newPolicyExplain(e env) *cobra.Command {
	var x policyExplain
	cmd := &cobra.Command{
		Use:   "explain TOOL [NAME=VALUE...]",
		Short: "Print what each policy says of a call, and which one decides",
		Long: `Explain judges a call as serve would, and runs no body. It prints each policy that
covers the tool, in the order in which they are asked: where it stands, what its
conditions say, and what that means. Policies that the call does not come to, as
one before them has ended it, are marked, with what they would say.

The call is that of the user who types, unless --principal and --agent say who
else. Policies over results are asked of what --result says. Limits count nothing.

The exit code is 0 when the call is allowed, 1 when it is denied, refused or held
for approval, and 2 when that cannot be told.`,
		Example: `  mcpd policy explain refund order=O-7 amount=60
  mcpd policy explain refund --args '{"order": "O-7", "amount": 60}' --principal '{"id": "ada", "kind": "jwt", "groups": ["leads"]}'
  mcpd policy explain get_customer id=C-1 --result '{"name": "Ada", "tier": "internal"}'
  mcpd policy explain runbook://restart --kind resource --json`,
		Args: needs(1, math.MaxInt, "name a tool: mcpd policy explain TOOL [NAME=VALUE...]; mcpd list shows them"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := x.supposed.check(cmd); err != nil {
				return err
			}
			return x.run(cmd.Context(), e, args[0], args[1:])
		},
	}
	x.files.add(cmd)
	x.files.upstreams.add(cmd)
	x.supposed.add(cmd)
	cmd.Flags().BoolVar(&x.asJSON, "json", false, "print the explanation as JSON")
	cmd.ValidArgsFunction = completeTools(e, &x.files, nil)
	return cmd
}

func (x *policyExplain) run(ctx context.Context, e env, name string, pairs []string) error {
	s, err := x.files.open(e, engine.Options{})
	if err != nil {
		return err
	}
	defer s.Close(ctx)
	if err := x.files.load(ctx, e, s, x.asJSON); err != nil {
		return untold(err)
	}
	of, err := x.supposed.of(e, s.Snapshot(), name, pairs)
	if err != nil {
		return err
	}
	explained, err := s.Inside().Explain(ctx, of)
	if err != nil {
		return untold(err)
	}
	if x.asJSON {
		err = printJSON(e.text(), explanationRowOf(&explained))
	} else {
		err = printExplanation(e.text(), &explained)
	}
	if err == nil && outcomeOf(&explained) != pipeline.VerdictAllowed {
		return &exitError{code: exitFindings} // the explanation has said it
	}
	return err
}

// untold is the error of what keeps a verb from telling how policies decide: its exit code
// is another than that of what they say.
func untold(err error) error { return &exitError{code: exitUsage, text: err.Error()} }

// outcomeOf returns what policies say of a call, and of what it returns where that is known.
func outcomeOf(x *pipeline.Explanation) pipeline.Verdict {
	if x.Verdict == pipeline.VerdictAllowed && (x.ResultVerdict == pipeline.VerdictDenied || x.ResultVerdict == pipeline.VerdictRejected) {
		return x.ResultVerdict
	}
	return x.Verdict
}
