package console

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpd/mcpd/internal/ops/control"
)

func TestOverview(t *testing.T) {
	t.Parallel()
	backend := newFake()
	backend.answers["diagnostics"] = "tools.d/a.hcl:3:1: error: unknown block"
	backend.answers[control.Status] = map[string]any{
		"status": "the files have errors", "revision": "0123456789abcdef", "problems": []map[string]string{{"severity": "error"}, {"severity": "warning"}}, "listeners": []string{"http://127.0.0.1:8080/mcp"},
		"upstreams": []map[string]any{{"name": "docs", "error": "connection refused"}},
	}
	now := time.Now()
	backend.streams[control.Calls] = func(p *pipe) {
		for i, outcome := range []string{"ok", "ok", "POLICY_DENIED", "TIMEOUT"} {
			p.lines <- control.Call{CallID: fmt.Sprint(i), Time: now, Outcome: outcome, DeniedBy: "nightly", DurationMS: float64(i) * 10}
		}
	}
	b := browse(t, backend).signIn()
	b.get("/") // starts the stream of calls
	waitForCalls(b.console.feed, 4)
	_, page := b.get("/")
	mustContain(t, page, "1 error in the files", "1 warning", "unknown block", "docs", "connection refused", "succeeded2", "refused1", "failed1", "nightly")
	s := b.console.feed.summary()
	if s.OK != 2 || s.P50 != 20 || s.P95 != 30 || len(s.series.Time) != seriesBuckets {
		t.Errorf("summary %+v", s)
	}
}

func TestOverview_limits(t *testing.T) {
	t.Parallel()
	backend := newFake()
	b := browse(t, backend).signIn()
	_, page := b.get("/")
	mustContain(t, page, "No key uses 80 % of a limit.", "The files have no limit block.")
	full := make([]control.KeyUse, maxNear)
	for i := range full {
		full[i] = control.KeyUse{Key: fmt.Sprint("bot", i), Share: 1}
	}
	backend = newFake()
	backend.answers[control.Limits] = []control.LimitUse{
		{Limit: "callers", Kind: "rate", Bound: "10 calls a minute", Keys: 2, Most: []control.KeyUse{{Key: "ada", AuthKind: "jwt", Issuer: "https://idp", Share: 0.999}, {Key: "bob", AuthKind: "key", Share: 0.79}}},
		{Limit: "arguments", Kind: "rate", Bound: "1 call an hour", Most: []control.KeyUse{{Hash: "0a1b", AuthKind: "jwt", Share: 0.8}, {Rest: true, Share: 0.1}}},
		{Limit: "shared", Kind: "concurrency", Bound: "3 running", Shared: true, Keys: 7, Most: []control.KeyUse{{Key: "eve", AuthKind: "key", Share: 0.9}, {Hash: "2c3d", Share: 0.5}}},
		{Limit: "away", Kind: "rate", Bound: "1 call an hour", Shared: true, Problem: "the database <hangs>"},
		{Limit: "full", Kind: "concurrency", Bound: "5 running", Most: full},
	}
	_, page = browse(t, backend).signIn().get("/")
	mustContain(t, page, "ada (jwt of https://idp)", "99 %", "key 0a1b of a principal (jwt)", "80 %", "79 % bob (key)", "10 % all further keys", "counted for all replicas", "90 %", "50 % key 2c3d", "the database <hangs>", "5 running")
	near, _, _ := strings.Cut(page[strings.Index(page, `id="near"`):], "<details>")
	if strings.Contains(near, "bob") || strings.Count(near, "<tr>") != maxNear+1 {
		t.Errorf("near their bound:\n%s", near)
	}
	backend = newFake()
	backend.answers[control.Limits] = errors.New("unknown request")
	if _, page = browse(t, backend).signIn().get("/"); !strings.Contains(page, "unknown request") || !strings.Contains(page, "Healthy") {
		t.Error("an older server")
	}
}

func TestConsole_serverGone(t *testing.T) {
	t.Parallel()
	backend := newFake()
	for action := range backend.answers {
		backend.answers[action] = errors.New("no server answers there")
	}
	backend.streams = nil
	b := browse(t, backend).signIn()
	for _, path := range []string{"/", "/items", "/item?kind=tool&address=greet", "/upstreams"} {
		status, page := b.get(path)
		if mustContain(t, page, "no server answers there"); status != http.StatusBadGateway {
			t.Errorf("%s: status %d", path, status)
		}
	}
	for _, path := range []string{"/policies", "/access"} {
		if status, page := b.get(path); status != http.StatusOK || !slices.ContainsFunc([]string{"no server", "no stream"}, func(s string) bool { return strings.Contains(page, s) }) {
			t.Errorf("%s: status %d: %s", path, status, pageText(t, page))
		}
	}
}

func TestStreams_bounded(t *testing.T) {
	t.Parallel()
	b := browse(t, newFake()).signIn()
	for range maxStreams {
		b.live("/calls/events").until("event: feed")
	}
	if status, _ := b.get("/calls/events"); status != http.StatusServiceUnavailable {
		t.Errorf("status %d", status)
	}
}
