package telemetry

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcpd/mcpd/internal/base/observe"
)

// statsCollector collects [observe.Stats] at each scrape.
type statsCollector struct {
	// fixed at creation
	metrics               *Metrics
	info, age, items      *prometheus.Desc
	deaths                *prometheus.Desc
	replica, heartbeat    *prometheus.Desc
	sessions, connections *prometheus.Desc
	plain                 []measure
}

// measure is a metric without labels.
type measure struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(observe.Stats) float64
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("mcpd_"+name, help, labels, nil)
}

func newStatsCollector(m *Metrics) *statsCollector {
	gauge := func(name, help string, value func(observe.Stats) float64) measure {
		return measure{describe(name, help), prometheus.GaugeValue, value}
	}
	counter := func(name, help string, value func(observe.Stats) float64) measure {
		return measure{describe(name, help), prometheus.CounterValue, value}
	}
	return &statsCollector{
		metrics:     m,
		info:        describe("snapshot_info", "The active snapshot: always 1, with its revision.", "revision"),
		age:         describe("snapshot_age_seconds", "Age of the snapshot."),
		items:       describe("snapshot_items", "Items in the snapshot, by kind.", "kind"),
		deaths:      describe("worker_deaths_total", "Worker processes that were killed, or crashed, by cause.", "cause"),
		replica:     describe("replica_info", "The id of this server in the state database of its fleet: always 1.", "replica"),
		heartbeat:   describe("replica_heartbeat_age_seconds", "Time since the last heartbeat that reached the state database."),
		sessions:    describe("sessions", "Open sessions, by transport.", "transport"),
		connections: describe("connections", "Open connections, by transport.", "transport"),
		plain: []measure{
			gauge("config_synchronized", "1 if the snapshot matches the files, 0 after a failed load.", func(s observe.Stats) float64 { return boolValue(s.Snapshot.Synchronized) }),
			gauge("calls_running", "Running calls.", func(s observe.Stats) float64 { return float64(s.Running) }),
			gauge("draining", "1 while the server rejects new calls.", func(s observe.Stats) float64 { return boolValue(s.Draining) }),
			gauge("audit_failing", "1 while the audit log cannot be written.", func(s observe.Stats) float64 { return boolValue(s.Unrecorded) }),
			counter("hook_failures_total", "Hook runs that failed or were canceled.", func(s observe.Stats) float64 { return float64(s.Hooks.Failures) }),
			counter("hook_waits_total", "Calls that waited because the hook queue was full.", func(s observe.Stats) float64 { return float64(s.Hooks.Waits) }),
			gauge("hook_queue_runs", "Hook runs that wait or run.", func(s observe.Stats) float64 { return float64(s.Hooks.Queued) }),
			gauge("worker_processes", "Running worker processes.", func(s observe.Stats) float64 { return float64(s.Workers.Processes) }),
			gauge("worker_calls", "Calls in worker processes.", func(s observe.Stats) float64 { return float64(s.Workers.Calls) }),
			counter("worker_starts_total", "Worker processes that were started.", func(s observe.Stats) float64 { return float64(s.Workers.Started) }),
			gauge("admission_queue_calls", "Calls that wait for admission.", func(s observe.Stats) float64 { return float64(s.Workers.Waiting) }),
			counter("admission_refusals_total", "Calls that admission rejected because they would have started too late.", func(s observe.Stats) float64 { return float64(s.Workers.Refused) }),
		},
	}
}

func (c *statsCollector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.info, c.age, c.items, c.deaths, c.replica, c.heartbeat, c.sessions, c.connections} {
		to <- d
	}
	for _, m := range c.plain {
		to <- m.desc
	}
}

func (c *statsCollector) Collect(to chan<- prometheus.Metric) {
	from := c.metrics.stats.Load()
	if from == nil {
		return
	}
	s := (*from)()
	for _, m := range c.plain {
		to <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value(s))
	}
	c.snapshot(to, s.Snapshot)
	for cause, n := range map[string]uint64{"overdue": s.Workers.Deaths.Overdue, "memory": s.Workers.Deaths.Memory, "protocol": s.Workers.Deaths.Protocol, "crashed": s.Workers.Deaths.Crashed} {
		to <- prometheus.MustNewConstMetric(c.deaths, prometheus.CounterValue, float64(n), cause)
	}
	if r := s.Replica; r.ID != "" {
		to <- prometheus.MustNewConstMetric(c.replica, prometheus.GaugeValue, 1, label(r.ID))
		to <- prometheus.MustNewConstMetric(c.heartbeat, prometheus.GaugeValue, r.HeartbeatAge.Seconds())
	}
	c.collectFronts(to, s.Fronts)
}

func (c *statsCollector) snapshot(to chan<- prometheus.Metric, s observe.SnapshotStats) {
	if !s.Since.IsZero() {
		to <- prometheus.MustNewConstMetric(c.info, prometheus.GaugeValue, 1, label(s.Revision))
		to <- prometheus.MustNewConstMetric(c.age, prometheus.GaugeValue, max(0, c.metrics.now().Sub(s.Since)).Seconds())
	}
	for kind, n := range map[string]int{"tool": s.Tools, "resource": s.Resources, "template": s.Templates, "prompt": s.Prompts, "policy": s.Policies, "limit": s.Limits, "hook": s.Hooks} {
		to <- prometheus.MustNewConstMetric(c.items, prometheus.GaugeValue, float64(n), kind)
	}
}

// collectFronts sums the values per transport, because a series must not occur twice.
func (c *statsCollector) collectFronts(to chan<- prometheus.Metric, fronts []observe.FrontStats) {
	words := c.metrics.words.transports
	sessions, connections := make([]int, len(words.list)), make([]int, len(words.list))
	for _, front := range fronts {
		i := words.of(front.Transport)
		sessions[i] += front.Sessions
		connections[i] += front.Connections
	}
	for i, transport := range words.list {
		to <- prometheus.MustNewConstMetric(c.sessions, prometheus.GaugeValue, float64(sessions[i]), transport)
		to <- prometheus.MustNewConstMetric(c.connections, prometheus.GaugeValue, float64(connections[i]), transport)
	}
}

func boolValue(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// queueCollector collects the counters of the span queue.
type queueCollector struct {
	queue          *batchProcessor
	spans, waiting *prometheus.Desc
}

func newQueueCollector(q *batchProcessor) *queueCollector {
	return &queueCollector{queue: q,
		spans:   describe("trace_spans_total", "Spans by outcome: sent, rejected by the collector, or dropped.", "outcome"),
		waiting: describe("trace_queue_spans", "Spans that wait to be sent.")}
}

func (q *queueCollector) Describe(to chan<- *prometheus.Desc) { to <- q.spans; to <- q.waiting }

func (q *queueCollector) Collect(to chan<- prometheus.Metric) {
	for outcome, n := range map[string]uint64{"sent": q.queue.exported.Load(), "refused": q.queue.refused.Load(), "dropped": q.queue.dropped.Load()} {
		to <- prometheus.MustNewConstMetric(q.spans, prometheus.CounterValue, float64(n), outcome)
	}
	to <- prometheus.MustNewConstMetric(q.waiting, prometheus.GaugeValue, float64(q.queue.waiting.Load()))
}

func newBuildInfo(version string) prometheus.Collector {
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "mcpd", Name: "build_info", Help: "The program: always 1, with its version and the Go version."}, []string{"version", "goversion"})
	info.WithLabelValues(label(version), runtime.Version()).Set(1)
	return info
}
