package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/catalog"
	"github.com/mcpd/mcpd/internal/hclfile"
	"github.com/mcpd/mcpd/internal/selftest"
)

// TestResult is how a test block ended.
type TestResult struct {
	Name, Tool string
	// Failures are what was wanted and not found; a test without any has passed.
	Failures []string
	Took     time.Duration
	Range    diag.Range
}

// Passed reports whether the test found what it wanted.
func (r TestResult) Passed() bool { return len(r.Failures) == 0 }

// RunTests runs the test blocks of the snapshot that serves, in the order of
// the files, against that snapshot. Tests touch no network: their mocks answer.
// They fire no hooks. Only tests whose name or tool contains only are run.
func (s *Server) RunTests(ctx context.Context, only string) ([]TestResult, error) {
	snap, err := s.loaded(ctx)
	if err != nil {
		return nil, err
	}
	return s.runTests(ctx, snap, func(test *hclfile.Test) bool {
		return strings.Contains(test.Name, only) || strings.Contains(test.Tool, only)
	}), nil
}

// runTests runs the tests of snap that are wanted.
func (s *Server) runTests(ctx context.Context, snap *Snapshot, wanted func(*hclfile.Test) bool) []TestResult {
	results := make([]TestResult, 0, len(snap.catalog.Tests))
	for i := range snap.catalog.Tests {
		test := &snap.catalog.Tests[i]
		if wanted(test) {
			results = append(results, s.runTest(ctx, snap, test))
		}
	}
	return results
}

// differs reports whether a test, its tool or a policy of that tool has
// changed since the snapshot s, which may be nil.
func (s *Snapshot) differs(next *Snapshot, test *hclfile.Test) bool {
	if s == nil || !s.catalog.Reload.RequireTests || s.catalog.DenyByDefault != next.catalog.DenyByDefault || !slices.ContainsFunc(s.catalog.Tests, func(t hclfile.Test) bool { return t.Hash == test.Hash }) {
		return true
	}
	old, now := s.catalog.Entry(test.Tool), next.catalog.Entry(test.Tool)
	return old == nil || now == nil || old.Item != now.Item ||
		!slices.EqualFunc(old.Rules, now.Rules, func(a, b catalog.Policy) bool { return a.Compiled == b.Compiled })
}

func (s *Server) runTest(ctx context.Context, snap *Snapshot, test *hclfile.Test) TestResult {
	x := s.begin(snap, Request{Tool: test.Tool, Arguments: test.Input, Caller: selftest.Caller(test), Via: ViaTest})
	x.mocks = selftest.Mocks(test)
	result, err := x.attempt(ctx, 0, nil)
	outcome := selftest.Outcome{Value: result.Value, Content: result.Content}
	if err != nil {
		outcome = selftest.Outcome{Code: string(err.Code), Message: err.Message, DeniedBy: err.deniedBy, Cause: err.cause}
	}
	return TestResult{
		Name: test.Name, Tool: test.Tool, Range: test.NameRange,
		Failures: selftest.Judge(&test.Expect, outcome, x.mocks), Took: s.options.Now().Sub(x.began),
	}
}

// testProblems turns failed tests into diagnostics, for loads that they gate.
func testProblems(results []TestResult) diag.List {
	var problems diag.List
	for _, r := range results {
		if !r.Passed() {
			summary := fmt.Sprintf("test %q of tool %q fails: %s", r.Name, r.Tool, r.Failures[0])
			problems = append(problems, diag.Diagnostic{Code: "test-failed", Summary: summary, Range: r.Range, Detail: "a reload publishes only what passes its tests (reload.require_tests)"})
		}
	}
	return problems
}
