// Package examples_test loads and runs the examples, each from its folder. The README.md of a
// folder describes the example.
package examples_test

import (
	"context"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/extensions/codemode"
	"github.com/mcpd/mcpd/extensions/federation"
	"github.com/mcpd/mcpd/extensions/oidc"
	"github.com/mcpd/mcpd/extensions/postgres"
	"github.com/mcpd/mcpd/extensions/sqlite"
	"github.com/mcpd/mcpd/extensions/typescript"
	"github.com/mcpd/mcpd/scripting"
	"github.com/mcpd/mcpd/serve"
)

// load returns a server of a folder with loaded files and all extensions, and closes it when
// the test ends. It trusts agent code, since the examples are the test's own.
func load(t *testing.T, folder string, o engine.Options) *engine.Server {
	t.Helper()
	o.Name, o.Files.Tools, o.Files.Config = "example", engine.Dir(filepath.Join(folder, "tools.d")), engine.Dir(folder)
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

// copyOf copies a folder to a temporary one without links in its path.
func copyOf(t *testing.T, folder string) (dir string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(dir, os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// loadCopy returns a server of a copy of a folder, and the path of the copy.
func loadCopy(t *testing.T, folder string) (server *engine.Server, dir string) {
	t.Helper()
	dir = copyOf(t, folder)
	return load(t, dir, engine.Options{}), dir
}

// passes runs the test blocks of a server's tools. It requires that all pass and that
// their number equals blocks.
func passes(t *testing.T, server *engine.Server, blocks int) {
	t.Helper()
	results, err := server.RunTests(t.Context(), nil)
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

// connect returns a session of a client of the official SDK, and closes it when the test ends.
func connect(t *testing.T, server *engine.Server, version string, o *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	handler, err := serve.New(server, serve.Options{}).Handler()
	if err != nil {
		t.Fatal(err)
	}
	site := httptest.NewServer(handler)
	t.Cleanup(site.Close)
	client := mcp.NewClient(&mcp.Implementation{Name: "example", Version: "1"}, o)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: site.URL + "/mcp"}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}
