package telemetry_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcpd/mcpd/internal/base/observe"
	"github.com/mcpd/mcpd/internal/ops/telemetry"
)

func TestMetrics_removedTool(t *testing.T) {
	c := newClock()
	tel := start(t, telemetry.Options{Now: c.time})
	m := tel.Metrics()
	publish := func(names ...string) {
		var next observe.Catalog
		for _, name := range names {
			next.Items = append(next.Items, observe.Item{Kind: "tool", Name: name})
			next.Policies, next.Limits = append(next.Policies, name), append(next.Limits, name)
		}
		m.Publish(next)
	}
	call := func() {
		m.CallEnded("tool", "gone", "client", "ok", time.Millisecond)
		m.Denied("gone")
		m.Limited("gone")
	}
	want := func(when string, named bool) {
		t.Helper()
		got := scrape(t, tel)
		series := 0
		for name := range got {
			if strings.Contains(name, `"gone"`) {
				series++
			}
		}
		// A counter for calls, two for the rules, and the histogram with its buckets.
		if has := series > 3; has != named || !named && series != 0 {
			t.Errorf("%s: %d series", when, series)
		}
	}
	publish("kept", "gone")
	call()
	want("while it is there", true)
	publish("kept")
	call() // a call on the previous snapshot
	c.now = c.now.Add(9 * time.Minute)
	want("soon after", true)
	publish("kept", "gone")
	publish("kept")
	c.now = c.now.Add(9 * time.Minute)
	want("when it has come back meanwhile", true)
	c.now = c.now.Add(time.Minute)
	want("a while after", false)
	call()
	want("for a call that ends late", false)
	if got := scrape(t, tel)[`mcpd_calls_total{kind="tool",name="",outcome="ok",via="client"}`]; got != "1" {
		t.Errorf("%s calls of no tool counted, want 1", got)
	}
	publish("kept", "gone")
	call()
	want("when it is back", true)
}

func TestMetrics_maxSeries(t *testing.T) {
	tel := start(t, telemetry.Options{})
	m := tel.Metrics()
	for round := range 5 {
		var next observe.Catalog
		for i := range 3000 {
			next.Items = append(next.Items, observe.Item{Kind: "resource", Name: fmt.Sprintf("r%d_%d", round, i)})
		}
		m.Publish(next)
		for _, i := range next.Items {
			m.CallEnded(i.Kind, i.Name, "client", "ok", time.Millisecond)
		}
	}
	for i := range 10_000 {
		m.CallEnded("tool", fmt.Sprint("made up ", i), fmt.Sprint(i), fmt.Sprint(i), time.Millisecond)
		m.HostCallEnded(fmt.Sprint(i), fmt.Sprint(i), time.Millisecond)
		m.Denied(fmt.Sprint(i))
	}
	got := only(scrape(t, tel), "mcpd_calls_total", "mcpd_denials_total", "mcpd_host_calls_total")
	if len(got) > 2000+10 {
		t.Errorf("%d series", len(got))
	}
	if n := got[`mcpd_calls_total{kind="resource",name="other",outcome="ok",via="client"}`]; n != "5000" {
		t.Errorf("%s calls counted as other, want 5000", n)
	}
}

// Items with the name of an overflow series share it.
func TestMetrics_toolNamedOther(t *testing.T) {
	c := newClock()
	tel := start(t, telemetry.Options{Now: c.time})
	m := tel.Metrics()
	for range 2 {
		m.Publish(observe.Catalog{Items: []observe.Item{{Kind: "tool", Name: "other"}}, Policies: []string{"other"}})
		m.CallEnded("tool", "other", "client", "ok", time.Millisecond)
		m.Denied("other")
		m.Publish(observe.Catalog{})
		c.now = c.now.Add(time.Hour)
		scrape(t, tel)
	}
	got := scrape(t, tel)
	if got[`mcpd_calls_total{kind="tool",name="other",outcome="ok",via="client"}`] != "2" || got[`mcpd_denials_total{policy="other"}`] != "2" {
		t.Errorf("%v", only(got, "mcpd_calls", "mcpd_denials"))
	}
}
