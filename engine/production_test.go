//go:build unix

package engine_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

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

// Production mode rejects files of other users, also in a reload. Other modes accept them.
func TestProduction_foreignFiles(t *testing.T) {
	other := &syscall.Stat_t{Uid: uint32(os.Geteuid() + 1)}
	const open, closed = "server {\n  name = \"t\"\n}\n", "server {\n  name = \"t\"\n  mode = \"production\"\n}\naudit { path = \"audit.jsonl\" }\n"
	tools := files("a.hcl", "tool \"a\" {\n  read_only = true\n  output \"n\" { type = integer }\n  run = \"return { n: 1 }\"\n}\npolicy \"p\" {\n  tools = [\"a\"]\n  allow = \"tool.read_only\"\n  reason = \"r\"\n}\n")
	config := fstest.MapFS{"mcpd.hcl": {Data: []byte(closed), Mode: 0o644}}
	s := unloaded(t, engine.Options{Files: engine.Files{Tools: tools, Config: config}, Mode: engine.ReadOnly})
	load := func(want ...string) {
		t.Helper()
		report, err := s.Load(t.Context())
		if (err != nil) != (len(want) > 0) || len(report.Problems) != len(want) {
			t.Errorf("got %v, want %d problems", report.Problems, len(want))
		}
		for _, p := range want {
			if !strings.Contains(report.Problems.Error(), p+": error: this belongs to another user") {
				t.Errorf("%v: %s is missing", report.Problems, p)
			}
		}
	}
	load()
	tools["a.hcl"].Sys = other
	load("tools.d/a.hcl")
	config["mcpd.hcl"].Sys = other
	load("tools.d/a.hcl", "mcpd.hcl")
	config["mcpd.hcl"].Data = []byte(open)
	load()
	s = unloaded(t, engine.Options{Files: engine.Files{Tools: tools, Config: config, Production: true}, Mode: engine.ReadOnly})
	config["mcpd.hcl"].Data = []byte(open + "audit { path = \"audit.jsonl\" }\n")
	load("tools.d/a.hcl", "mcpd.hcl")
}
