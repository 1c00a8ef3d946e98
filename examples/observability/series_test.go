package observability

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpd/mcpd/internal/base/observe"
	"github.com/mcpd/mcpd/internal/ops/telemetry"
)

// series maps each metric to the labels of its series.
type series map[string][]map[string]string

// ofTarget are the labels that Prometheus adds to scraped series.
var ofTarget = []string{"instance", "job"}

// fetched returns the metrics of a server after one event of each kind.
func fetched(t *testing.T) string {
	t.Helper()
	tel, err := telemetry.New(telemetry.Options{Version: "1", LookupEnv: func(name string) (string, bool) { return "console", name == "OTEL_TRACES_EXPORTER" }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tel.Close(t.Context()) }) // nothing to send
	m := tel.Metrics()
	m.Publish(observe.Catalog{Items: []observe.Item{{Kind: "tool", Name: "refund"}}, Policies: []string{"small"}, Limits: []string{"per_agent"}})
	for _, outcome := range []string{"ok", "input_required", "INVALID_INPUT", "TOOL_NOT_FOUND", "POLICY_DENIED", "EXECUTION_ERROR", "TIMEOUT"} {
		m.CallEnded("tool", "refund", "client", outcome, time.Millisecond)
	}
	for _, outcome := range []string{"ok", "suspended", "UNAVAILABLE", "TIMEOUT"} {
		m.HostCallEnded("http.request", outcome, time.Millisecond)
	}
	m.Denied("small")
	m.Limited("per_agent")
	m.LimitStoreFailed("denied")
	m.Reported("failed")
	m.Forwarded("served")
	m.Loaded("published", time.Millisecond)
	m.Collect(func() observe.Stats {
		return observe.Stats{Snapshot: observe.SnapshotStats{Revision: "abc", Since: time.Now()}}
	})
	w := httptest.NewRecorder()
	tel.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return w.Body.String()
}

// seen returns the series of such a server.
func seen(t *testing.T) series {
	t.Helper()
	all := series{"up": {{}}}
	for line := range strings.Lines(fetched(t)) {
		if name, labels, ok := parseSeries(line); ok {
			all[name] = append(all[name], labels)
		}
	}
	return all
}

var (
	seriesForm = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? \S+$`)
	labelForm  = regexp.MustCompile(`([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"`)
)

// parseSeries parses a line of the text format.
func parseSeries(line string) (metric string, labels map[string]string, ok bool) {
	found := seriesForm.FindStringSubmatch(strings.TrimSpace(line))
	if found == nil {
		return "", nil, false
	}
	labels = map[string]string{}
	for _, l := range labelForm.FindAllStringSubmatch(found[2], -1) {
		labels[l[1]] = l[2]
	}
	return found[1], labels, true
}

// check returns an error for each missing metric or label in a query.
func (all series) check(q query) (wrong []string) {
	if len(q.selectors) == 0 {
		wrong = append(wrong, "asks for no metric")
	}
	for _, s := range q.selectors {
		if len(all[s.metric]) == 0 {
			wrong = append(wrong, "there is no metric "+s.metric)
			continue
		}
		for _, m := range s.matchers {
			wrong = append(wrong, all.checkMatcher(s.metric, m)...)
		}
	}
	for _, g := range q.groupings {
		for _, s := range g.of {
			for _, label := range g.labels {
				if !all.has(s.metric, label) {
					wrong = append(wrong, s.metric+" has no label "+label)
				}
			}
		}
	}
	return wrong
}

// checkMatcher requires that some series has the matched value. For a list of words it
// requires each word. The values of Grafana variables are unknown here.
func (all series) checkMatcher(metric string, m matcher) (wrong []string) {
	if !all.has(metric, m.label) {
		return []string{metric + " has no label " + m.label}
	}
	if slices.Contains(ofTarget, m.label) || strings.Contains(m.value, "$") {
		return nil
	}
	for value := range strings.SplitSeq(m.value, "|") {
		if !slices.ContainsFunc(all[metric], func(labels map[string]string) bool { return labels[m.label] == value }) {
			wrong = append(wrong, fmt.Sprintf("%s has no %s %q", metric, m.label, value))
		}
	}
	return wrong
}

func (all series) has(metric, label string) bool {
	return slices.Contains(ofTarget, label) || slices.ContainsFunc(all[metric], func(labels map[string]string) bool {
		_, ok := labels[label]
		return ok
	})
}

// templates matches the labels in a text of Grafana or of an alert.
var templates = regexp.MustCompile(`\{\{ ?(?:\$labels\.)?([a-zA-Z_]+) ?\}\}`)

// checkShown requires that the result of an expression has the labels of a text.
func (all series) checkShown(q query, text string) (wrong []string) {
	for _, found := range templates.FindAllStringSubmatch(text, -1) {
		label, left := found[1], len(q.groupings) == 0 && all.has(q.selectors[0].metric, found[1])
		for _, g := range q.groupings {
			left = left || slices.Contains(g.labels, label)
		}
		if !left {
			wrong = append(wrong, "shows the label "+label+", which is not left")
		}
	}
	return wrong
}

// examine parses and checks an expression and the texts that show its result.
func (all series) examine(t *testing.T, where, expression string, shown ...string) {
	t.Helper()
	q, err := parseQuery(expression)
	if err != nil {
		t.Errorf("%s: %v", where, err)
		return
	}
	wrong := all.check(q)
	for _, text := range shown {
		wrong = append(wrong, all.checkShown(q, text)...)
	}
	for _, w := range wrong {
		t.Errorf("%s: %s: %s", where, expression, w)
	}
}
