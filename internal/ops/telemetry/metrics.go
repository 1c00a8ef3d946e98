package telemetry

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/mcpd/mcpd/internal/base/observe"
)

// Metrics implements [observe.Metrics]. Names that no snapshot has are itemSeries as ""
// (calls) or "other" (policies and limits). Names beyond the first 2,000 are counted as
// "other".
type Metrics struct {
	// fixed at creation
	now         func() time.Time
	words       labelSets
	vectors     *vectors
	hosts       []*hostCallSeries // by operation
	unknownItem []*itemSeries     // by kind, for unknown names
	overflow    []*itemSeries     // by kind, for names beyond the limit
	denied      *ruleSeries       // for unknown names
	limited     *ruleSeries
	loaded      []prometheus.Counter // by outcome

	mu    sync.Mutex // held while the following fields are replaced
	named atomic.Pointer[trackedNames]
	stats atomic.Pointer[func() observe.Stats]
}

// trackedNames holds the names of the snapshot and of recent snapshots. It is immutable.
type trackedNames struct {
	items            nameSet[observe.Item, *itemSeries]
	policies, limits nameSet[string, *ruleSeries]
	// overflow holds the items of the snapshot beyond the limit.
	overflow map[observe.Item]bool
	// of are the names that were published last.
	of observe.Catalog
}

func newMetrics(now func() time.Time) *Metrics {
	m := &Metrics{now: now, words: newLabelSets(), vectors: newVectors()}
	for _, kind := range m.words.kinds.list {
		m.unknownItem = append(m.unknownItem, m.vectors.shared(&m.words, observe.Item{Kind: kind}))
		m.overflow = append(m.overflow, m.vectors.shared(&m.words, observe.Item{Kind: kind, Name: other}))
	}
	for _, operation := range m.words.operations.list {
		m.hosts = append(m.hosts, m.vectors.host(&m.words, operation))
	}
	for _, outcome := range m.words.loads.list {
		m.loaded = append(m.loaded, m.vectors.loads.WithLabelValues(outcome))
	}
	for _, outcome := range []string{observe.UncountedAllowed, observe.UncountedDenied} {
		m.vectors.uncounted.WithLabelValues(outcome)
	}
	for _, outcome := range []string{observe.ReportDelivered, observe.ReportFailed} {
		m.vectors.reports.WithLabelValues(outcome)
	}
	m.denied, m.limited = newRuleSeries(m.vectors.denials, other), newRuleSeries(m.vectors.refusals, other)
	m.denied.shared, m.limited.shared = true, true
	m.named.Store(&trackedNames{})
	return m
}

func (m *Metrics) register(r *prometheus.Registry, version string, spans *batchProcessor) {
	v := m.vectors
	r.MustRegister(v.calls, v.durations, v.denials, v.refusals, v.uncounted, v.reports, v.forwarded, v.answers, v.hosts, v.loads, v.loadTook,
		newStatsCollector(m), newBuildInfo(version), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if spans != nil {
		r.MustRegister(newQueueCollector(spans))
	}
}

// CallEnded counts a call of an item by its outcome: ok, input_required or one of the
// five error codes. It does not block and, in the steady state, does not allocate.
func (m *Metrics) CallEnded(kind, name, via, outcome string, took time.Duration) {
	n := m.named.Load()
	item, known := n.items.known[observe.Item{Kind: kind, Name: name}]
	if !known {
		from := m.unknownItem
		if n.overflow[observe.Item{Kind: kind, Name: name}] {
			from = m.overflow
		}
		item = from[m.words.kinds.of(kind)]
	}
	item.ended(via, outcome, took)
}

// Denied counts a call that a policy denied.
func (m *Metrics) Denied(policy string) {
	count(m.named.Load().policies, policy, m.denied)
}

// Limited counts a call that a rate limit rejected.
func (m *Metrics) Limited(limit string) {
	count(m.named.Load().limits, limit, m.limited)
}

// LimitStoreFailed counts a call that the shared limit store could not count.
func (m *Metrics) LimitStoreFailed(outcome string) {
	m.vectors.uncounted.WithLabelValues(outcome).Inc()
}

// Reported counts a report of the state of the server.
func (m *Metrics) Reported(outcome string) { m.vectors.reports.WithLabelValues(outcome).Inc() }

// Forwarded counts a request for a session of another replica, by its outcome. A server that shares no
// sessions has no series.
func (m *Metrics) Forwarded(outcome string) {
	m.vectors.forwarded.WithLabelValues(outcome).Inc()
}

func count(n nameSet[string, *ruleSeries], name string, rest *ruleSeries) {
	if r, known := n.known[name]; known {
		rest = r
	}
	rest.counter.Inc()
}

// HostCallEnded counts a host call of a script, such as "fs.readText", by its outcome:
// ok, suspended or the error code.
func (m *Metrics) HostCallEnded(operation, outcome string, took time.Duration) {
	kind, _, _ := strings.Cut(operation, ".")
	m.hosts[m.words.operations.of(kind)].ended(outcome, took)
}

// Loaded counts a load of the files by its outcome: published, unchanged or failed.
func (m *Metrics) Loaded(outcome string, took time.Duration) {
	m.loaded[m.words.loads.of(outcome)].Inc()
	m.vectors.loadTook.Observe(took.Seconds())
}

// Collect sets the function that returns the statistics at each scrape. It must be safe
// for concurrent use and must not wait for calls.
func (m *Metrics) Collect(from func() observe.Stats) { m.stats.Store(&from) }

// Publish sets the names of a new snapshot. Series of removed names stay for ten
// minutes, for running calls and infrequent scrapes.
func (m *Metrics) Publish(c observe.Catalog) {
	m.mu.Lock()
	defer m.mu.Unlock()
	last := &m.named.Load().of
	if slices.Equal(c.Items, last.Items) && slices.Equal(c.Policies, last.Policies) && slices.Equal(c.Limits, last.Limits) {
		return
	}
	m.replace(c, m.now())
}

// replace is Publish; the caller holds mu.
func (m *Metrics) replace(c observe.Catalog, now time.Time) {
	was := m.named.Load()
	next := &trackedNames{overflow: map[observe.Item]bool{}, of: c}
	var items []*itemSeries
	var rules, more []*ruleSeries
	next.items, items = was.items.with(c.Items, now, m.begin)
	next.policies, rules = was.policies.with(c.Policies, now, func(name string) *ruleSeries { return m.rule(m.denied, name) })
	next.limits, more = was.limits.with(c.Limits, now, func(name string) *ruleSeries { return m.rule(m.limited, name) })
	for _, i := range c.Items {
		if _, known := next.items.known[i]; !known {
			next.overflow[i] = true
		}
	}
	m.named.Store(next)
	for _, i := range items {
		i.drop()
	}
	for _, r := range append(rules, more...) {
		r.drop()
	}
}

// begin returns the series of a new item. An item with the name of the overflow series
// shares it.
func (m *Metrics) begin(i observe.Item) *itemSeries {
	kind := m.words.kinds.of(i.Kind)
	switch i.Name {
	case "":
		return m.unknownItem[kind]
	case other:
		return m.overflow[kind]
	}
	return m.vectors.item(&m.words, observe.Item{Kind: m.words.kinds.list[kind], Name: label(i.Name)})
}

// rule returns the series of a new policy or limit. One with the name of the overflow
// series shares it.
func (m *Metrics) rule(rest *ruleSeries, name string) *ruleSeries {
	if name == rest.name {
		return rest
	}
	return newRuleSeries(rest.counts, label(name))
}

// expire drops names that were removed long enough ago.
func (m *Metrics) expire() {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, now := m.named.Load(), m.now()
	if !n.items.overdue(now) && !n.policies.overdue(now) && !n.limits.overdue(now) {
		return
	}
	c := observe.Catalog{Items: n.items.present(), Policies: n.policies.present(), Limits: n.limits.present()}
	for i := range n.overflow {
		c.Items = append(c.Items, i)
	}
	m.replace(c, now)
}

// Retention of removed names, and the maximum number of names.
const (
	removedRetention = 10 * time.Minute
	maxNames         = 2000
)

// nameSet maps names to series. It is immutable: each snapshot and each expiry creates a
// new one.
type nameSet[Name comparable, Series any] struct {
	known map[Name]Series
	gone  map[Name]time.Time // time of removal from the snapshot
}

// with returns the names for a snapshot. Beyond the limit it drops removed names first,
// then the last of the wanted ones.
func (n nameSet[Name, Series]) with(wanted []Name, now time.Time, begin func(Name) Series) (next nameSet[Name, Series], dropped []Series) {
	next = nameSet[Name, Series]{known: make(map[Name]Series, len(wanted)), gone: map[Name]time.Time{}}
	for _, name := range wanted {
		if _, twice := next.known[name]; twice || len(next.known) == maxNames {
			continue
		}
		series, known := n.known[name]
		if !known {
			series = begin(name)
		}
		next.known[name] = series
	}
	for _, name := range n.latest() {
		if _, wanted := next.known[name]; wanted {
			continue
		}
		since, gone := n.gone[name]
		if !gone {
			since = now
		}
		if len(next.known) == maxNames || now.Sub(since) >= removedRetention {
			dropped = append(dropped, n.known[name])
			continue
		}
		next.known[name], next.gone[name] = n.known[name], since
	}
	return next, dropped
}

// latest returns the names: present ones first, then by latest removal.
func (n nameSet[Name, Series]) latest() []Name {
	all := make([]Name, 0, len(n.known))
	for name := range n.known {
		if _, gone := n.gone[name]; !gone {
			all = append(all, name)
		}
	}
	here := len(all)
	for name := range n.gone {
		all = append(all, name)
	}
	slices.SortFunc(all[here:], func(a, b Name) int { return n.gone[b].Compare(n.gone[a]) })
	return all
}

// overdue reports whether there are names to expire.
func (n nameSet[Name, Series]) overdue(now time.Time) bool {
	for _, since := range n.gone {
		if now.Sub(since) >= removedRetention {
			return true
		}
	}
	return false
}

// present returns the names of the snapshot, unordered.
func (n nameSet[Name, Series]) present() []Name {
	var all []Name
	for name := range n.known {
		if _, gone := n.gone[name]; !gone {
			all = append(all, name)
		}
	}
	return all
}
