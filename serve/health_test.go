package serve_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/serve"
)

// TestReadyz_lifecycle: the server is ready while it serves calls, not during
// shutdown.
func TestReadyz_lifecycle(t *testing.T) {
	s, err := engine.New(engine.Options{Name: "test", Front: serve.Checks{}, Files: engine.Files{Tools: fstest.MapFS{"t.hcl": {Data: []byte(`tool "a" { run = "return 1" }`), Mode: 0o644}}}})
	if err != nil {
		t.Fatal(err)
	}
	front := serve.New(s, serve.Options{})
	var handler http.Handler
	want := func(when string, status int, ready bool) {
		t.Helper()
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://127.0.0.1:8080/readyz", nil))
		var got struct{ Ready bool }
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		if w.Code != status || got.Ready != ready {
			t.Errorf("%s: %d %s", when, w.Code, w.Body)
		}
	}
	if handler, err = front.Handler(); err != nil {
		t.Fatal(err)
	}
	want("loaded", http.StatusOK, true)
	if err := front.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	want("shut down", http.StatusServiceUnavailable, false)
}

// TestReadyz_problems: texts of problems are for authenticated callers.
func TestReadyz_problems(t *testing.T) {
	keys, path := validKeys(t, "ci")
	tools := fstest.MapFS{"t.hcl": {Data: []byte(`tool "a" { run = "return 1;" }`), Mode: 0o644}}
	config := fstest.MapFS{"mcpd.hcl": {Data: fmt.Appendf(nil, "auth \"api_key\" \"people\" {\n  file = %q\n}\n", path), Mode: 0o600}}
	s, err := engine.New(engine.Options{Name: "test", Front: serve.Checks{}, Files: engine.Files{Tools: tools, Config: config, ConfigPath: "mcpd.hcl"}})
	if err != nil {
		t.Fatal(err)
	}
	front := serve.New(s, serve.Options{})
	defer func() { _ = front.Shutdown(t.Context()) }()
	handler, err := front.Handler()
	if err != nil {
		t.Fatal(err)
	}
	want := func(when, credential string, count, texts int) {
		t.Helper()
		r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:8080/readyz", nil)
		if credential != "" {
			r.Header.Set("Authorization", "Bearer "+credential)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		var got struct {
			Count    int               `json:"problem_count"`
			Problems []json.RawMessage `json:"problems"`
		}
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got.Count != count || len(got.Problems) != texts {
			t.Errorf("%s: %v %s", when, err, w.Body)
		}
	}
	want("valid", "", 0, 0)
	tools["t.hcl"] = &fstest.MapFile{Data: []byte("tool \"a\" {\n  rum = 1\n  desciption = 2\n}"), Mode: 0o644}
	_, err = s.Reload(t.Context(), engine.Change{Paths: []string{"t.hcl"}})
	mistakes, isList := err.(diag.List)
	if !isList {
		t.Fatal(err)
	}
	want("no credential", "", len(mistakes), 0)
	want("unknown key", unknownKey(), len(mistakes), 0)
	want("ci", keys["ci"], len(mistakes), len(mistakes))
}

// TestReadyz_bundle: a problem of a bundle makes no server unready, and its text is for
// authenticated callers.
func TestReadyz_bundle(t *testing.T) {
	keys, path := validKeys(t, "ci")
	tools := fstest.MapFS{"t.hcl": {Data: []byte(`tool "a" { run = "return 1;" }`), Mode: 0o644}}
	config := fstest.MapFS{"mcpd.hcl": {Data: fmt.Appendf(nil, "auth \"api_key\" \"people\" {\n  file = %q\n}\n", path), Mode: 0o600}}
	s, err := engine.New(engine.Options{Name: "test", Front: serve.Checks{}, Files: engine.Files{Tools: tools, Config: config, ConfigPath: "mcpd.hcl"}})
	if err != nil {
		t.Fatal(err)
	}
	var problems diag.List
	front := serve.New(s, serve.Options{Bundle: func() diag.List { return problems }})
	defer func() { _ = front.Shutdown(t.Context()) }()
	handler, err := front.Handler()
	if err != nil {
		t.Fatal(err)
	}
	want := func(credential, status string, count, texts int) {
		t.Helper()
		r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:8080/readyz", nil)
		if credential != "" {
			r.Header.Set("Authorization", "Bearer "+credential)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		var got struct {
			Status   string
			Count    int               `json:"problem_count"`
			Problems []json.RawMessage `json:"problems"`
		}
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusOK || got.Status != status || got.Count != count || len(got.Problems) != texts {
			t.Errorf("%v %d %s", err, w.Code, w.Body)
		}
	}
	want("", "healthy", 0, 0)
	problems = diag.List{{Severity: diag.Warning, Code: "bundle-problem", Summary: "refused"}}
	want("", "the bundle has a problem", 1, 0)
	want(keys["ci"], "the bundle has a problem", 1, 1)
}

func TestFrontPage(t *testing.T) {
	tools := fstest.MapFS{"t.hcl": {Data: []byte(`tool "secret_tool" { run = "return 1;" }`), Mode: 0o644}}
	s, err := engine.New(engine.Options{Name: "test", Front: serve.Checks{}, Files: engine.Files{Tools: tools}})
	if err != nil {
		t.Fatal(err)
	}
	handler, err := serve.New(s, serve.Options{}).Handler()
	if err != nil {
		t.Fatal(err)
	}
	site := httptest.NewServer(handler)
	defer site.Close()
	for name, c := range map[string]struct {
		method, path string
		header       http.Header
		status       int
	}{
		"no accept":      {"GET", "/", nil, 200},
		"browser":        {"GET", "/", http.Header{"Accept": {"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}}, 200},
		"HEAD":           {"HEAD", "/", http.Header{"Accept": {"application/json;q=0.1", "text/html;q=0.5"}}, 200},
		"json":           {"GET", "/", http.Header{"Accept": {"application/json, text/event-stream"}}, 404},
		"anything":       {"GET", "/", http.Header{"Accept": {"*/*"}}, 404},
		"no html":        {"GET", "/", http.Header{"Accept": {"text/html;q=0, application/json"}}, 404},
		"other method":   {"DELETE", "/", http.Header{"Accept": {"text/html"}}, 404},
		"other path":     {"GET", "/index.html", http.Header{"Accept": {"text/html"}}, 404},
		"foreign host":   {"GET", "/", http.Header{"Host": {"evil.example.com"}, "Accept": {"text/html"}}, 403},
		"foreign origin": {"GET", "/", http.Header{"Origin": {"https://evil.example.com"}, "Accept": {"text/html"}}, 403},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), c.method, site.URL+c.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			if c.header != nil {
				r.Header, r.Host = c.header, c.header.Get("Host")
			}
			got, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer got.Body.Close()
			body, err := io.ReadAll(got.Body)
			if err != nil || got.StatusCode != c.status {
				t.Fatalf("%d %s (%v)", got.StatusCode, body, err)
			}
			page := c.status == 200
			if isHTML := strings.HasPrefix(got.Header.Get("Content-Type"), "text/html"); isHTML != page {
				t.Errorf("type = %q", got.Header.Get("Content-Type"))
			}
			if !page {
				return
			}
			if policy := got.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") {
				t.Errorf("policy = %q", policy)
			}
			if c.method == "GET" && (!strings.Contains(string(body), "/mcp") || strings.Contains(string(body), "<script") || strings.Contains(string(body), "secret_tool")) {
				t.Errorf("page = %s", body)
			}
		})
	}
}
