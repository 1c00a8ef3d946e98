package main

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/mcpd/mcpd/scripting/worker"
)

// The tests of the examples run scripts inline; this test runs them with the worker
// executor, as mcpd serve does.
func TestExamples_workerExecutor(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED with -short: the tests of examples/ run the same scripts")
	}
	e := processEnv()
	e.process.arg0 = "mcpd"
	x, _ := executor(e, executorWorker, worker.Options{}, slog.New(slog.DiscardHandler))
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	if _, apart := x.(*worker.Executor); !apart {
		t.Fatalf("the executor is a %T", x)
	}
	folders, err := filepath.Glob("../../examples/*/tools.d")
	if err != nil || len(folders) < 12 {
		t.Fatalf("%d examples, %v", len(folders), err)
	}
	for _, folder := range folders {
		example := filepath.Dir(folder)
		t.Run(filepath.Base(example), func(t *testing.T) {
			if filepath.Base(example) == "modules" {
				t.Skip("SKIPPED: its tools need host modules in Go")
			}
			args := []string{"test", "--tools", folder}
			if config := filepath.Join(example, "mcpd.hcl"); exists(e, config) {
				args = append(args, "--config", config)
			}
			var out bytes.Buffer
			here := e
			here.stdout, here.stderr = &out, &out
			if code := run(here, args); code != 0 {
				t.Errorf("mcpd %q exits with %d\n%s", args, code, &out)
			}
		})
	}
}
