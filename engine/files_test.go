package engine_test

import (
	"context"
	"errors"
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
