package serve_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/fstest"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/serve"
)

// TestAServerIsReadyWhileItTakesCalls, and not while it ends.
func TestAServerIsReadyWhileItTakesCalls(t *testing.T) {
	s, err := engine.New(engine.Options{Name: "test", Front: serve.Checks{}, Tools: fstest.MapFS{"t.hcl": {Data: []byte(`tool "a" { run = "return 1" }`), Mode: 0o644}}})
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
