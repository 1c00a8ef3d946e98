package main

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/scripting/worker"
)

func newTest(e env) *cobra.Command {
	var f projectFlags
	var asJSON bool
	var only string
	cmd := &cobra.Command{
		Use:   "test [DIR]",
		Short: "Run the test blocks in the tool files",
		Long: `Test runs the test blocks of the tool files. Tests do not use the network: mock blocks
answer host calls. The exit code is 1 if a test fails, or if --run matches no test.`,
		Example: `  mcpd test
  mcpd test --run customer`,
		Args:              oneFolderArg,
		ValidArgsFunction: completeFolder,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.takeFolderArg(args); err != nil {
				return err
			}
			return test(cmd, e, &f, only, asJSON)
		},
	}
	cmd.Flags().StringVar(&only, "run", "", "run only tests with `TEXT` in the name of the test or of its tool")
	_ = cmd.RegisterFlagCompletionFunc("run", completeListed(e, &f))
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the results as JSON")
	f.add(cmd)
	return cmd
}

func test(cmd *cobra.Command, e env, f *projectFlags, only string, asJSON bool) error {
	x, _ := executor(e, executorWorker, worker.Options{}, slog.New(slog.NewTextHandler(e.stderr, nil)))
	s, err := f.open(e, engine.Options{Scripts: engine.Scripts{Executor: x}, Mode: engine.Offline})
	if err != nil {
		return err
	}
	defer s.Close(cmd.Context())
	if err := f.load(cmd.Context(), e, s, asJSON); err != nil {
		return err
	}
	results, err := s.RunTests(cmd.Context(), only)
	if err != nil {
		return err
	}
	failed := 0
	for _, r := range results {
		if !r.Passed() {
			failed++
		}
	}
	if asJSON {
		err = printJSON(e.text(), testReport(results, failed))
	} else {
		err = printTests(e, results, failed)
		if len(results) == 0 && only == "" {
			_, err = fmt.Fprintf(e.stdout, "no tests found in %s; add test blocks to its files\n", f.tools)
		}
	}
	switch {
	case err != nil:
		return err
	case failed > 0:
		return &exitError{code: exitFindings}
	case len(results) == 0:
		return noTests(cmd.Context(), s, f.tools, only)
	}
	return nil
}

// noTests returns an error if no test was run though --run or a test block was
// expected.
func noTests(ctx context.Context, s *engine.Server, folder, only string) error {
	// A canceled run returns the names of all tests.
	over, cancel := context.WithCancel(ctx)
	cancel()
	all, err := s.RunTests(over, "")
	switch {
	case err != nil:
		return err
	case len(all) == 0 && only == "":
		return nil
	case len(all) == 0:
		return findingsError("no file in %s has a test block", folder)
	}
	var names []string
	for _, r := range all {
		names = append(append(names, r.Target, r.Name), strings.Fields(r.Name)...)
	}
	if hint := diag.DidYouMean(only, names); hint != "" {
		return findingsError("no test or tested tool has %q in its name; %s", only, hint)
	}
	return findingsError("no test or tested tool has %q in its name; without --run, all %d tests run", only, len(all))
}

func printTests(e env, results []engine.TestResult, failed int) error {
	if len(results) == 0 {
		return nil
	}
	for _, r := range results {
		mark := "ok  "
		if !r.Passed() {
			mark = "FAIL"
		}
		if _, err := fmt.Fprintf(e.stdout, "%s  %s: %s\n", mark, r.Target, diag.Printable(r.Name)); err != nil {
			return err
		}
		told := slices.Clone(r.Failures)
		for _, note := range r.Notes {
			told = append(told, "note: "+note)
		}
		for _, text := range told {
			if _, err := fmt.Fprintf(e.text(), "      %s: %s\n", r.Range, diag.PrintableLines(text, "          ")); err != nil {
				return err
			}
		}
	}
	_, err := fmt.Fprintf(e.stdout, "%d passed, %d failed\n", len(results)-failed, failed)
	return err
}

func testReport(results []engine.TestResult, failed int) any {
	type row struct {
		Name     string   `json:"name"`
		Tool     string   `json:"tool"`
		Kind     string   `json:"kind"`
		Passed   bool     `json:"passed"`
		Failures []string `json:"failures"`
		Notes    []string `json:"notes"`
		TookMS   float64  `json:"took_ms"`
		Where    string   `json:"where"`
	}
	rows := make([]row, len(results))
	for i, r := range results {
		rows[i] = row{r.Name, r.Target, r.Kind.String(), r.Passed(), append([]string{}, r.Failures...), append([]string{}, r.Notes...), float64(r.Took) / float64(time.Millisecond), r.Range.String()}
	}
	return struct {
		Passed int   `json:"passed"`
		Failed int   `json:"failed"`
		Tests  []row `json:"tests"`
	}{len(results) - failed, failed, rows}
}
