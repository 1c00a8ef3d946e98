package engine

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/host"
	"github.com/mcpd/mcpd/internal/ops/tooltest"
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
}

// Passed reports whether the test has no failures.
func (r TestResult) Passed() bool { return len(r.Failures) == 0 }

// RunTests runs the test blocks of the serving snapshot on that snapshot, in the order of the
// files. Mocks replace the network, and no hook fires. It runs only tests with a name or target
// that contains only.
func (s *Server) RunTests(ctx context.Context, only string) ([]TestResult, error) {
	snap, err := s.ensureLoaded(ctx)
	if err != nil {
		return nil, err
	}
	tests := snap.catalog
	s.ensureStages(tests)
	return s.runTests(ctx, tests, func(i int) bool {
		_, target := catalog.TestTarget(&tests.Tests[i])
		return strings.Contains(tests.Tests[i].Name, only) || strings.Contains(target, only)
	}), nil
}

func (s *Server) ensureStages(c *catalog.Catalog) {
	s.loading.Lock()
	defer s.loading.Unlock()
	s.builder.EnsureStages(c, s.goTools)
}

// runTests runs the selected tests of a catalog.
func (s *Server) runTests(ctx context.Context, c *catalog.Catalog, wanted func(i int) bool) []TestResult {
	results := make([]TestResult, 0, len(c.Tests))
	for i := range c.Tests {
		if wanted(i) {
			results = append(results, s.runTest(ctx, c, i))
		}
	}
	return results
}

func (s *Server) runTest(ctx context.Context, c *catalog.Catalog, i int) TestResult {
	on, test, err := c.TestCatalog(i)
	k, target := catalog.TestTarget(test)
	if err != nil {
		return TestResult{Name: test.Name, Kind: k, Target: target, Range: test.NameRange, Failures: []string{err.Error()}}
	}
	request := call.Request{
		Kind: k, Name: target, Argument: test.Complete, Arguments: tooltest.Arguments(test), Caller: tooltest.Caller(test), Via: call.ViaTest,
		Can: call.Capabilities{Form: true, URL: true, Sample: true, SampleTools: true, Roots: true},
	}
	mocks, start := tooltest.Mocks(test), s.options.Now()
	result := s.runTestCall(ctx, on, request, mocks)
	outcome := tooltest.Outcome{Value: result.Value, Content: result.Content, Reply: result.Reply}
	if err := result.Err; err != nil {
		outcome = tooltest.Outcome{Code: string(err.Code), Message: err.Message, DeniedBy: err.DeniedBy, Cause: err.Cause}
	}
	return TestResult{
		Name: test.Name, Kind: k, Target: target, Range: test.NameRange,
		Failures: tooltest.Judge(&test.Expect, outcome, mocks), Notes: tooltest.Notes(mocks), Took: s.options.Now().Sub(start),
	}
}

// runTestCall runs all legs of a test call, with a state store of its own that takes no capacity
// from real calls.
func (s *Server) runTestCall(ctx context.Context, on *catalog.Catalog, request call.Request, mocks *host.Mocks) call.Result {
	states := &state.Lazy{Options: state.Options{Now: s.options.Now}, Logger: s.options.Logger}
	defer func() { _ = states.Close() }() // the store is in memory
	for {
		result := s.pipeline.ExecuteTest(ctx, on, request, mocks, states)
		if result.Ask == nil {
			return result
		}
		answers, ok := tooltest.Answers(mocks, result.Ask.Requests)
		switch {
		case !ok:
			return call.Result{Err: &call.Error{Code: call.ExecutionError, Message: "no mock responds to an input request of the script"}}
		case ctx.Err() != nil:
			return call.Result{Err: &call.Error{Code: call.ExecutionError, Message: "the test was canceled", Cause: ctx.Err()}}
		}
		request.Resume = &call.Resume{State: result.Ask.State, Responses: answers}
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
