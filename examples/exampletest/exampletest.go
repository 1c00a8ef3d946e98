// Package exampletest holds the checks that every example must pass. Only tests import
// it.
package exampletest

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/extensions/codemode"
	"github.com/mcpd/mcpd/extensions/federation"
	"github.com/mcpd/mcpd/extensions/oidc"
	"github.com/mcpd/mcpd/extensions/postgres"
	"github.com/mcpd/mcpd/extensions/sqlite"
	"github.com/mcpd/mcpd/extensions/typescript"
	"github.com/mcpd/mcpd/scripting"
)

// Passes runs the test blocks of a server's tools. It requires that all pass and that
// their number equals blocks.
func Passes(t *testing.T, server *engine.Server, blocks int) {
	t.Helper()
	results, err := server.RunTests(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if len(results) != blocks {
		t.Errorf("%d tests ran, want %d", len(results), blocks)
	}
	for _, r := range results {
		for _, failure := range r.Failures {
			t.Errorf("%s: %s: %s", r.Range, r.Name, failure)
		}
	}
}

// Copy copies the directory of the test to a temporary one without links in its path.
func Copy(t *testing.T) (dir string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(dir, os.DirFS(".")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Load returns a server with loaded files and all extensions, and closes it when the
// test ends. It trusts agent code, since the examples are the test's own.
func Load(t *testing.T, o engine.Options) *engine.Server {
	t.Helper()
	o.Scripts.Programs, o.Extensions = scripting.Inline(), []engine.Extension{codemode.New(), federation.New(), typescript.New(), oidc.New(), postgres.New(), sqlite.New()}
	server, err := engine.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close(context.Background()) })
	if _, err := server.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	return server
}
