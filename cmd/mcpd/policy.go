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
		Short: "Explain and replay policy decisions",
		Long: `Policy explains how the policies in the files decide about a call that you describe. It
also replays an audit log and prints the calls that they would decide differently. No
tool runs.`,
		Example: `  mcpd policy explain refund order=O-7 amount=60
  mcpd policy replay audit/mcpd.jsonl --with ./tools.d`,
		RunE: helpOnVerbs,
		Args: cobra.ArbitraryArgs,
	}
	cmd.AddCommand(newPolicyExplain(e), newPolicyReplay(e))
	return cmd
}

// policyExplain holds the flags of policy explain.
type policyExplain struct {
	files    projectFlags
	supposed explainCallFlags
	asJSON   bool
}

func newPolicyExplain(e env) *cobra.Command {
	var x policyExplain
	cmd := &cobra.Command{
		Use:   "explain TOOL [NAME=VALUE...]",
		Short: "Print how each policy decides about a call",
		Long: `Explain evaluates the policies for a call, as serve does, and runs no script. It prints
each policy for the tool in order of evaluation: its position, the values of its
conditions and its decision. A policy that is not reached is marked, with the decision
that it would make.

The caller is the local user; --principal and --agent describe another one. Policies
over results evaluate the value of --result. Rate limits are not counted.

The exit code is 0 if the call is allowed. It is 1 if the call is denied, rejected or
held for approval, and 2 if there is no answer.`,
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
	x.supposed.add(cmd)
	cmd.Flags().BoolVar(&x.asJSON, "json", false, "print the explanation as JSON")
	x.files.add(cmd)
	x.files.upstreams.add(cmd)
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
	of, err := x.supposed.hypotheticalCall(e, s.Snapshot(), name, pairs)
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
		return &exitError{code: exitFindings} // the explanation was printed
	}
	return err
}

// untold returns an error with the exit code for "no answer", which differs from the
// code for a denied call.
func untold(err error) error { return &exitError{code: exitUsage, text: err.Error()} }

// outcomeOf returns the verdict of the policies for the call, and for its result if
// known.
func outcomeOf(x *pipeline.Explanation) pipeline.Verdict {
	if x.Verdict == pipeline.VerdictAllowed && (x.ResultVerdict == pipeline.VerdictDenied || x.ResultVerdict == pipeline.VerdictRejected) {
		return x.ResultVerdict
	}
	return x.Verdict
}
