package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpd/mcpd/engine"
)

func newTest(e env) *cobra.Command {
	var f files
	var asJSON bool
	var only string
	cmd := &cobra.Command{
		Use:   "test [DIR]",
		Short: "Run the test blocks beside the tools",
		Long: `Test runs the test blocks of the tool files. Tests touch no network: mock
blocks answer host calls.`,
		Example: `  mcpd test
  mcpd test --run customer`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				f.tools, f.toolsGiven = args[0], true
			}
			return test(cmd, e, &f, only, asJSON)
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the results as JSON")
	cmd.Flags().StringVar(&only, "run", "", "run only tests whose name or tool contains `TEXT`")
	return cmd
}

func test(cmd *cobra.Command, e env, f *files, only string, asJSON bool) error {
	s, err := f.open(e, engine.Options{})
	if err != nil {
		return err
	}
	defer s.Close(cmd.Context())
	if _, err := load(cmd.Context(), e, s, f.config); err != nil {
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
		err = printJSON(e.stdout, testReport(results, failed))
	} else {
		err = printTests(e, results, failed)
	}
	if err == nil && failed > 0 {
		return &exitError{code: exitFindings}
	}
	return err
}

func printTests(e env, results []engine.TestResult, failed int) error {
	for _, r := range results {
		mark := "ok  "
		if !r.Passed() {
			mark = "FAIL"
		}
		if _, err := fmt.Fprintf(e.stdout, "%s  %s: %s\n", mark, r.Tool, r.Name); err != nil {
			return err
		}
		for _, failure := range r.Failures {
			text := strings.ReplaceAll(failure, "\n", "\n          ")
			if _, err := fmt.Fprintf(e.stdout, "      %s: %s\n", r.Range, text); err != nil {
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
		Passed   bool     `json:"passed"`
		Failures []string `json:"failures"`
		TookMS   float64  `json:"took_ms"`
		Where    string   `json:"where"`
	}
	rows := make([]row, len(results))
	for i, r := range results {
		rows[i] = row{r.Name, r.Tool, r.Passed(), append([]string{}, r.Failures...), float64(r.Took) / float64(time.Millisecond), r.Range.String()}
	}
	return map[string]any{"passed": len(results) - failed, "failed": failed, "tests": rows}
}
