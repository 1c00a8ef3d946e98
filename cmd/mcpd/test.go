package main

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/ops/watch"
	"github.com/mcpd/mcpd/scripting/worker"
)

// testFlags are the flags of test.
type testFlags struct {
	files    projectFlags
	run      string
	only     *regexp.Regexp // of run; nil runs all tests
	asJSON   bool
	junit    string
	coverage bool
	watch    bool
}

func newTest(e env) *cobra.Command {
	var f testFlags
	cmd := &cobra.Command{
		Use:   "test [DIR]",
		Short: "Run the test blocks in the tool files",
		Long: `Test runs the test blocks of the tool files, several at once. Tests do not use the
network: mock blocks answer host calls. The exit code is 1 if a test fails, or if --run
matches no test.

With --watch, mcpd runs the tests again each time a file is saved, until you press
Ctrl-C.`,
		Example: `  mcpd test
  mcpd test --run customer
  mcpd test --run '^(add|sub)$' --watch
  mcpd test --coverage --junit report.xml`,
		Args:              oneFolderArg,
		ValidArgsFunction: completeFolder,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.files.takeFolderArg(args); err != nil {
				return err
			}
			if err := f.check(); err != nil {
				return err
			}
			return test(cmd.Context(), e, &f)
		},
	}
	cmd.Flags().StringVar(&f.run, "run", "", "run only tests with a match of `REGEXP` in the name of the test or of its tool")
	_ = cmd.RegisterFlagCompletionFunc("run", completeListed(e, &f.files))
	cmd.Flags().BoolVar(&f.watch, "watch", false, "run the tests again after each change of the files")
	cmd.Flags().BoolVar(&f.coverage, "coverage", false, "print which statements of scripts ran, and which policies decided")
	cmd.Flags().StringVar(&f.junit, "junit", "", "also write the results to `FILE`, as JUnit XML")
	_ = cmd.MarkFlagFilename("junit", "xml")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print the results as JSON")
	f.files.add(cmd)
	return cmd
}

func (f *testFlags) check() (err error) {
	if f.watch && f.asJSON {
		return usageError("--watch and --json exclude each other")
	}
	if f.run == "" {
		return nil
	}
	if f.only, err = regexp.Compile(f.run); err != nil {
		return usageError("--run takes a regular expression (RE2): %v", err)
	}
	return nil
}

// selects reports whether --run selects a test.
func (f *testFlags) selects(name, target string) bool {
	return f.only == nil || f.only.MatchString(name) || f.only.MatchString(target)
}

// test loads the files and runs their tests, once or after each change.
func test(ctx context.Context, e env, f *testFlags) error {
	logger := slog.New(slog.NewTextHandler(e.stderr, nil))
	x, _ := executor(e, executorWorker, worker.Options{}, logger)
	var covered *coverage
	if f.coverage {
		covered = newCoverage(x)
		x = covered
	}
	s, err := f.files.open(e, engine.Options{Scripts: engine.Scripts{Executor: x}, Mode: engine.Offline})
	if err != nil {
		return err
	}
	defer s.Close(ctx)
	if f.watch {
		return f.runOnChanges(e, logger, s, covered)
	}
	if err := f.files.load(ctx, e, s, f.asJSON); err != nil {
		return err
	}
	return f.runTests(ctx, e, s, covered)
}

// runOnChanges runs the tests, and again after each change, until a signal to stop. Files with
// errors and failed tests do not end it.
func (f *testFlags) runOnChanges(e env, logger *slog.Logger, s *engine.Server, covered *coverage) error {
	stopped, hup, stop := e.service.signals()
	defer stop()
	return f.files.onChanges(stopped, e, hup, f.watched(e, logger), func(change engine.Change) (done bool, err error) {
		report, err := s.Reload(stopped, change)
		if printErr := printProblems(e, report); printErr != nil {
			return true, printErr
		}
		if err = loadError(report, f.files.config, err); err == nil {
			covered.reset()
			err = f.runTests(stopped, e, s, covered)
		}
		if err != nil && err.Error() != "" && stopped.Err() == nil {
			fmt.Fprintf(e.stderr, "mcpd: %s\n", sanitize(err.Error()))
		}
		fmt.Fprintln(e.stderr, "waiting for changes; press Ctrl-C to stop")
		return false, nil
	})
}

// watched returns the files that start a run. The report that a run writes is not one of them.
func (f *testFlags) watched(e env, logger *slog.Logger) watch.Options {
	o := f.files.watched(e, logger)
	skip := o.Skip
	o.Skip = func(name string) bool { return skip(name) || f.junit != "" && name == filepath.Base(f.junit) }
	return o
}

// runTests runs the tests of the loaded files and prints the results.
func (f *testFlags) runTests(ctx context.Context, e env, s *engine.Server, covered *coverage) error {
	results, err := s.RunTests(ctx, f.selects)
	if err != nil {
		return err
	}
	if f.junit != "" {
		text, err := junitReport(results)
		if err == nil {
			err = e.disk.writeFile(f.junit, text, 0o644)
		}
		if err != nil {
			return usageError("write the JUnit report: %v", err)
		}
	}
	report := reportOf(results)
	if covered != nil {
		if report.Coverage, err = covered.report(s, results); err != nil {
			return err
		}
	}
	switch {
	case f.asJSON:
		err = printJSON(e.text(), report)
	case len(results) > 0:
		err = printTests(e, results, report.Failed)
	case f.only == nil:
		_, err = fmt.Fprintf(e.stdout, "no tests found in %s; add test blocks to its files\n", f.files.tools)
	}
	if err == nil && !f.asJSON && report.Coverage != nil && (len(results) > 0 || f.only == nil) {
		err = report.Coverage.print(e)
	}
	switch {
	case err != nil:
		return err
	case report.Failed > 0:
		return &exitError{code: exitFindings}
	case len(results) == 0:
		return f.noTests(ctx, s)
	}
	return nil
}

// noTests returns an error if --run selected no test.
func (f *testFlags) noTests(ctx context.Context, s *engine.Server) error {
	// A canceled run returns the names of all tests.
	over, cancel := context.WithCancel(ctx)
	cancel()
	all, err := s.RunTests(over, nil)
	switch {
	case err != nil:
		return err
	case len(all) == 0 && f.only == nil:
		return nil
	case len(all) == 0:
		return findingsError("no file in %s has a test block", f.files.tools)
	}
	var names, shown []string
	for _, r := range all {
		names = append(append(names, r.Target, r.Name), strings.Fields(r.Name)...)
		shown = append(shown, fmt.Sprintf("%q", r.Target+": "+r.Name))
	}
	if hint := diag.DidYouMean(f.run, names); hint != "" {
		return findingsError("no test or tested tool has %q in its name; %s", f.run, hint)
	}
	const most = 8
	if more := len(shown) - most; more > 0 {
		shown = append(shown[:most], fmt.Sprintf("and %d more", more))
	}
	return findingsError("no test or tested tool has %q in its name; the tests are %s", f.run, strings.Join(shown, ", "))
}

func printTests(e env, results []engine.TestResult, failed int) error {
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

// testReport is the JSON output of test.
type testReport struct {
	Passed   int             `json:"passed"`
	Failed   int             `json:"failed"`
	Tests    []testRow       `json:"tests"`
	Coverage *coverageReport `json:"coverage,omitempty"`
}

type testRow struct {
	Name     string   `json:"name"`
	Tool     string   `json:"tool"`
	Kind     string   `json:"kind"`
	Passed   bool     `json:"passed"`
	Failures []string `json:"failures"`
	Notes    []string `json:"notes"`
	TookMS   float64  `json:"took_ms"`
	Where    string   `json:"where"`
}

func reportOf(results []engine.TestResult) testReport {
	report := testReport{Tests: make([]testRow, len(results))}
	for i, r := range results {
		report.Tests[i] = testRow{r.Name, r.Target, r.Kind.String(), r.Passed(), append([]string{}, r.Failures...), append([]string{}, r.Notes...), float64(r.Took) / float64(time.Millisecond), r.Range.String()}
		if r.Passed() {
			report.Passed++
		} else {
			report.Failed++
		}
	}
	return report
}
