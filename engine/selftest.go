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
	// Kind is the kind of the tested item. Target is the name of the tool or prompt, or the URI or
	// template.
	Kind   call.Kind
	Target string
	// Failures are the unmet expectations; the test passed if there are none.
	Failures []string
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
	snap, err := s.ensureLoaded(ctx)
	if err != nil {
		return nil, err
	}
	tests := snap.catalog
	s.ensureStages(tests)
	return s.runTests(ctx, tests, tooltest.AtOnce(false), func(i int) bool {
		_, target := catalog.TestTarget(&tests.Tests[i])
		return wanted == nil || wanted(tests.Tests[i].Name, target)
	}), nil
}

func (s *Server) ensureStages(c *catalog.Catalog) {
	s.loading.Lock()
	defer s.loading.Unlock()
	s.builder.EnsureStages(c, s.goTools)
}

// runTests runs the selected tests of a catalog, at most limit at once.
func (s *Server) runTests(ctx context.Context, c *catalog.Catalog, limit int, wanted func(i int) bool) []TestResult {
	var selected []int
	for i := range c.Tests {
		if wanted(i) {
			selected = append(selected, i)
		}
	}
	results := make([]TestResult, len(selected))
	tooltest.Parallel(len(selected), limit, func(n int) { results[n] = s.runTest(ctx, c, selected[n]) })
	return results
}

func (s *Server) runTest(ctx context.Context, c *catalog.Catalog, i int) TestResult {
	on, test, err := c.TestCatalog(i)
	k, target := catalog.TestTarget(test)
	if err != nil {
		return TestResult{Name: test.Name, Kind: k, Target: target, Range: test.NameRange, Failures: []string{err.Error()}}
	}
	mocks, start, policies := tooltest.Mocks(test), s.options.Now(), map[string]string{}
	result := s.pipeline.ExecuteTest(ctx, on, pipeline.TestCall{
		Request: call.Request{
			Kind: k, Name: target, Argument: test.Complete, Arguments: tooltest.Arguments(test), Caller: tooltest.Caller(test), Via: call.ViaTest,
			Can: call.Capabilities{Form: true, URL: true, Sample: true, SampleTools: true, Roots: true},
		},
		Mocks: mocks,
		Answers: func(asked []call.AskRequest) (map[string]json.RawMessage, bool) {
			return tooltest.Answers(mocks, asked)
		},
		Decided: func(policy string, decision policylang.Outcome) { policies[policy] = decision.String() },
	})
	outcome := tooltest.Outcome{Value: result.Value, Content: result.Content, Reply: result.Reply}
	if err := result.Err; err != nil {
		outcome = tooltest.Outcome{Code: string(err.Code), Message: err.Message, DeniedBy: err.DeniedBy, Cause: err.Cause}
	}
	return TestResult{
		Name: test.Name, Kind: k, Target: target, Range: test.NameRange, Policies: policies,
		Failures: tooltest.Judge(&test.Expect, outcome, mocks), Notes: tooltest.Notes(mocks), Took: s.options.Now().Sub(start),
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
