package engine_test

import (
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpd/mcpd/engine"
)

// Changes of a server are still reported, and a lazy server is not connected.
func TestPins_lockFileRemoved(t *testing.T) {
	up, shy, lock := newChangingUpstream(t, "read", "write"), newChangingUpstream(t, "read"), newLock(t)
	lazy := upstreamNamed("shy", shy.url, "lazy = true")
	acceptTools(t, lock, upstreamAt(up.url)+lazy)
	var said logBuffer
	s := server(t, engine.Options{Files: engine.Files{Config: files("mcpd.hcl", upstreamAt(up.url)+lazy), LockPath: lock}, Logger: said.logger()})
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(t.Context()); err == nil {
		t.Fatal("a removed lock file is no error")
	}
	up.add("read", other)
	waitForSnapshot(t, s, func() bool { return slices.Equal(names(s), []string{"lab_write", "shy_read"}) })
	if diff := cmp.Diff([]string{"lab_read"}, s.Status().Upstreams[0].Quarantined); diff != "" {
		t.Errorf("in quarantine (-want +got)\n%s", diff)
	}
	if n := strings.Count(said.String(), "quarantine upstream tool, see"); n != 1 {
		t.Errorf("%d log lines:\n%s", n, said.String())
	}
	if !s.Status().Upstreams[1].Idle {
		t.Error("the lazy server is connected")
	}
	if got := executeCall(t, s, tool("shy_read", `{}`)); got.Err != nil {
		t.Errorf("its call ends with %s", outcomeLine(got))
	}
}

// Nothing is accepted, whatever other errors there are. The accepted versions still apply.
func TestPins_lockGone(t *testing.T) {
	up, lock := newChangingUpstream(t, "read", "write"), newLock(t)
	config := files("mcpd.hcl", upstreamAt(up.url))
	s := server(t, engine.Options{Files: engine.Files{Config: config, Tools: files("own.hcl", `tool "own" { run = "return 1;" }`), LockPath: lock}})
	good, err := os.ReadFile(lock)
	if err != nil {
		t.Fatal(err)
	}
	broken := map[string]func() error{
		"gone":       func() error { return os.Remove(lock) },
		"half":       func() error { return os.WriteFile(lock, []byte("mcpd.lock 1\n"), 0o644) },
		"unreadable": func() error { return os.WriteFile(lock, []byte("<<<<<<< HEAD\n"), 0o644) },
	}
	for what, breaks := range broken {
		if err := breaks(); err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{upstreamAt(up.url), "upstream \"lab\" {", "upstream \"lab\" {\n  ulr = 1\n}\n", ""} {
			config["mcpd.hcl"].Data = []byte(text)
			if _, err := s.Load(t.Context()); err == nil {
				t.Fatalf("%s: no error", what)
			}
			if diff := cmp.Diff([]string{"lab_read", "lab_write", "own"}, names(s)); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", what, diff)
			}
		}
	}
	up.add("read", other)
	waitForSnapshot(t, s, func() bool { return slices.Equal(names(s), []string{"lab_write", "own"}) })
	if err := os.WriteFile(lock, good, 0o644); err != nil {
		t.Fatal(err)
	}
	config["mcpd.hcl"].Data = []byte(upstreamAt(up.url))
	if _, err := s.Load(t.Context()); err != nil {
		t.Errorf("restored: %v", err)
	}
	if diff := cmp.Diff([]string{"lab_read"}, s.Status().Upstreams[0].Quarantined); diff != "" {
		t.Errorf("in quarantine (-want +got)\n%s", diff)
	}
}

// No tool of a new server is accepted while the file is missing.
func TestPins_lockGoneAtFirstUse(t *testing.T) {
	up, lock := newChangingUpstream(t, "read"), newLock(t)
	late := mcp.NewServer(&mcp.Implementation{Name: "late", Version: "1"}, nil)
	late.AddTool(&mcp.Tool{Name: "first", InputSchema: anyInput}, nil)
	well := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return late }, nil)
	var comes atomic.Bool
	url := web(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !comes.Load() {
			http.Error(w, "no", http.StatusInternalServerError)
			return
		}
		well.ServeHTTP(w, r)
	}))
	s := pinnedServer(t, lock, upstreamAt(up.url)+upstreamNamed("late", url))
	good, err := os.ReadFile(lock)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(t.Context()); err == nil {
		t.Fatal("a removed lock file is no error")
	}
	comes.Store(true)
	waitForSnapshot(t, s, func() bool { return slices.Equal(s.Status().Upstreams[1].Quarantined, []string{"late_first"}) })
	if diff := cmp.Diff([]string{"lab_read"}, names(s)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if _, err := os.Stat(lock); err == nil {
		t.Error("the file is written")
	}
	if err := os.WriteFile(lock, good, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"lab_read", "late_first"}, names(s)); diff != "" {
		t.Errorf("restored (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(2, len(accepted(t, lock))); diff != "" {
		t.Errorf("the lock file (-want +got)\n%s", diff)
	}
}
