package telemetry

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/mcpd/mcpd/internal/base/observe"
)

// Metrics implement [observe.Metrics]. Names that no snapshot has are
// counted under the name "" (calls) or "other" (policies and limits), and those
// beyond the first 2,000 under "other".
type Metrics struct {
	// fixed at creation
	now     func() time.Time
	words   vocabulary
	vectors *vectors
	hosts   []*hosted  // by operation
	nowhere []*counted // by kind: of names that are not known
	rest    []*counted // by kind: of names for which there is no room
	denied  *ruled     // of names that are not known
	limited *ruled
	loaded  []prometheus.Counter // by outcome

	mu    sync.Mutex // held by who replaces what follows
	named atomic.Pointer[named]
	stats atomic.Pointer[func() observe.Stats]
}

// named is what the snapshot names, and the recent ones did. It is immutable.
type named struct {
	items            names[observe.Item, *counted]
	policies, limits names[string, *ruled]
	// crowd are the items of the snapshot for which there is no room.
	crowd map[observe.Item]bool
}

func newMetrics(now func() time.Time) *Metrics {
	m := &Metrics{now: now, words: newVocabulary(), vectors: newVectors()}
	for _, kind := range m.words.kinds.list {
		m.nowhere = append(m.nowhere, m.vectors.shared(&m.words, observe.Item{Kind: kind}))
		m.rest = append(m.rest, m.vectors.shared(&m.words, observe.Item{Kind: kind, Name: other}))
	}
	for _, operation := range m.words.operations.list {
		m.hosts = append(m.hosts, m.vectors.host(&m.words, operation))
	}
	for _, outcome := range m.words.loads.list {
		m.loaded = append(m.loaded, m.vectors.loads.WithLabelValues(outcome))
	}
	m.denied, m.limited = newRuled(m.vectors.denials, other), newRuled(m.vectors.refusals, other)
	m.denied.shared, m.limited.shared = true, true
	m.named.Store(&named{})
	return m
}

// register makes everything part of a registry.
func (m *Metrics) register(r *prometheus.Registry, version string, spans *queue) {
	v := m.vectors
	r.MustRegister(v.calls, v.durations, v.denials, v.refusals, v.answers, v.hosts, v.loads, v.loadTook,
		newFetched(m), newBuildInfo(version), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if spans != nil {
		r.MustRegister(newQueued(spans))
	}
}

// CallEnded counts a call of an item by its outcome: ok, input_required or one of
// the five codes. It neither waits nor, in the steady state, allocates.
func (m *Metrics) CallEnded(kind, name, via, outcome string, took time.Duration) {
	n := m.named.Load()
	item, known := n.items.known[observe.Item{Kind: kind, Name: name}]
	if !known {
		from := m.nowhere
		if n.crowd[observe.Item{Kind: kind, Name: name}] {
			from = m.rest
		}
		item = from[m.words.kinds.of(kind)]
	}
	item.ended(via, outcome, took)
}

// Denied counts a call that a policy denied.
func (m *Metrics) Denied(policy string) {
	count(m.named.Load().policies, policy, m.denied)
}

// Limited counts a call that a limit was against.
func (m *Metrics) Limited(limit string) {
	count(m.named.Load().limits, limit, m.limited)
}

func count(n names[string, *ruled], name string, rest *ruled) {
	if r, known := n.known[name]; known {
		rest = r
	}
	rest.counter.Inc()
}

// HostCallEnded counts an operation of a script, such as "fs.readText", by its
// outcome: ok, suspended, or the code of the error.
func (m *Metrics) HostCallEnded(operation, outcome string, took time.Duration) {
	kind, _, _ := strings.Cut(operation, ".")
	m.hosts[m.words.operations.of(kind)].ended(outcome, took)
}

// Loaded counts a load of the files by what came of it: published, unchanged or
// failed.
func (m *Metrics) Loaded(outcome string, took time.Duration) {
	m.loaded[m.words.loads.of(outcome)].Inc()
	m.vectors.loadTook.Observe(took.Seconds())
}

// Collect has the rest fetched from a function whenever somebody looks. It may be
// called by several goroutines at once, and must not wait for calls.
func (m *Metrics) Collect(from func() observe.Stats) { m.stats.Store(&from) }
