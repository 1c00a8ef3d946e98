package serve

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/extensions/telemetry"
)

// TestBlocksThatAreNotAppliedAreToldOf serves for a program that has no blocks checked
// before they are loaded.
func TestBlocksThatAreNotAppliedAreToldOf(t *testing.T) {
	config := fstest.MapFS{"mcpd.hcl": {Mode: 0o600}}
	e, err := engine.New(engine.Options{Name: "test", Tools: fstest.MapFS{}, Config: config, ConfigPath: "mcpd.hcl", Extensions: []engine.Extension{telemetry.New(telemetry.Options{})}})
	if err != nil {
		t.Fatal(err)
	}
	f := New(e, Options{})
	defer func() { _ = f.Shutdown(context.Background()) }()
	handler, err := f.Handler()
	if err != nil {
		t.Fatal(err)
	}
	synchronized := func() string {
		metrics := httptest.NewRecorder()
		e.Metrics().ServeHTTP(metrics, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		for line := range strings.Lines(metrics.Body.String()) {
			if value, ok := strings.CutPrefix(line, "mcpd_config_synchronized "); ok {
				return strings.TrimSpace(value)
			}
		}
		return "absent"
	}
	if got := synchronized(); got != "1" {
		t.Errorf("at first the metric is %s", got)
	}
	if status := f.Status(); !status.Synchronized || len(status.Problems) > 0 {
		t.Errorf("at first: %+v", status)
	}
	block := fmt.Sprintf("auth \"api_key\" \"people\" {\n  file = %q\n}\n", filepath.Join(t.TempDir(), "keys.json"))
	config["mcpd.hcl"] = &fstest.MapFile{Data: []byte(block), Mode: 0o600}
	if _, err := e.Reload(t.Context(), engine.Change{Config: true}); err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1/mcp/capabilities", nil)
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, r)
	if answer.Code != http.StatusUnauthorized {
		t.Errorf("a caller got %d", answer.Code)
	}
	status := f.Status()
	if status.Synchronized || len(status.Problems) != 1 || status.Healthy() {
		t.Fatalf("status is %q: %+v", status.Health(), status)
	}
	if got := synchronized(); got != "0" {
		t.Errorf("the metric is %s", got)
	}
	if got := status.Problems[0].String(); !strings.HasPrefix(got, `mcpd.hcl:1:1: error: auth "api_key" "people" cannot be applied: `) {
		t.Errorf("the problem is %s", got)
	}
}
