package scripting_test

import (
	"context"
	"fmt"
	"time"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/scripting"
)

// A script is compiled once and runs once for each call.
func ExampleCompile() {
	program, problems := scripting.Compile(scripting.Source{
		Name: "double", Kind: scripting.Tool, Language: scripting.JS,
		Text: diag.WholeFile("tools.d/double.js", "return { doubled: input.n * 2 };"),
	})
	if problems.HasErrors() {
		fmt.Println(problems)
		return
	}
	executor := scripting.Inline()
	for _, input := range []string{`{"n": 21}`, `{"n": -1}`} {
		outcome, err := executor.Run(context.Background(), scripting.Call{Program: program, Input: []byte(input)}, nil)
		if err != nil || outcome.Failure != nil {
			fmt.Println(err, outcome.Failure)
			return
		}
		fmt.Printf("%s\n", outcome.Result.JSON)
	}
	// Output:
	// {"doubled":42}
	// {"doubled":-2}
}

// A call ends at the first limit that it exceeds: the limits of the call, or the deadline of its
// context.
func ExampleLimits() {
	executor := scripting.Inline()
	for _, body := range []string{"return 'long '.repeat(100)", "while (true) {}"} {
		program, problems := scripting.Compile(scripting.Source{Name: "script", Text: diag.WholeFile("script.js", body)})
		if problems.HasErrors() {
			fmt.Println(problems)
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		outcome, err := executor.Run(ctx, scripting.Call{Program: program, Limits: scripting.Limits{Output: 64}}, nil)
		cancel()
		if err != nil || outcome.Failure == nil {
			fmt.Println(err, outcome.Result)
			return
		}
		fmt.Println(outcome.Failure.Kind, outcome.Failure.Limit)
	}
	// Output:
	// Limit output
	// Timeout
}
