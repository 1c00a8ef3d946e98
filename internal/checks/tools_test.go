package checks_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/extensions/typescript"
	"github.com/mcpd/mcpd/serve"
)

// TestShippedTools_pass loads tools.d as mcpd serve does without a configuration file.
func TestShippedTools_pass(t *testing.T) {
	server := shipped(t)
	results := runTests(t, server, "tools.d")
	tested := shippedTests(t)
	count := 0
	for _, tests := range tested {
		count += tests.succeed + tests.fail
	}
	if len(results) != count {
		t.Errorf("%d tests ran, the files have %d", len(results), count)
	}
	for _, tool := range server.Snapshot().Tools() {
		if tests := tested[tool.Name()]; tests.succeed == 0 || tests.fail == 0 {
			t.Errorf("%s has %d tests that expect success and %d that expect an error, want both", tool.Name(), tests.succeed, tests.fail)
		}
	}
}

// expectations counts the tests of a tool by expected result.
type expectations struct{ succeed, fail int }

// shippedTests reads the test blocks of tools.d by tool.
func shippedTests(t *testing.T) map[string]expectations {
	t.Helper()
	found := map[string]expectations{}
	add := func(tool string, fails bool) {
		counts := found[tool]
		if fails {
			counts.fail++
		} else {
			counts.succeed++
		}
		found[tool] = counts
	}
	test := regexp.MustCompile(`(?ms)^test ".*?^}`)
	target := regexp.MustCompile(`\n  (?:tool|resource|prompt) +=.*"(.+)"`)
	fails := regexp.MustCompile(`[\n{] *(error|denied_by) +=`)
	for name, text := range toolFiles(t) {
		if strings.HasSuffix(name, ".json") {
			var file struct {
				Test map[string]struct {
					Tool   string
					Expect map[string]any
				}
			}
			if err := json.Unmarshal([]byte(text), &file); err != nil {
				t.Fatal(err)
			}
			for _, block := range file.Test {
				add(block.Tool, block.Expect["error"] != nil || block.Expect["denied_by"] != nil)
			}
			continue
		}
		for _, block := range test.FindAllString(text, -1) {
			add(target.FindStringSubmatch(block)[1], fails.MatchString(block))
		}
	}
	return found
}

// toolFiles returns the texts of the tool files in tools.d by path.
func toolFiles(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir("tools.d", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".hcl") && !strings.HasSuffix(name, ".hcl.json") {
			return err
		}
		text, err := os.ReadFile(name)
		files[filepath.ToSlash(name)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestShippedTools_described(t *testing.T) {
	tools := shipped(t).Snapshot().Tools()
	if len(tools) < 12 {
		t.Errorf("%d tools ship, want at least 12", len(tools))
	}
	for _, tool := range tools {
		m := tool.Metadata()
		switch {
		case m.Title == "":
			t.Errorf("%s has no title", m.Name)
		case m.Description == nil || !strings.HasSuffix(strings.TrimSpace(*m.Description), "."):
			t.Errorf("the description of %s has no sentences", m.Name)
		case m.OutputSchema == nil:
			t.Errorf("%s declares no output", m.Name)
		case m.ReadOnly == nil || m.OpenWorld == nil || *m.OpenWorld:
			t.Errorf("%s is not marked read-only and closed-world", m.Name)
		}
	}
}

func TestShippedTools_noPermissions(t *testing.T) {
	for name, text := range toolFiles(t) {
		if strings.Contains(text, "\n  allow {") || strings.Contains(text, `"allow"`) {
			t.Errorf("%s has an allow block, but shipped tools need no network", name)
		}
	}
}

// TestProduction_blocksAnyone is the example of the contract (RFC-0001 section 14).
func TestProduction_blocksAnyone(t *testing.T) {
	server := shipped(t)
	result, err := server.Call(t.Context(), "get_customer", map[string]any{"customer_id": "C-1042"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(`{"customer_id":"C-1042","status":"active"}`, string(result.Value)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	_, err = server.Call(t.Context(), "get_customer", map[string]any{"customer_id": "C-1042", "environment": "prod"})
	var denied *call.Error
	if !errors.As(err, &denied) || denied.Code != call.PolicyDenied || denied.Message != "Blocked in prod" {
		t.Errorf("got %v, want POLICY_DENIED: Blocked in prod", err)
	}
}

// TestPatterns_cost runs patterns that would make a backtracking matcher hang.
func TestPatterns_cost(t *testing.T) {
	server := shipped(t)
	text := strings.Repeat("a", 200) + "!"
	for _, pattern := range []string{`(a+)+$`, `(a|aa)+$`, `(a|a)*b`, `(.*)*x`, `(a?){30}a{30}b`, `((a*)*)*b`} {
		_, err := server.Call(t.Context(), "extract_matches", map[string]any{"text": text, "pattern": pattern})
		var failure *call.Error
		if errors.As(err, &failure) && failure.Code != call.ExecutionError {
			t.Errorf("%s: %v", pattern, err)
		}
	}
}

// TestTheTableOfToolsIsComplete compares tools.d/README.md with the files.
func TestTheTableOfToolsIsComplete(t *testing.T) {
	readme, err := os.ReadFile("tools.d/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range shipped(t).Snapshot().Tools() {
		if !strings.Contains(string(readme), "`"+tool.Name()+"`") {
			t.Errorf("tools.d/README.md does not name %s", tool.Name())
		}
	}
}

func shipped(t *testing.T) *engine.Server {
	t.Helper()
	server, err := engine.New(engine.Options{Name: "mcpd", Extensions: []engine.Extension{typescript.New()}, Files: engine.Files{Tools: engine.Dir("tools.d")}, Front: serve.ToolChecks{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close(context.Background()) })
	report, err := server.Load(t.Context())
	if err != nil || len(report.Problems) > 0 {
		t.Fatalf("tools.d does not load cleanly:\n%s", printed(t, report))
	}
	return server
}
