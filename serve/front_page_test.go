package serve_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/serve"
)

func TestFrontPage_answersPeopleAlone(t *testing.T) {
	tools := fstest.MapFS{"t.hcl": {Data: []byte(`tool "secret_tool" { run = "return 1;" }`), Mode: 0o644}}
	s, err := engine.New(engine.Options{Name: "test", Front: serve.Checks{}, Tools: tools})
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
		"no accept":        {"GET", "/", nil, 200},
		"a browser":        {"GET", "/", http.Header{"Accept": {"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}}, 200},
		"the head":         {"HEAD", "/", http.Header{"Accept": {"application/json;q=0.1", "text/html;q=0.5"}}, 200},
		"json":             {"GET", "/", http.Header{"Accept": {"application/json, text/event-stream"}}, 404},
		"anything":         {"GET", "/", http.Header{"Accept": {"*/*"}}, 404},
		"no html":          {"GET", "/", http.Header{"Accept": {"text/html;q=0, application/json"}}, 404},
		"another method":   {"DELETE", "/", http.Header{"Accept": {"text/html"}}, 404},
		"another path":     {"GET", "/index.html", http.Header{"Accept": {"text/html"}}, 404},
		"a foreign host":   {"GET", "/", http.Header{"Host": {"evil.example.com"}, "Accept": {"text/html"}}, 403},
		"a foreign origin": {"GET", "/", http.Header{"Origin": {"https://evil.example.com"}, "Accept": {"text/html"}}, 403},
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
				t.Errorf("the type is %q", got.Header.Get("Content-Type"))
			}
			if !page {
				return
			}
			if policy := got.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") {
				t.Errorf("the policy is %q", policy)
			}
			if c.method == "GET" && (!strings.Contains(string(body), "/mcp") || strings.Contains(string(body), "<script") || strings.Contains(string(body), "secret_tool")) {
				t.Errorf("the page is %s", body)
			}
		})
	}
}
