package telemetry

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcpd/mcpd/internal/base/observe"
)

// A call that looked up its item before the removal may end later with a new outcome.
// Its series would never be removed.
func TestMetrics_callOfRemovedItem(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	m := newMetrics(func() time.Time { return now })
	item := observe.Item{Kind: "tool", Name: "gone"}
	m.Publish(observe.Catalog{Items: []observe.Item{item}})
	m.CallEnded(item.Kind, item.Name, "client", "ok", time.Millisecond)
	held := m.named.Load().items.known[item]
	m.Publish(observe.Catalog{})
	now = now.Add(removedRetention)
	m.expire()
	held.ended("client", "TIMEOUT", time.Millisecond)
	held.ended("client", "ok", time.Millisecond)
	for _, c := range []prometheus.Collector{m.vectors.calls, m.vectors.durations} {
		series := make(chan prometheus.Metric, 10)
		c.Collect(series)
		if n := len(series); n != 0 {
			t.Errorf("%d series remain", n)
		}
	}
}
