package engine_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
)

// A tool without a policy is not served, whether it is added before or after loading. The serving
// snapshot stays.
func TestProduction_goTool(t *testing.T) {
	config := files("mcpd.hcl", "server {\n  name = \"t\"\n  mode = \"production\"\n}\n"+auditBlock(filepath.Join(t.TempDir(), "audit.jsonl"), ""))
	s := unloaded(t, engine.Options{Files: engine.Files{Config: config, ConfigPath: "mcpd.hcl"}})
	one := func(context.Context) (string, error) { return "1", nil }
	goTool(t, s, "first", one)
	if _, err := s.Load(t.Context()); err == nil || !strings.Contains(err.Error(), `no policy covers tool "first"`) {
		t.Fatalf("without a policy: %v", err)
	}
	covered := string(config["mcpd.hcl"].Data) + `
policy "local" {
  tools  = ["*ir*"]
  allow  = "tool.name != 'second'"
  reason = "no"
}
`
	config["mcpd.hcl"] = files("mcpd.hcl", covered)["mcpd.hcl"]
	if _, err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	goTool(t, s, "third", one)
	wantOutcome(t, s.Execute(t.Context(), toolCall("first", `{}`)), `"1"`)
	wantOutcome(t, s.Execute(t.Context(), toolCall("third", `{}`)), `"1"`)
	goTool(t, s, "second", one)
	if r := s.Execute(t.Context(), toolCall("second", `{}`)); r.Err == nil || r.Err.Code != call.ToolNotFound {
		t.Errorf("a tool that no policy covers: %s, %v", r.Value, r.Err)
	}
	wantOutcome(t, s.Execute(t.Context(), toolCall("first", `{}`)), `"1"`)
	if now := s.Status(); now.Synchronized || len(now.Problems) != 1 || now.Problems[0].Code != "production-no-policy" {
		t.Errorf("the status is %+v", now)
	}
}
