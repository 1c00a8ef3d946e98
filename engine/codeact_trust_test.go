package engine_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/extensions/codemode"
	"github.com/mcpd/mcpd/scripting"
)

// countingExecutor is an executor that counts its runs.
type countingExecutor struct {
	scripting.Executor
	ran, closed int
}

func (c *countingExecutor) Run(ctx context.Context, call scripting.Call, h scripting.Host) (scripting.Outcome, error) {
	c.ran++
	return c.Executor.Run(ctx, call, h)
}

func (c *countingExecutor) Close() error {
	c.closed++
	return c.Executor.Close()
}

// executorWithWorkers is an executor with worker processes.
type executorWithWorkers struct{ *countingExecutor }

func (executorWithWorkers) Workers() scripting.Workers { return scripting.Workers{} }

// A program runs only in an executor with processes, or in the one that the embedding program sets.
func TestCode_requiresExecutor(t *testing.T) {
	for name, c := range map[string]struct {
		executor, programs func(*countingExecutor) scripting.Executor
		inScripts, inOwn   int // how much runs in each
	}{
		"nothing is said":           {nil, nil, 0, 0},
		"the executor has none":     {func(c *countingExecutor) scripting.Executor { return c }, nil, 1, 0},
		"the executor has some":     {func(c *countingExecutor) scripting.Executor { return executorWithWorkers{c} }, nil, 2, 0},
		"another one is for it":     {func(c *countingExecutor) scripting.Executor { return executorWithWorkers{c} }, func(c *countingExecutor) scripting.Executor { return c }, 1, 1},
		"one without is for it":     {nil, func(c *countingExecutor) scripting.Executor { return c }, 0, 1},
		"one with some is for that": {nil, func(c *countingExecutor) scripting.Executor { return executorWithWorkers{c} }, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			scripts, own := &countingExecutor{Executor: scripting.Inline()}, &countingExecutor{Executor: scripting.Inline()}
			o := engine.Options{Name: "test", Extensions: []engine.Extension{codemode.New()}, Files: engine.Files{Config: files("mcpd.hcl", "codeact {}\n"), Tools: files("a.hcl", `tool "one" { run = "return 1;" }`)}}
			if c.executor != nil {
				o.Scripts.Executor = c.executor(scripts)
			}
			if c.programs != nil {
				o.Scripts.Programs = c.programs(own)
			}
			s, err := engine.New(o)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Load(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := s.Execute(t.Context(), call.Request{Name: "one"}); got.Err != nil {
				t.Error(got.Err)
			}
			got := s.Execute(t.Context(), call.Request{Name: "run_code", Arguments: json.RawMessage(`{"code":"1 + 1"}`)})
			if runs := c.inScripts == 2 || c.inOwn == 1; runs != (got.Err == nil) {
				t.Errorf("the program ends with %v", got.Err)
			} else if !runs && !strings.Contains(got.Err.Error(), "programs cannot run here") {
				t.Errorf("the program is rejected with %v", got.Err)
			}
			if scripts.ran != c.inScripts || own.ran != c.inOwn {
				t.Errorf("%d runs in Executor and %d in Programs, want %d and %d", scripts.ran, own.ran, c.inScripts, c.inOwn)
			}
			if err := s.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if scripts.closed != min(1, c.inScripts) || own.closed != min(1, c.inOwn) {
				t.Errorf("they are closed %d and %d times", scripts.closed, own.closed)
			}
		})
	}
}
