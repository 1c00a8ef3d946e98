package serve_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/fstest"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/auth/apikey/keytest"
	"github.com/mcpd/mcpd/serve"
)

// TestReadyz_countsProblemsForEverybody: their texts are for callers with a credential.
func TestReadyz_countsProblemsForEverybody(t *testing.T) {
	keys, path := keytest.Valid(t, "ci")
	tools := fstest.MapFS{"t.hcl": {Data: []byte(`tool "a" { run = "return 1;" }`), Mode: 0o644}}
	config := fstest.MapFS{"mcpd.hcl": {Data: fmt.Appendf(nil, "auth \"api_key\" \"people\" {\n  file = %q\n}\n", path), Mode: 0o600}}
	s, err := engine.New(engine.Options{Name: "test", Front: serve.Checks{}, Tools: tools, Config: config, ConfigPath: "mcpd.hcl"})
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
	want("in order", "", 0, 0)
	tools["t.hcl"] = &fstest.MapFile{Data: []byte("tool \"a\" {\n  rum = 1\n  desciption = 2\n}"), Mode: 0o644}
	_, err = s.Reload(t.Context(), engine.Change{Paths: []string{"t.hcl"}})
	mistakes, isList := err.(diag.List)
	if !isList {
		t.Fatal(err)
	}
	want("a stranger", "", len(mistakes), 0)
	want("a wrong key", keytest.Unknown(), len(mistakes), 0)
	want("ci", keys["ci"], len(mistakes), len(mistakes))
}
