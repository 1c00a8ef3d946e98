package engine_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
)

func TestUpstream_changeDespiteInvalidFiles(t *testing.T) {
	up, lock, log := newChangingUpstream(t, "read", "write"), newLock(t), filepath.Join(t.TempDir(), "audit.jsonl")
	tools := files("add.hcl", addTool)
	s := server(t, engine.Options{Files: engine.Files{Config: files("mcpd.hcl", upstreamAt(up.url)+auditBlock(log, "")), Tools: tools, LockPath: lock}})
	whole := []string{"add", "lab_read", "lab_write"}
	if diff := cmp.Diff(whole, names(s)); diff != "" {
		t.Fatalf("(-want +got)\n%s", diff)
	}
	first := s.Snapshot().Revision()

	tools["add.hcl"].Data = []byte("tool \"add\" {")
	if _, err := s.Load(t.Context()); err == nil {
		t.Fatal("the file has no error")
	}
	up.add("write", other)
	waitForSnapshot(t, s, func() bool { return slices.Equal(names(s), []string{"add", "lab_read"}) })
	if diff := cmp.Diff([]string{"lab_write"}, s.Status().Upstreams[0].Quarantined); diff != "" {
		t.Errorf("in quarantine (-want +got)\n%s", diff)
	}
	if s.Snapshot().Revision() == first {
		t.Error("other tools have the same revision")
	}
	if got := s.Status().Health(); !strings.HasPrefix(got, "serving last good") {
		t.Errorf("the status is %q", got)
	}
	if got := executeCall(t, s, tool("add", `{"a":2,"b":3}`)); string(got.Structured) != `{"sum":5}` {
		t.Errorf("the tool of the file ends with %s", outcomeLine(got))
	}

	up.add("write", anyInput) // the accepted version
	waitForSnapshot(t, s, func() bool { return slices.Equal(names(s), whole) })
	if got := s.Snapshot().Revision(); got != first {
		t.Errorf("the revision is %s, want %s", got, first)
	}
	up.add("more", anyInput)
	up.RemoveTools("read")
	waitForSnapshot(t, s, func() bool { return slices.Equal(names(s), []string{"add", "lab_write"}) })

	accept(t, s, lock)
	if _, err := s.Load(t.Context()); err == nil {
		t.Fatal("the file has no error")
	}
	accepted := []string{"add", "lab_more", "lab_write"}
	if diff := cmp.Diff(accepted, names(s)); diff != "" {
		t.Errorf("accepted (-want +got)\n%s", diff)
	}
	tools["add.hcl"].Data = []byte(addTool)
	if _, err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(accepted, names(s)); diff != "" || !s.Status().Healthy() {
		t.Errorf("after the fix, the status is %q (-want +got)\n%s", s.Status().Health(), diff)
	}
	closeAndCheck(t, s, log,
		"upstream.pinned lab 2",
		"upstream.quarantined lab write changed 2d54 cddc",
		"upstream.quarantined lab more added a5e8",
		"upstream.accepted lab more added a5e8",
		"upstream.accepted lab read removed cfff")
}

// An imported file that is now invalid is not read again when an upstream changes.
func TestOverlay_readsNoFile(t *testing.T) {
	up := newChangingUpstream(t, "read")
	tools := files("own.hcl", "tool \"own\" {\n  run = file(\"own.js\")\n}\n", "own.js", "import { n } from './n.js';\nreturn n;\n", "n.js", "export const n = 1;\n")
	s := server(t, engine.Options{Files: engine.Files{Config: files("mcpd.hcl", upstreamAt(up.url)), Tools: tools}})
	tools["n.js"].Data = []byte("export const n = 2;\n")
	for _, name := range []string{"more", "most"} {
		up.add(name, anyInput)
		waitForSnapshot(t, s, func() bool { return s.Snapshot().Tool("lab_"+name) != nil })
		if got := outcomeLine(executeCall(t, s, tool("own", `{}`))); got != `[{"type":"text","text":"1"}]` {
			t.Errorf("the call ends with %s", got)
		}
		tools["n.js"].Data = []byte("export const n = ;\n")
		if _, err := s.Load(t.Context()); err == nil {
			t.Fatal("the import has no error")
		}
	}
}

func TestUpstream_removalDespiteInvalidFiles(t *testing.T) {
	up := newChangingUpstream(t, "read")
	tools := files("add.hcl", addTool)
	s := server(t, engine.Options{Files: engine.Files{Config: files("mcpd.hcl", upstreamAt(up.url)), Tools: tools}})
	tools["add.hcl"].Data = []byte("tool \"add\" {")
	if _, err := s.Load(t.Context()); err == nil {
		t.Fatal("the file has no error")
	}
	up.RemoveTools("read")
	waitForSnapshot(t, s, func() bool { return slices.Equal(names(s), []string{"add"}) })
}

// The policy names no tool, and would have no effect.
func TestUpstream_invalidRuleNotApplied(t *testing.T) {
	up := newChangingUpstream(t, "drop", "gone")
	const rule = "policy \"p\" {\n  tools = [%q]\n  deny = \"true\"\n  reason = \"never\"\n}\n"
	config := files("mcpd.hcl", upstreamAt(up.url)+fmt.Sprintf(rule, "lab_drop"))
	s := server(t, engine.Options{Files: engine.Files{Config: config, LockPath: newLock(t)}})
	config["mcpd.hcl"].Data = []byte(upstreamAt(up.url) + fmt.Sprintf(rule, "lab_dorp"))
	if _, err := s.Load(t.Context()); err == nil {
		t.Fatal("the policy has no error")
	}
	up.RemoveTools("gone")
	waitForSnapshot(t, s, func() bool { return slices.Equal(names(s), []string{"lab_drop"}) })
	if got := s.Status().Health(); !strings.HasPrefix(got, "serving last good") {
		t.Errorf("the status is %q", got)
	}
	if got := executeCall(t, s, tool("lab_drop", `{}`)); got.Err == nil || got.Err.Code != call.PolicyDenied {
		t.Errorf("the call ends with %s", outcomeLine(got))
	}
}

// Only the engine finds the error, after all files were checked.
func TestUpstream_changeDespiteInvalidAudit(t *testing.T) {
	up, folder := newChangingUpstream(t, "read", "write"), t.TempDir()
	config := files("mcpd.hcl", upstreamAt(up.url)+auditBlock(filepath.Join(folder, "audit.jsonl"), ""))
	s := server(t, engine.Options{Files: engine.Files{Config: config, LockPath: newLock(t)}})
	config["mcpd.hcl"].Data = []byte(upstreamAt(up.url) + auditBlock(folder, ""))
	if _, err := s.Load(t.Context()); err == nil {
		t.Fatal("the block has no error")
	}
	up.add("write", other)
	waitForSnapshot(t, s, func() bool { return slices.Equal(names(s), []string{"lab_read"}) })
	if got := s.Status().Health(); !strings.HasPrefix(got, "serving last good") {
		t.Errorf("the status is %q", got)
	}
}

func TestUpstream_warningsDespiteInvalidFiles(t *testing.T) {
	up := newChangingUpstream(t, "read", "write")
	tools := files("p.hcl", typo, "own.hcl", `tool "own" { run = "return 1;" }`)
	s := server(t, engine.Options{Files: engine.Files{Config: files("mcpd.hcl", upstreamAt(up.url)), Tools: tools}})
	told := s.Status().Upstreams[0].LeftOut
	tools["own.hcl"].Data = []byte("tool \"own\" {")
	if _, err := s.Load(t.Context()); err == nil {
		t.Fatal("the file has no error")
	}
	up.RemoveTools("read")
	waitForSnapshot(t, s, func() bool { return slices.Equal(names(s), []string{"own"}) })
	if diff := cmp.Diff(told, s.Status().Upstreams[0].LeftOut); diff != "" || len(told) != 1 {
		t.Errorf("left out (-before +now)\n%s", diff)
	}
}
