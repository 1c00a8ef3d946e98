package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/schema"
	"github.com/mcpd/mcpd/internal/ops/bundle"
	"github.com/mcpd/mcpd/internal/ops/report"
)

// TestReport_schema receives the reports of a server of bundles, and validates each with the
// documented schema. None may contain an argument, a token or the name of a tool.
func TestReport_schema(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: it waits 20 s for reports")
	}
	t.Parallel()
	raw, err := os.ReadFile("../../docs/reference/report.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	documented, mistakes := schema.Compile(raw, diag.Range{}, nil)
	if len(mistakes) > 0 {
		t.Fatal(mistakes)
	}
	const token, canary = "t0ken-of-the-maker", "canary-in-an-argument"
	reports := make(chan report.Report, 1000)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Header.Get("Authorization") != "Bearer "+token {
			t.Errorf("%v, header %q", err, r.Header)
		}
		if violations := documented.Validate(body); len(violations) > 0 {
			t.Errorf("%v\n%s", violations, body)
		}
		for _, secret := range []string{token, canary, "greet_visitor"} {
			if bytes.Contains(body, []byte(secret)) {
				t.Errorf("the report contains %q: %s", secret, body)
			}
		}
		var got report.Report
		if err := json.Unmarshal(body, &got); err != nil {
			t.Error(err)
		}
		w.WriteHeader(http.StatusAccepted)
		reports <- got
	}))
	t.Cleanup(receiver.Close)

	r, dir := newRelease(t), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "release.pub"), r.public, 0o600); err != nil {
		t.Fatal(err)
	}
	var offer atomic.Pointer[[]byte]
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		data := *offer.Load()
		w.Header().Set("ETag", fmt.Sprintf(`"%x"`, sha256.Sum256(data)))
		http.ServeContent(w, request, "", time.Time{}, bytes.NewReader(data))
	}))
	t.Cleanup(site.Close)
	release := func(about bundle.Manifest, expected string) {
		t.Helper()
		config := fmt.Sprintf(`
server { name = "shop" }
variable "site" { type = string }
secret "maker" { env = "MAKER_TOKEN" }
report {
  url    = "%s/reports"
  token  = secret.maker
  every  = "10s"
  labels = { site = var.site, floor = "0" }
}
`, receiver.URL)
		tool := fmt.Sprintf(`
tool "greet_visitor" {
  input "name" {
    type       = string
    max_length = 30
  }
  run = <<JS
    return "Hello, " + input.name;
  JS
}
test "greets serial %d" {
  tool  = "greet_visitor"
  input = { name = "Ada" }
  expect { text = "%s" }
}
`, about.Serial, expected)
		about.Name, about.Created = "shop", time.Now()
		data, err := bundle.Pack(fstest.MapFS{"mcpd.hcl": {Data: []byte(config)}, "tools.d/greet.hcl": {Data: []byte(tool)}}, about)
		if err != nil {
			t.Fatal(err)
		}
		if data, err = bundle.Sign(data, r.private); err != nil {
			t.Fatal(err)
		}
		offer.Store(&data)
	}
	await := func(what string, ok func(report.Report) bool) report.Report {
		t.Helper()
		for failsafe := time.After(patience); ; {
			select {
			case got := <-reports:
				if ok(got) {
					return got
				}
			case <-failsafe:
				t.Fatalf("no report says: %s", what)
			}
		}
	}

	release(bundle.Manifest{Serial: 1}, "Hello, Ada")
	environment := append(os.Environ(), "MAKER_TOKEN="+token, "MCPD_VAR_site=lab")
	d, err := startDaemon(buildDaemon(t), dir, environment, []string{"--bundle", site.URL, "--trust", "release.pub", "--bundle-dir", "kept", "--bundle-poll", "100ms", "--appliance-id", "kiosk-1", "--label", "floor=2"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.kill)
	for name, want := range map[string]int{canary: http.StatusOK, strings.Repeat(canary, 3): http.StatusBadRequest} {
		code, body, err := d.exchange(http.MethodPost, "/mcp/execute", []byte(`{"tool":"greet_visitor","arguments":{"name":"`+name+`"}}`), nil)
		if err != nil || code != want {
			t.Fatalf("call: %d %v %s", code, err, body)
		}
	}
	got := await("two calls", func(r report.Report) bool {
		return r.Calls.Outcomes["ok"] >= 1 && r.Calls.Outcomes["INVALID_INPUT"] == 1
	})
	if got.ID != "kiosk-1" || got.Labels["site"] != "lab" || got.Labels["floor"] != "2" || got.Server != "shop" || !got.Healthy || !got.Ready || got.Serves.Tools != 1 || got.Bundle == nil || got.Bundle.Serial != 1 || got.Revision == "" {
		t.Errorf("first report: %+v", got)
	}

	release(bundle.Manifest{Serial: 2, Rollout: &bundle.Rollout{Percent: 100, Labels: map[string]string{"floor": "2", "site": "lab"}}}, "Good day, Ada")
	got = await("a failed test of a bundle for this appliance", func(r report.Report) bool { return r.Bundle.Problem == bundle.CodeLoad })
	if p := got.Bundle.Problems; got.Healthy || !got.Ready || got.Bundle.Serial != 1 || len(p) != 1 || p[0].File != "tools.d/greet.hcl" || p[0].Line == 0 || p[0].Code == "" {
		t.Errorf("failed bundle: %+v, %+v", got, got.Bundle)
	}

	status := func(what, text string, ok func(*applianceState) bool) {
		t.Helper()
		for until := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) { // the interval of the poll
			_, stdout, stderr := inProcess(t, dir, nil, "status", "--bundle-dir", "kept", "--json")
			var row statusResult
			if err := json.Unmarshal([]byte(stdout), &row); err != nil || strings.Contains(stdout, token) {
				t.Fatalf("%v: %s%s", err, stdout, stderr)
			}
			if row.Appliance != nil && row.Appliance.Reports != nil && ok(row.Appliance) {
				break
			}
			if time.Now().After(until) {
				t.Fatalf("%s: %s", what, stdout)
			}
		}
		if _, stdout, _ := inProcess(t, dir, nil, "status", "--bundle-dir", "kept"); !strings.Contains(stdout, "appliance    kiosk-1, floor=2, site=lab\n") || !strings.Contains(stdout, text) || strings.Contains(stdout, token) {
			t.Errorf("%s: %s", what, stdout)
		}
	}
	status("delivered", "reports      to "+receiver.URL+", last delivered at ", func(a *applianceState) bool {
		return a.ID == "kiosk-1" && a.Labels["site"] == "lab" && a.Labels["floor"] == "2" && a.Reports.Receiver == receiver.URL && !a.Reports.Delivered.IsZero() && a.Reports.Error == ""
	})

	release(bundle.Manifest{Serial: 3, Rollout: &bundle.Rollout{Percent: 100, Labels: map[string]string{"floor": "0"}}}, "Hello, Ada")
	await("a bundle for others", func(r report.Report) bool { return r.Bundle.Pending == 3 && r.Bundle.Serial == 1 && r.Healthy })
	receiver.Close()
	status("no receiver", "failed, last at ", func(a *applianceState) bool {
		return !a.Reports.Delivered.IsZero() && !a.Reports.Failed.Before(a.Reports.Delivered) && a.Reports.Failures > 0 && a.Reports.Error != ""
	})
}
