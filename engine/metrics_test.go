package engine_test

import (
	"context"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/extensions/telemetry"
	"github.com/mcpd/mcpd/scripting"
)

// seriesOf returns the Prometheus series with these names; a name that ends with { matches all
// labels.
func seriesOf(s *engine.Server, names ...string) map[string]string {
	got := map[string]string{}
	for line := range strings.Lines(metricsOf(s)) {
		at := strings.LastIndexByte(line, ' ')
		if strings.HasPrefix(line, "#") || at < 0 {
			continue
		}
		for _, name := range names {
			if line[:at] == name || strings.HasSuffix(name, "{") && strings.HasPrefix(line, name) {
				got[line[:at]] = strings.TrimSpace(line[at:])
			}
		}
	}
	return got
}

// wantSeries compares all series with these names.
func wantSeries(t *testing.T, s *engine.Server, when string, want map[string]string, names ...string) {
	t.Helper()
	if diff := cmp.Diff(want, seriesOf(s, names...)); diff != "" {
		t.Errorf("%s (-want +got)\n%s", when, diff)
	}
}

// The files become invalid, and are fixed.
func TestMetrics_snapshot(t *testing.T) {
	var now atomic.Int64
	now.Store(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).UnixNano())
	tools := files("t.hcl", `tool "one" { run = "return 1" }`)
	s := unloaded(t, engine.Options{Files: engine.Files{Tools: tools}, Extensions: []engine.Extension{telemetry.New(telemetry.Options{})}, Now: func() time.Time { return time.Unix(0, now.Load()) }})
	names := []string{
		"mcpd_snapshot_info{", "mcpd_snapshot_age_seconds", "mcpd_config_synchronized", `mcpd_snapshot_items{kind="tool"}`, `mcpd_snapshot_items{kind="limit"}`,
		`mcpd_reloads_total{outcome="published"}`, `mcpd_reloads_total{outcome="unchanged"}`, `mcpd_reloads_total{outcome="failed"}`,
	}
	want := map[string]string{
		"mcpd_config_synchronized": "0", `mcpd_snapshot_items{kind="tool"}`: "0", `mcpd_snapshot_items{kind="limit"}`: "0",
		`mcpd_reloads_total{outcome="published"}`: "0", `mcpd_reloads_total{outcome="unchanged"}`: "0", `mcpd_reloads_total{outcome="failed"}`: "0",
	}
	wantSeries(t, s, "before anything is loaded", want, names...)
	load := func(text string) (revision string, err error) {
		tools["t.hcl"] = files("t.hcl", text)["t.hcl"]
		_, err = s.Load(t.Context())
		if at := s.Snapshot(); at != nil {
			revision = `mcpd_snapshot_info{revision="` + at.Revision() + `"}`
		}
		return revision, err
	}
	first, err := load(`tool "one" { run = "return 1" }`)
	if err != nil {
		t.Fatal(err)
	}
	now.Add(int64(90 * time.Second))
	want[first], want["mcpd_snapshot_age_seconds"], want["mcpd_config_synchronized"] = "1", "90", "1"
	want[`mcpd_snapshot_items{kind="tool"}`], want[`mcpd_reloads_total{outcome="published"}`] = "1", "1"
	wantSeries(t, s, "with one tool", want, names...)

	if _, err := load(`tool "one" {`); err == nil {
		t.Fatal("a broken file is loaded")
	}
	now.Add(int64(10 * time.Second))
	want["mcpd_snapshot_age_seconds"], want["mcpd_config_synchronized"], want[`mcpd_reloads_total{outcome="failed"}`] = "100", "0", "1"
	wantSeries(t, s, "while a file is broken", want, names...)

	mended, err := load(`
tool "one" { run = "return 1" }
tool "two" { run = "return 2" }
limit "slow" { rate = "1/h" }`)
	if err != nil {
		t.Fatal(err)
	}
	if mended == first {
		t.Fatal("other files have the same revision")
	}
	delete(want, first)
	want[mended], want["mcpd_snapshot_age_seconds"], want["mcpd_config_synchronized"] = "1", "0", "1"
	want[`mcpd_snapshot_items{kind="tool"}`], want[`mcpd_snapshot_items{kind="limit"}`], want[`mcpd_reloads_total{outcome="published"}`] = "2", "1", "2"
	wantSeries(t, s, "once it is mended", want, names...)
}

// The gauge counts running calls, and shows draining.
func TestMetrics_running(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := unloaded(t, engine.Options{Extensions: []engine.Extension{telemetry.New(telemetry.Options{})}})
		release := make(chan struct{})
		goTool(t, s, "waits", func(context.Context) (string, error) {
			<-release
			return "done", nil
		})
		if _, err := s.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		names := []string{"mcpd_calls_running", "mcpd_draining"}
		for range 3 {
			go s.Execute(t.Context(), toolCall("waits", `{}`))
		}
		synctest.Wait()
		wantSeries(t, s, "while three calls run", map[string]string{"mcpd_calls_running": "3", "mcpd_draining": "0"}, names...)
		drained := make(chan error)
		go func() { drained <- s.Drain(t.Context()) }()
		synctest.Wait()
		wantSeries(t, s, "while it drains", map[string]string{"mcpd_calls_running": "3", "mcpd_draining": "1"}, names...)
		close(release)
		if err := <-drained; err != nil {
			t.Fatal(err)
		}
		wantSeries(t, s, "once it is drained", map[string]string{"mcpd_calls_running": "0", "mcpd_draining": "1"}, names...)
	})
}

// A limit is counted by name, separately from policies.
func TestMetrics_limit(t *testing.T) {
	s := server(t, engine.Options{Extensions: []engine.Extension{telemetry.New(telemetry.Options{})}, Files: engine.Files{Tools: files("t.hcl", `
tool "one" { run = "return 1" }
tool "two" { run = "return 2" }
limit "slow" {
  tools = ["one"]
  rate  = "1/h"
}
limit "idle" { rate = "100/s" }
`)}})
	for range 3 {
		s.Execute(t.Context(), toolCall("one", `{}`))
	}
	s.Execute(t.Context(), toolCall("two", `{}`))
	wantSeries(t, s, "after two of three calls were too many", map[string]string{
		`mcpd_limit_refusals_total{limit="slow"}`: "2", `mcpd_limit_refusals_total{limit="idle"}`: "0", `mcpd_limit_refusals_total{limit="other"}`: "0",
		`mcpd_denials_total{policy="(from)"}`: "0", `mcpd_denials_total{policy="(result)"}`: "0", `mcpd_denials_total{policy="(approval)"}`: "0",
		`mcpd_denials_total{policy="other"}`:                                            "0",
		`mcpd_calls_total{kind="tool",name="one",outcome="ok",via="client"}`:            "1",
		`mcpd_calls_total{kind="tool",name="one",outcome="POLICY_DENIED",via="client"}`: "2",
		`mcpd_calls_total{kind="tool",name="two",outcome="ok",via="client"}`:            "1",
	}, "mcpd_limit_refusals_total{", "mcpd_denials_total{", "mcpd_calls_total{")
}

// Outcomes of calls are counted only for reports.
func TestOutcomes(t *testing.T) {
	outcomes := func(ok, invalid, notFound uint64) map[string]uint64 {
		return map[string]uint64{
			"ok": ok, "input_required": 0, "rehearsed": 0,
			"INVALID_INPUT": invalid, "TOOL_NOT_FOUND": notFound, "POLICY_DENIED": 0, "EXECUTION_ERROR": 0, "TIMEOUT": 0,
		}
	}
	for config, want := range map[string]map[string]uint64{
		`server {}`: outcomes(0, 0, 0),
		`report { url = "https://maker.example.com" }`: outcomes(2, 1, 3),
	} {
		s := server(t, engine.Options{Files: engine.Files{Config: files("mcpd.hcl", config), Tools: files("t.hcl", `tool "one" { run = "return 1" }`)}})
		s.Execute(t.Context(), toolCall("one", `{"made_up":1}`))
		for range 2 {
			s.Execute(t.Context(), toolCall("one", `{}`))
		}
		for range 3 {
			s.Execute(t.Context(), toolCall("none", `{}`))
		}
		if got := s.Inside().Outcomes(); !maps.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", config, got, want)
		}
	}
}

// executorWithStats is an executor with configurable worker statistics.
type executorWithStats struct {
	scripting.Executor
	workers scripting.Workers
}

func (s executorWithStats) Workers() scripting.Workers { return s.workers }

// The metrics include waiting calls.
func TestMetrics_workers(t *testing.T) {
	s := server(t, engine.Options{Extensions: []engine.Extension{telemetry.New(telemetry.Options{})}, Scripts: engine.Scripts{Executor: executorWithStats{scripting.Inline(), scripting.Workers{
		Processes: 1, Calls: 2, Computing: 3, Lost: 26, Overdue: 5, Memory: 6, Protocol: 7, Crashed: 8, Started: 9, Waiting: 10, Refused: 11,
	}}}})
	wantSeries(t, s, "of an executor with processes", map[string]string{
		"mcpd_worker_processes": "1", "mcpd_worker_calls": "2", "mcpd_worker_starts_total": "9",
		`mcpd_worker_deaths_total{cause="overdue"}`: "5", `mcpd_worker_deaths_total{cause="memory"}`: "6",
		`mcpd_worker_deaths_total{cause="protocol"}`: "7", `mcpd_worker_deaths_total{cause="crashed"}`: "8",
		"mcpd_admission_queue_calls": "10", "mcpd_admission_refusals_total": "11",
	}, "mcpd_worker_processes", "mcpd_worker_calls", "mcpd_worker_starts_total", "mcpd_worker_deaths_total{", "mcpd_admission_queue_calls", "mcpd_admission_refusals_total")
}
