package worker_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/scripting"
	"github.com/mcpd/mcpd/scripting/worker"
)

// An executor starts the program again as its worker processes. The main function of the program
// calls Main if its arguments say so.
func ExampleNewExecutor() {
	self, err := os.Executable()
	if err != nil {
		log.Fatal(err)
	}
	executor, err := worker.NewExecutor(worker.Options{Processes: 1}, self, "worker")
	if err != nil {
		log.Fatal(err)
	}
	defer executor.Close()
	program, problems := scripting.Compile(scripting.Source{Name: "double", Text: diag.WholeFile("double.js", "return input.n * 2")})
	if problems.HasErrors() {
		log.Fatal(problems)
	}
	outcome, err := executor.Run(context.Background(), scripting.Call{Program: program, Input: []byte(`{"n": 21}`)}, nil)
	if err != nil || outcome.Failure != nil {
		log.Fatal(err, outcome.Failure)
	}
	fmt.Println(string(outcome.Result.JSON))
	// Output: 42
}
