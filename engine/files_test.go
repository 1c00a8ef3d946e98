package engine_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/extensions/federation"
)

// TestFiles_requireTests loads files whose test fails, without reload.require_tests: only
// Files.RequireTests refuses them.
func TestFiles_requireTests(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{"a.hcl": {Data: []byte(`
tool "one" {
  run = "return 1;"
}
test "is two" {
  tool = "one"
  expect { output = 2 }
}
`)}}
	for _, require := range []bool{false, true} {
		s, err := engine.New(engine.Options{Name: "x", Files: engine.Files{Tools: files, RequireTests: require}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Load(t.Context())
		var problems diag.List
		if refused := errors.As(err, &problems); refused != require || require && problems[0].Code != "test-failed" {
			t.Errorf("with RequireTests %v: %v", require, err)
		}
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

// TestFiles_lockInFS reads the lock file from Files.Lock, not from the disk.
func TestFiles_lockInFS(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{"mcpd.lock": {Data: []byte("no lock file\n")}, "mcpd.hcl": {Data: []byte("upstream \"crm\" {\n  url = \"https://crm.example.com/mcp\"\n}\n")}}
	s, err := engine.New(engine.Options{
		Name: "x", Mode: engine.Offline, Extensions: []engine.Extension{federation.New()},
		Files: engine.Files{Config: files, Lock: files, LockPath: "mcpd.lock"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(context.Background())
	var problems diag.List
	if _, err := s.Load(t.Context()); !errors.As(err, &problems) || problems[0].Range.File != "mcpd.lock" {
		t.Errorf("a lock file with an error: %v", err)
	}
}

// TestReload_candidate loads files that replace the serving ones, with another lock file, and whose
// test fails. The lock file and the status of the serving files must stay in effect, also when an
// upstream server changes after that.
func TestReload_candidate(t *testing.T) {
	up, lock, beside := newChangingUpstream(t, "read", "write"), newLock(t), newLock(t)
	config := upstreamAt(up.url)
	lockOf := func(path string) fstest.MapFS {
		acceptTools(t, path, config)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return files("mcpd.hcl", config, "mcpd.lock", string(text))
	}
	serving := lockOf(lock)
	up.add("write", other)
	candidate := lockOf(beside) // which accepts the changed tool
	candidate["tools.d/a.hcl"] = &fstest.MapFile{Data: []byte("tool \"one\" {\n  run = \"return 1;\"\n}\ntest \"is two\" {\n  tool = \"one\"\n  expect { output = 2 }\n}\n")}

	var all switchedFS
	all.FS = serving
	tools, err := fs.Sub(&all, "tools.d")
	if err != nil {
		t.Fatal(err)
	}
	serving["tools.d/b.hcl"] = &fstest.MapFile{Data: []byte("tool \"two\" {\n  run = \"return 2;\"\n}\n")}
	var said logBuffer
	s := server(t, engine.Options{Files: engine.Files{Tools: tools, Config: &all, Lock: &all, LockPath: "mcpd.lock", RequireTests: true}, Logger: said.logger()})
	want := []string{"lab_read", "two"}
	if got := names(s); !slices.Equal(got, want) {
		t.Fatalf("serving %v", got)
	}
	all.FS = candidate
	_, err = s.Reload(t.Context(), engine.Change{All: true, Candidate: true})
	var problems diag.List
	if !errors.As(err, &problems) {
		t.Fatalf("the candidate: %v", err)
	}
	up.add("list", anyInput)
	waitForSnapshot(t, s, func() bool { return s.Status().Upstreams[0].Offered == 3 })
	if got := names(s); !slices.Equal(got, want) {
		t.Errorf("the lock file of the candidate is in effect: serving %v", got)
	}
	status := s.Status()
	if !status.Synchronized || status.Loads != 2 || status.FailedLoads != 1 || slices.ContainsFunc(status.Problems, func(d diag.Diagnostic) bool { return d.Code == "test-failed" }) {
		t.Errorf("the status is that of the candidate: %+v", status)
	}
	all.FS = serving
	if _, err := s.Reload(t.Context(), engine.Change{All: true}); err != nil {
		t.Fatal(err)
	}
	if got := names(s); !slices.Equal(got, want) {
		t.Errorf("serving %v", got)
	}
}

// switchedFS is a file system that a test replaces.
type switchedFS struct{ fs.FS }
