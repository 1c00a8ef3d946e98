package conformance_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/extensions/typescript"
	"github.com/mcpd/mcpd/serve"
)

// site is an engine served over every transport.
type site struct {
	engine *engine.Server
	front  *serve.Front
	url    string
	client *http.Client
}

// open serves an engine with the options until the test ends. No call may be
// running then.
func open(t *testing.T, o engine.Options) *site {
	t.Helper()
	o.Front, o.Extensions = serve.Checks{}, []engine.Extension{typescript.New()}
	e, err := engine.New(o)
	if err != nil {
		t.Fatal(err)
	}
	if report, err := e.Load(t.Context()); err != nil {
		t.Fatalf("%v\n%v", err, report)
	}
	s := &site{engine: e, front: serve.New(e, serve.Options{}), client: &http.Client{Transport: &http.Transport{}}}
	handler, err := s.front.Handler()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	s.url = server.URL
	t.Cleanup(func() {
		s.client.CloseIdleConnections()
		if err := s.front.Shutdown(context.Background()); err != nil {
			t.Errorf("shut down: %v", err)
		}
		server.Close()
	})
	return s
}

// fixtures is the directory of the official suite's fixtures.
const fixtures = "../../testdata/conformance"

// copies is a site with a copy of the fixtures, and the helper that edits it
// for a fixture tool.
type copies struct {
	*site
	folder string

	mu    sync.Mutex
	edits int
}

// serveFixtures serves a copy of the fixtures, with the address of the helper
// instead of port 1.
func serveFixtures(t *testing.T) *copies {
	t.Helper()
	c := &copies{folder: t.TempDir()}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /edit/tool", c.editor("changing.hcl", "tool \"changing\" {\n  description = \"Has been edited %d times.\"\n  run = \"return 1;\"\n}\n"))
	mux.HandleFunc("POST /edit/prompt", c.editor("changing_prompt.hcl", "prompt \"changing_prompt\" {\n  description = \"Has been edited %d times.\"\n  message \"user\" { text = \"Edited.\" }\n}\n"))
	helper := httptest.NewServer(mux)
	t.Cleanup(helper.Close)
	if err := os.CopyFS(c.folder, os.DirFS(fixtures)); err != nil {
		t.Fatal(err)
	}
	c.rewrite(t, "trigger.hcl", "127.0.0.1:1\"", helper.Listener.Addr().String()+`"`)
	c.rewrite(t, "trigger.hcl", "127.0.0.1:1/", helper.Listener.Addr().String()+"/")
	c.site = open(t, engine.Options{
		Name: "test", Version: "1", Files: engine.Files{Tools: engine.Dir(filepath.Join(c.folder, "tools.d")), Config: engine.Dir(c.folder), ConfigPath: "mcpd.hcl"},
	})
	return c
}

func (c *copies) file(name string) string { return filepath.Join(c.folder, "tools.d", name) }

// rewrite replaces text in a tool file.
func (c *copies) rewrite(t *testing.T, name, old, replacement string) {
	t.Helper()
	before, err := os.ReadFile(c.file(name))
	if err != nil {
		t.Fatal(err)
	}
	after := bytes.ReplaceAll(before, []byte(old), []byte(replacement))
	if bytes.Equal(before, after) {
		t.Fatalf("%s does not contain %s", name, old)
	}
	if err := os.WriteFile(c.file(name), after, 0o600); err != nil {
		t.Fatal(err)
	}
}

// reload loads a changed tool file.
func (c *copies) reload(ctx context.Context, name string) error {
	_, err := c.engine.Reload(ctx, engine.Change{Paths: []string{name}})
	return err
}

// editor saves a new version of a tool file at each request, and responds when
// it is served.
func (c *copies) editor(name, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.edits++
		err := os.WriteFile(c.file(name), fmt.Appendf(nil, text, c.edits), 0o600)
		if err == nil {
			err = c.reload(r.Context(), name)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}
}
