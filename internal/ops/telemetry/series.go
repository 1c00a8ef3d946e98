package telemetry

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcpd/mcpd/internal/base/observe"
)

// itemSeries holds the series of one item. A series is created on first use.
type itemSeries struct {
	// fixed at creation
	vectors *vectors
	words   *labelSets
	labels  observe.Item
	shared  bool // it is an overflow series

	took   atomic.Pointer[prometheus.Observer]  // set before any of the series
	series []atomic.Pointer[prometheus.Counter] // by via and outcome

	mu      sync.Mutex
	dropped bool // guarded by mu: the series were removed and must not be recreated
}

func (v *vectors) item(w *labelSets, labels observe.Item) *itemSeries {
	return &itemSeries{vectors: v, words: w, labels: labels, series: make([]atomic.Pointer[prometheus.Counter], len(w.vias.list)*len(w.outcomes.list))}
}

func (v *vectors) shared(w *labelSets, labels observe.Item) *itemSeries {
	c := v.item(w, labels)
	c.shared = true
	return c
}

// ended counts a call. It allocates once for each via and outcome.
func (s *itemSeries) ended(via, outcome string, took time.Duration) {
	v, o := s.words.vias.of(via), s.words.outcomes.of(outcome)
	counter := s.series[v*len(s.words.outcomes.list)+o].Load()
	if counter == nil {
		if counter = s.begin(v, o); counter == nil {
			return
		}
	}
	(*counter).Inc()
	(*s.took.Load()).Observe(took.Seconds())
}

// begin creates a series, or returns nil if the series of the item were removed.
func (s *itemSeries) begin(via, outcome int) *prometheus.Counter {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dropped {
		return nil
	}
	if s.took.Load() == nil {
		took := s.vectors.durations.WithLabelValues(s.labels.Kind, s.labels.Name)
		s.took.Store(&took)
	}
	counter := s.vectors.calls.WithLabelValues(s.labels.Kind, s.labels.Name, s.words.outcomes.list[outcome], s.words.vias.list[via])
	s.series[via*len(s.words.outcomes.list)+outcome].Store(&counter)
	return &counter
}

// drop removes the series. A call that ends later is not itemSeries.
func (s *itemSeries) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shared {
		return
	}
	s.dropped = true
	labels := prometheus.Labels{"kind": s.labels.Kind, "name": s.labels.Name}
	s.vectors.calls.DeletePartialMatch(labels)
	s.vectors.durations.Delete(labels)
}

// ruleSeries holds the series of a policy or a limit.
type ruleSeries struct {
	counts  *prometheus.CounterVec
	name    string
	shared  bool // as in itemSeries
	counter prometheus.Counter
}

func newRuleSeries(counts *prometheus.CounterVec, name string) *ruleSeries {
	return &ruleSeries{counts: counts, name: name, counter: counts.WithLabelValues(name)}
}

func (r *ruleSeries) drop() {
	if !r.shared {
		r.counts.DeleteLabelValues(r.name)
	}
}

// label returns a name as a valid UTF-8 label.
func label(name string) string { return strings.ToValidUTF8(name, "\uFFFD") }

// hostCallSeries holds the series of one kind of host call. A series is created on first use.
type hostCallSeries struct {
	// fixed at creation
	vectors   *vectors
	words     *labelSets
	operation string

	took   atomic.Pointer[prometheus.Observer]  // set before any of the series
	series []atomic.Pointer[prometheus.Counter] // by outcome
}

func (v *vectors) host(w *labelSets, operation string) *hostCallSeries {
	return &hostCallSeries{vectors: v, words: w, operation: operation, series: make([]atomic.Pointer[prometheus.Counter], len(w.answers.list))}
}

// ended counts a host call. It allocates once for each outcome.
func (h *hostCallSeries) ended(outcome string, took time.Duration) {
	answer := h.words.answers.of(outcome)
	counter := h.series[answer].Load()
	if counter == nil {
		counter = h.begin(answer)
	}
	(*counter).Inc()
	(*h.took.Load()).Observe(took.Seconds())
}

// begin creates a series. Concurrent calls create the same one.
func (h *hostCallSeries) begin(answer int) *prometheus.Counter {
	took := h.vectors.hosts.WithLabelValues(h.operation)
	h.took.Store(&took)
	counter := h.vectors.answers.WithLabelValues(h.operation, h.words.answers.list[answer])
	h.series[answer].Store(&counter)
	return &counter
}

// vectors are the metrics with a label for names of the snapshot.
type vectors struct {
	calls, denials, refusals, answers *prometheus.CounterVec
	durations, hosts                  *prometheus.HistogramVec
	loads, uncounted                  *prometheus.CounterVec
	reports, forwarded                *prometheus.CounterVec
	loadTook                          prometheus.Histogram
}

// callBuckets range from the duration of a trivial call to the longest timeout.
func callBuckets() []float64 {
	return []float64{50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 100e-3, 250e-3, 500e-3, 1, 2.5, 5, 10, 30, 60}
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "mcpd", Name: name, Help: help}, labels)
}

func newVectors() *vectors {
	histogram := func(name, help string) prometheus.HistogramOpts {
		return prometheus.HistogramOpts{Namespace: "mcpd", Name: name, Help: help, Buckets: callBuckets()}
	}
	return &vectors{
		calls:     counters("calls_total", "Calls that have ended.", "kind", "name", "outcome", "via"),
		durations: prometheus.NewHistogramVec(histogram("call_duration_seconds", "Duration of calls, for all outcomes."), []string{"kind", "name"}),
		denials:   counters("denials_total", "Calls that a policy denied.", "policy"),
		refusals:  counters("limit_refusals_total", "Calls that a limit rejected.", "limit"),
		forwarded: counters("forwarded_requests_total", "Requests for sessions of other replicas, by outcome.", "outcome"),
		uncounted: counters("limit_store_failures_total", "Calls that the shared limit store could not count, by outcome.", "outcome"),
		reports:   counters("reports_total", "Reports of the state of the server, by outcome.", "outcome"),
		answers:   counters("host_calls_total", "Host calls of scripts.", "operation", "outcome"),
		hosts:     prometheus.NewHistogramVec(histogram("host_call_duration_seconds", "Duration of host calls of scripts."), []string{"operation"}),
		loads:     counters("reloads_total", "Loads of the files, including the first, by outcome.", "outcome"),
		loadTook: prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: "mcpd", Name: "reload_duration_seconds", Help: "Duration of loads of the files, for all outcomes.",
			Buckets: []float64{1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 100e-3, 250e-3, 500e-3, 1, 2.5, 5, 10, 30, 60}}),
	}
}

// other is the label value for everything without its own value.
const other = "other"

// labelValues are the values of a label. The last one is "other".
type labelValues struct {
	list  []string
	index map[string]int
}

func newLabelValues(list ...string) labelValues {
	w := labelValues{list: append(slices.Clone(list), other), index: make(map[string]int, len(list))}
	for i, word := range list {
		w.index[word] = i
	}
	return w
}

// of returns the index of a word, or of "other" if it is unknown.
func (v labelValues) of(word string) int {
	if i, known := v.index[word]; known {
		return i
	}
	return len(v.list) - 1
}

// labelSets holds the words of all labels with a fixed set of values.
type labelSets struct {
	kinds, vias, outcomes, loads, operations, answers, transports labelValues
}

func newLabelSets() labelSets {
	codes := []string{"INVALID_INPUT", "TOOL_NOT_FOUND", "POLICY_DENIED", "EXECUTION_ERROR", "TIMEOUT"}
	// The outcome of a host call is its own code, or the code of the call that it
	// makes.
	answers := append([]string{"ok", "NOT_FOUND", "OUTSIDE_ROOT", "NOT_GRANTED", "TOO_LARGE", "DENIED", "UNAVAILABLE", "INVALID", "CAPABILITY", "CONSENT", "ASKS", "suspended"}, codes...)
	return labelSets{
		kinds:      newLabelValues("tool", "resource", "prompt", "completion"),
		vias:       newLabelValues("client", "tool", "code", "test"),
		outcomes:   newLabelValues(append([]string{"ok", "input_required", "rehearsed"}, codes...)...),
		loads:      newLabelValues("published", "unchanged", "failed"),
		operations: newLabelValues("http", "fs", "exec", "sql", "kv", "ask", "call", "env", "secret", "module", "log", "console", "progress", "disconnect"),
		answers:    newLabelValues(answers...),
		transports: newLabelValues("streamable", "sse", "websocket", "stdio", "rest"),
	}
}
