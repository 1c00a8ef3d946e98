package policylang_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/policylang"
)

var refund = policylang.Tool{
	Name:   "refund",
	Schema: json.RawMessage(`{"type": "object", "properties": {"amount": {"type": "number"}}, "required": ["amount"]}`),
}

// deny returns a policy with an expression of a file.
func deny(expression string) policylang.Source {
	text := diag.WholeFile("policy.cel", expression)
	return policylang.Source{Name: "small_refunds_only", Deny: &text, Reason: "Refunds above 50 need a lead", Range: text.All()}
}

// A policy is compiled for a tool, and then decides about its calls.
func ExampleEnv_Compile() {
	env, err := policylang.NewEnv(nil, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	policy, problems := env.Compile(deny("args.amount > 50.0"), refund)
	if problems.HasErrors() {
		fmt.Println(problems)
		return
	}
	for _, amount := range []float64{20, 80} {
		decision := policy.Decide(context.Background(), policylang.Input{Args: map[string]any{"amount": amount}})
		fmt.Printf("%v: %s %q\n", amount, decision.Outcome, decision.Reason)
	}
	// Output:
	// 20: allow ""
	// 80: deny "Refunds above 50 need a lead"
}

// The types of arguments come from the schema of the tool, so that a misspelled argument is an
// error with a position.
func ExampleEnv_Compile_error() {
	env, err := policylang.NewEnv(nil, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, problems := env.Compile(deny("args.amuont > 50.0"), refund)
	for _, problem := range problems {
		fmt.Println(problem.Range, problem.Summary)
		fmt.Println(problem.Detail)
	}
	// Output:
	// policy.cel:1:6 tool "refund" has no argument "amuont"
	// did you mean "amount"?
}
