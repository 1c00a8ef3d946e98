package telemetry_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/mcpd/mcpd/internal/base/observe"
	"github.com/mcpd/mcpd/internal/ops/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scrape returns the values of all series in the text format.
func scrape(t testing.TB, tel *telemetry.Telemetry) map[string]string {
	t.Helper()
	w := httptest.NewRecorder()
	tel.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	series := map[string]string{}
	for line := range strings.Lines(w.Body.String()) {
		if at := strings.LastIndexByte(line, ' '); !strings.HasPrefix(line, "#") && at > 0 {
			series[line[:at]] = strings.TrimSpace(line[at:])
		}
	}
	return series
}

// only returns the series with one of the prefixes.
func only(series map[string]string, prefixes ...string) map[string]string {
	some := map[string]string{}
	for name, value := range series {
		for _, prefix := range prefixes {
			if strings.HasPrefix(name, prefix) {
				some[name] = value
			}
		}
	}
	return some
}

// clock is a clock that the test sets.
type clock struct{ now time.Time }

func newClock() *clock { return &clock{time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)} }

func (c *clock) time() time.Time { return c.now }

func TestMetrics_namesOfSnapshot(t *testing.T) {
	tel := start(t, telemetry.Options{})
	m := tel.Metrics()
	m.Publish(observe.Catalog{Items: []observe.Item{{Kind: "tool", Name: "refund"}, {Kind: "prompt", Name: "refund"}}, Policies: []string{"small"}, Limits: []string{"per_agent"}})
	m.CallEnded("tool", "refund", "client", "ok", 3*time.Millisecond)
	m.CallEnded("tool", "refund", "client", "ok", 30*time.Microsecond)
	m.CallEnded("tool", "refund", "tool", "TIMEOUT", time.Minute)
	m.CallEnded("prompt", "refund", "client", "ok", time.Millisecond)
	m.CallEnded("tool", "made_up_by_a_caller", "client", "TOOL_NOT_FOUND", time.Millisecond)
	m.CallEnded("made up", "refund", "made up", "made up", time.Millisecond)
	m.Denied("small")
	m.Denied("made up")
	m.Limited("per_agent")
	m.LimitStoreFailed(observe.UncountedDenied)
	m.Reported(observe.ReportFailed)
	m.Forwarded(observe.ForwardedServed)
	m.HostCallEnded("fs.readText", "ok", time.Millisecond)
	m.HostCallEnded("made up", "made up", time.Millisecond)
	m.Loaded("published", 7*time.Millisecond)
	m.Loaded("failed", 7*time.Millisecond)
	want := map[string]string{
		`mcpd_calls_total{kind="tool",name="refund",outcome="ok",via="client"}`:       "2",
		`mcpd_calls_total{kind="tool",name="refund",outcome="TIMEOUT",via="tool"}`:    "1",
		`mcpd_calls_total{kind="prompt",name="refund",outcome="ok",via="client"}`:     "1",
		`mcpd_calls_total{kind="tool",name="",outcome="TOOL_NOT_FOUND",via="client"}`: "1",
		`mcpd_calls_total{kind="other",name="",outcome="other",via="other"}`:          "1",
		`mcpd_call_duration_seconds_count{kind="tool",name="refund"}`:                 "3",
		`mcpd_call_duration_seconds_count{kind="prompt",name="refund"}`:               "1",
		`mcpd_call_duration_seconds_count{kind="tool",name=""}`:                       "1",
		`mcpd_call_duration_seconds_count{kind="other",name=""}`:                      "1",
		`mcpd_call_duration_seconds_bucket{kind="tool",name="refund",le="5e-05"}`:     "1",
		`mcpd_call_duration_seconds_bucket{kind="tool",name="refund",le="0.0025"}`:    "1",
		`mcpd_call_duration_seconds_bucket{kind="tool",name="refund",le="0.005"}`:     "2",
		`mcpd_call_duration_seconds_bucket{kind="tool",name="refund",le="30.0"}`:      "2",
		`mcpd_call_duration_seconds_bucket{kind="tool",name="refund",le="60.0"}`:      "3",
		`mcpd_denials_total{policy="small"}`:                                          "1",
		`mcpd_denials_total{policy="other"}`:                                          "1",
		`mcpd_limit_refusals_total{limit="per_agent"}`:                                "1",
		`mcpd_limit_refusals_total{limit="other"}`:                                    "0",
		`mcpd_limit_store_failures_total{outcome="allowed"}`:                          "0",
		`mcpd_limit_store_failures_total{outcome="denied"}`:                           "1",
		`mcpd_reports_total{outcome="delivered"}`:                                     "0",
		`mcpd_reports_total{outcome="failed"}`:                                        "1",
		`mcpd_forwarded_requests_total{outcome="served"}`:                             "1",
		`mcpd_host_calls_total{operation="fs",outcome="ok"}`:                          "1",
		`mcpd_host_calls_total{operation="other",outcome="other"}`:                    "1",
		`mcpd_reloads_total{outcome="published"}`:                                     "1",
		`mcpd_reloads_total{outcome="unchanged"}`:                                     "0",
		`mcpd_reloads_total{outcome="failed"}`:                                        "1",
		`mcpd_reloads_total{outcome="other"}`:                                         "0",
		`mcpd_reload_duration_seconds_count`:                                          "2",
	}
	got := only(scrape(t, tel), "mcpd_calls", "mcpd_call_duration_seconds_count", "mcpd_denials", "mcpd_limit", "mcpd_forwarded", "mcpd_host_calls", "mcpd_reports", "mcpd_reloads", "mcpd_reload_duration_seconds_count")
	all := scrape(t, tel)
	for name := range want {
		if strings.Contains(name, "_bucket") {
			got[name] = all[strings.Replace(name, `.0"`, `"`, 1)]
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestMetrics_statsOnScrape(t *testing.T) {
	c := newClock()
	tel := start(t, telemetry.Options{Version: "1.2.3", Now: c.time})
	if got := only(scrape(t, tel), "mcpd_config", "mcpd_snapshot", "mcpd_worker"); len(got) != 0 {
		t.Errorf("before Collect: %v", got)
	}
	tel.Metrics().Collect(func() observe.Stats {
		return observe.Stats{
			Snapshot: observe.SnapshotStats{Revision: "abc", Since: c.now.Add(-time.Hour), Synchronized: true, Tools: 3, Policies: 2},
			Running:  4, Hooks: observe.HookStats{Failures: 5, Waits: 6, Queued: 7},
			Workers: observe.WorkerStats{Processes: 2, Calls: 9, Waiting: 1, Refused: 8, Started: 11, Deaths: observe.Deaths{Overdue: 1, Memory: 2, Protocol: 3, Crashed: 4}},
			Fronts:  []observe.FrontStats{{Transport: "sse", Sessions: 1, Connections: 2}, {Transport: "sse", Sessions: 3}, {Transport: "made up", Connections: 1}, {Transport: "made up too"}},
		}
	})
	got := scrape(t, tel)
	for name, want := range map[string]string{
		`mcpd_snapshot_info{revision="abc"}`: "1", `mcpd_snapshot_age_seconds`: "3600", `mcpd_config_synchronized`: "1", `mcpd_draining`: "0",
		`mcpd_snapshot_items{kind="tool"}`: "3", `mcpd_snapshot_items{kind="policy"}`: "2", `mcpd_snapshot_items{kind="hook"}`: "0", `mcpd_calls_running`: "4",
		`mcpd_hook_failures_total`: "5", `mcpd_hook_waits_total`: "6", `mcpd_hook_queue_runs`: "7",
		`mcpd_worker_processes`: "2", `mcpd_worker_calls`: "9", `mcpd_worker_starts_total`: "11", `mcpd_admission_queue_calls`: "1", `mcpd_admission_refusals_total`: "8",
		`mcpd_worker_deaths_total{cause="overdue"}`: "1", `mcpd_worker_deaths_total{cause="memory"}`: "2", `mcpd_worker_deaths_total{cause="protocol"}`: "3", `mcpd_worker_deaths_total{cause="crashed"}`: "4",
		`mcpd_sessions{transport="sse"}`: "4", `mcpd_connections{transport="sse"}`: "2", `mcpd_connections{transport="other"}`: "1", `mcpd_sessions{transport="stdio"}`: "0",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	if len(only(got, `mcpd_build_info{`)) != 1 || got["process_start_time_seconds"] == "" || got["go_goroutines"] == "" {
		t.Error("the program, its process or its runtime is missing")
	}
}

func TestMetrics_concurrentUse(t *testing.T) {
	c := newClock()
	tel := start(t, telemetry.Options{Now: func() time.Time { return c.now }})
	m := tel.Metrics()
	m.Collect(func() observe.Stats { return observe.Stats{} })
	catalog := observe.Catalog{Items: []observe.Item{{Kind: "tool", Name: "kept"}, {Kind: "tool", Name: "comes and goes"}}, Policies: []string{"p"}, Limits: []string{"l"}}
	m.Publish(catalog)
	const callers, each = 8, 500
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for range each {
				m.CallEnded("tool", "kept", "client", "ok", time.Millisecond)
				m.CallEnded("tool", "comes and goes", "client", "ok", time.Millisecond)
				m.Denied("p")
				m.HostCallEnded("http.request", "ok", time.Millisecond)
			}
		})
	}
	all.Go(func() {
		for range 50 {
			m.Publish(observe.Catalog{Items: catalog.Items[:1]})
			m.Publish(catalog)
		}
	})
	all.Go(func() {
		for range 5 {
			scrape(t, tel)
		}
	})
	all.Wait()
	if got := scrape(t, tel)[`mcpd_calls_total{kind="tool",name="kept",outcome="ok",via="client"}`]; got != fmt.Sprint(callers*each) {
		t.Errorf("%s calls counted, want %d", got, callers*each)
	}
}
