package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/execution/pipeline"
	"github.com/mcpd/mcpd/internal/ops/tooltest"
	"github.com/mcpd/mcpd/policylang"
)

// TestResult is the result of a test block.
type TestResult struct {
	Name string
	// Kind is the kind of the tested item, and Target its name, URI or template.
	Kind   call.Kind
	Target string
	// Failures are the unmet expectations; the test passed if there are none. Missing are the mock
	// blocks that host calls would have needed.
	Failures, Missing []string
	// Notes are warnings, such as unused mocks.
	Notes []string
	Took  time.Duration
	Range diag.Range
	// Policies are the policies that decided about the call, with their decisions: "allow", "deny"
	// or "requires approval".
	Policies map[string]string
}

// Passed reports whether the test has no failures.
func (r TestResult) Passed() bool { return len(r.Failures) == 0 }

// RunTests runs the test blocks of the serving snapshot on that snapshot, several at once, and
// returns their results in the order of the files. Mocks replace the network, and no hook fires. It
// runs only the tests that wanted selects by name and target; nil selects all.
func (s *Server) RunTests(ctx context.Context, wanted func(name, target string) bool) ([]TestResult, error) {
	return s.runServing(ctx, func(c *catalog.Catalog, i int) bool {
		_, target := catalog.TestTarget(&c.Tests[i])
		return wanted == nil || wanted(c.Tests[i].Name, target)
	})
}

// RunTestsSince is RunTests for the tests whose block, item or policies differ from an earlier
// snapshot, and for those that also selects by name. Without a snapshot it runs all tests.
func (i inside) RunTestsSince(ctx context.Context, before *Snapshot, also func(name string) bool) ([]TestResult, error) {
	return i.server.runServing(ctx, func(c *catalog.Catalog, n int) bool {
		return before == nil || also(c.Tests[n].Name) || !before.catalog.SameTest(c, n)
	})
}

// runServing runs the selected tests of the serving snapshot.
func (s *Server) runServing(ctx context.Context, wanted func(c *catalog.Catalog, i int) bool) ([]TestResult, error) {
	snap, err := s.ensureLoaded(ctx)
	if err != nil {
		return nil, err
	}
	s.loading.Lock()
	s.builder.EnsureStages(snap.catalog, s.goTools)
	s.loading.Unlock()
	return s.runTests(ctx, snap.catalog, tooltest.AtOnce(false), func(i int) bool { return wanted(snap.catalog, i) }), nil
}

// runTests runs the selected tests of a catalog, at most limit at once.
func (s *Server) runTests(ctx context.Context, c *catalog.Catalog, limit int, wanted func(i int) bool) []TestResult {
	selected := c.SelectTests(wanted)
	results := make([]TestResult, len(selected))
	tooltest.Parallel(len(selected), limit, func(n int) { results[n] = s.Inside().RunTest(ctx, c, selected[n], 0) })
	return results
}

// RunTest runs a test of a catalog, such as one from [catalog.Catalog.WithTest], as if it were later.
func (i inside) RunTest(ctx context.Context, c *catalog.Catalog, n int, later time.Duration) TestResult {
	on, test, err := c.TestCatalog(n)
	k, target := catalog.TestTarget(test)
	if err != nil {
		return TestResult{Name: test.Name, Kind: k, Target: target, Range: test.NameRange, Failures: []string{err.Error()}}
	}
	mocks, start, policies := tooltest.Mocks(test), i.server.options.Now(), map[string]string{}
	result := i.server.pipeline.ExecuteTest(ctx, on, pipeline.TestCall{
		Request: call.Request{
			Kind: k, Name: target, Argument: test.Complete, Arguments: tooltest.Arguments(test), Caller: tooltest.Caller(test), Via: call.ViaTest,
			Can: call.Capabilities{Form: true, URL: true, Sample: true, SampleTools: true, Roots: true},
		},
		Later: later, Mocks: mocks,
		Answers: func(asked []call.AskRequest) (map[string]json.RawMessage, bool) {
			return tooltest.Answers(mocks, asked)
		},
		Decided: func(policy string, decision policylang.Outcome) { policies[policy] = decision.String() },
	})
	return TestResult{
		Name: test.Name, Kind: k, Target: target, Range: test.NameRange, Policies: policies,
		Failures: tooltest.Judge(&test.Expect, tooltest.OutcomeOf(result), mocks), Missing: mocks.Missing(), Notes: tooltest.Notes(mocks), Took: i.server.options.Now().Sub(start),
	}
}

// testProblems converts failed tests to diagnostics.
func testProblems(results []TestResult) diag.List {
	var problems diag.List
	for _, r := range results {
		if !r.Passed() {
			summary := fmt.Sprintf("test %q of %s %q fails: %s", r.Name, r.Kind, r.Target, r.Failures[0])
			problems = append(problems, diag.Diagnostic{Code: "test-failed", Summary: summary, Range: r.Range, Detail: "fix the tool or the test; reload.require_tests publishes only files that pass their tests"})
		}
	}
	return problems
}
