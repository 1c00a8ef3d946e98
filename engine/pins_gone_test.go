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

// TestPins_lockFileRemoved: of what a server changes meanwhile
// the same is told as ever, and a lazy one is left alone.
func TestPins_lockFileRemoved(t *testing.T) {
	up, shy, lock := newShifting(t, "read", "write"), newShifting(t, "read"), newLock(t)
	lazy := upstreamNamed("shy", shy.url, "lazy = true")
	pin(t, lock, upstreamAt(up.url)+lazy)
	var said logBuffer
	s := server(t, engine.Options{Files: engine.Files{Config: files("mcpd.hcl", upstreamAt(up.url)+lazy), LockPath: lock}, Logger: said.logger()})
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(t.Context()); err == nil {
		t.Fatal("a lock file that is gone is no mistake")
	}
	up.add("read", other)
	until(t, s, func() bool { return slices.Equal(names(s), []string{"lab_write", "shy_read"}) })
	if diff := cmp.Diff([]string{"lab_read"}, s.Status().Upstreams[0].Quarantined); diff != "" {
		t.Errorf("in quarantine (-want +got)\n%s", diff)
	}
	if n := strings.Count(said.String(), "quarantine upstream tool, see"); n != 1 {
		t.Errorf("the log tells of it %d times:\n%s", n, said.String())
	}
	if !s.Status().Upstreams[1].Idle {
		t.Error("the lazy server is reached")
	}
	if got := called(t, s, tool("shy_read", `{}`)); got.Err != nil {
		t.Errorf("a call of it ends with %s", ended(got))
	}
}

// TestPins_lockGone accepts nothing, whatever else is broken; tools are held to what was
// accepted before.
func TestPins_lockGone(t *testing.T) {
	up, lock := newShifting(t, "read", "write"), newLock(t)
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
				t.Fatalf("%s: it is no mistake", what)
			}
			if diff := cmp.Diff([]string{"lab_read", "lab_write", "own"}, names(s)); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", what, diff)
			}
		}
	}
	up.add("read", other)
	until(t, s, func() bool { return slices.Equal(names(s), []string{"lab_write", "own"}) })
	if err := os.WriteFile(lock, good, 0o644); err != nil {
		t.Fatal(err)
	}
	config["mcpd.hcl"].Data = []byte(upstreamAt(up.url))
	if _, err := s.Load(t.Context()); err != nil {
		t.Errorf("put back: %v", err)
	}
	if diff := cmp.Diff([]string{"lab_read"}, s.Status().Upstreams[0].Quarantined); diff != "" {
		t.Errorf("in quarantine (-want +got)\n%s", diff)
	}
}

// TestPins_lockGoneAtFirstUse takes in nothing of a server that is reached for the first time
// while the file is gone.
func TestPins_lockGoneAtFirstUse(t *testing.T) {
	up, lock := newShifting(t, "read"), newLock(t)
	late := mcp.NewServer(&mcp.Implementation{Name: "late", Version: "1"}, nil)
	late.AddTool(&mcp.Tool{Name: "first", InputSchema: anything}, nil)
	well := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return late }, nil)
	var comes atomic.Bool
	url := web(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !comes.Load() {
			http.Error(w, "no", http.StatusInternalServerError)
			return
		}
		well.ServeHTTP(w, r)
	}))
	s := pinned(t, lock, upstreamAt(up.url)+upstreamNamed("late", url))
	good, err := os.ReadFile(lock)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(t.Context()); err == nil {
		t.Fatal("a lock file that is gone is no mistake")
	}
	comes.Store(true)
	until(t, s, func() bool { return slices.Equal(s.Status().Upstreams[1].Quarantined, []string{"late_first"}) })
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
		t.Errorf("put back (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(2, len(accepted(t, lock))); diff != "" {
		t.Errorf("the lock file (-want +got)\n%s", diff)
	}
}
