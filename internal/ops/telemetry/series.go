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

// counted holds the series of one item. Those that nobody has needed do not exist.
type counted struct {
	// fixed at creation
	vectors *vectors
	words   *vocabulary
	labels  observe.Item
	shared  bool // it counts what has no series of its own, and always will

	took   atomic.Pointer[prometheus.Observer]  // set before any of the series
	series []atomic.Pointer[prometheus.Counter] // by via and outcome

	mu      sync.Mutex
	dropped bool // guarded by mu: its series are gone, and must not come again
}

func (v *vectors) item(w *vocabulary, labels observe.Item) *counted {
	return &counted{vectors: v, words: w, labels: labels, series: make([]atomic.Pointer[prometheus.Counter], len(w.vias.list)*len(w.outcomes.list))}
}

func (v *vectors) shared(w *vocabulary, labels observe.Item) *counted {
	c := v.item(w, labels)
	c.shared = true
	return c
}

// ended counts a call. It allocates once for each via and outcome.
func (c *counted) ended(via, outcome string, took time.Duration) {
	v, o := c.words.vias.of(via), c.words.outcomes.of(outcome)
	counter := c.series[v*len(c.words.outcomes.list)+o].Load()
	if counter == nil {
		if counter = c.begin(v, o); counter == nil {
			return
		}
	}
	(*counter).Inc()
	(*c.took.Load()).Observe(took.Seconds())
}

// begin makes a series; nil when those of the item are gone.
func (c *counted) begin(via, outcome int) *prometheus.Counter {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dropped {
		return nil
	}
	if c.took.Load() == nil {
		took := c.vectors.durations.WithLabelValues(c.labels.Kind, c.labels.Name)
		c.took.Store(&took)
	}
	counter := c.vectors.calls.WithLabelValues(c.labels.Kind, c.labels.Name, c.words.outcomes.list[outcome], c.words.vias.list[via])
	c.series[via*len(c.words.outcomes.list)+outcome].Store(&counter)
	return &counter
}

// drop takes the series away. A call that ends meanwhile is not counted.
func (c *counted) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.shared {
		return
	}
	c.dropped = true
	labels := prometheus.Labels{"kind": c.labels.Kind, "name": c.labels.Name}
	c.vectors.calls.DeletePartialMatch(labels)
	c.vectors.durations.Delete(labels)
}

// ruled holds the one series of a policy or of a limit.
type ruled struct {
	counts  *prometheus.CounterVec
	name    string
	shared  bool // as that of counted
	counter prometheus.Counter
}

func newRuled(counts *prometheus.CounterVec, name string) *ruled {
	return &ruled{counts: counts, name: name, counter: counts.WithLabelValues(name)}
}

func (r *ruled) drop() {
	if !r.shared {
		r.counts.DeleteLabelValues(r.name)
	}
}

// label returns a name as a label has it, which must be UTF-8.
func label(name string) string { return strings.ToValidUTF8(name, "\uFFFD") }

// hosted holds the series of one kind of host call. Those that nobody has needed do
// not exist.
type hosted struct {
	// fixed at creation
	vectors   *vectors
	words     *vocabulary
	operation string

	took   atomic.Pointer[prometheus.Observer]  // set before any of the series
	series []atomic.Pointer[prometheus.Counter] // by answer
}

func (v *vectors) host(w *vocabulary, operation string) *hosted {
	return &hosted{vectors: v, words: w, operation: operation, series: make([]atomic.Pointer[prometheus.Counter], len(w.answers.list))}
}

// ended counts a host call. It allocates once for each outcome.
func (h *hosted) ended(outcome string, took time.Duration) {
	answer := h.words.answers.of(outcome)
	counter := h.series[answer].Load()
	if counter == nil {
		counter = h.begin(answer)
	}
	(*counter).Inc()
	(*h.took.Load()).Observe(took.Seconds())
}

// begin makes a series. Whoever does so at the same time makes the same one.
func (h *hosted) begin(answer int) *prometheus.Counter {
	took := h.vectors.hosts.WithLabelValues(h.operation)
	h.took.Store(&took)
	counter := h.vectors.answers.WithLabelValues(h.operation, h.words.answers.list[answer])
	h.series[answer].Store(&counter)
	return &counter
}

// vectors are the metrics whose series have names of the snapshot.
type vectors struct {
	calls, denials, refusals, answers *prometheus.CounterVec
	durations, hosts                  *prometheus.HistogramVec
	loads                             *prometheus.CounterVec
	loadTook                          prometheus.Histogram
}

// callBuckets reach from what a call costs that does nothing to the longest that
// anybody waits for.
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
		durations: prometheus.NewHistogramVec(histogram("call_duration_seconds", "How long calls took, whatever their outcome."), []string{"kind", "name"}),
		denials:   counters("denials_total", "Calls that a policy denied.", "policy"),
		refusals:  counters("limit_refusals_total", "Calls that a limit was against.", "limit"),
		answers:   counters("host_calls_total", "Operations that scripts asked of the server.", "operation", "outcome"),
		hosts:     prometheus.NewHistogramVec(histogram("host_call_duration_seconds", "How long operations took that scripts asked for."), []string{"operation"}),
		loads:     counters("reloads_total", "Loads of the files, the first one too, by what came of them.", "outcome"),
		loadTook: prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: "mcpd", Name: "reload_duration_seconds", Help: "How long it took to load the files, whatever came of it.",
			Buckets: []float64{1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 100e-3, 250e-3, 500e-3, 1, 2.5, 5, 10, 30, 60}}),
	}
}

// other stands for all that a label does not name.
const other = "other"

// words are the values that a label may have. The last is "other".
type words struct {
	list  []string
	index map[string]int
}

func newWords(list ...string) words {
	w := words{list: append(slices.Clone(list), other), index: make(map[string]int, len(list))}
	for i, word := range list {
		w.index[word] = i
	}
	return w
}

// of returns the place of a word, that of "other" for one that is not known.
func (w words) of(word string) int {
	if i, known := w.index[word]; known {
		return i
	}
	return len(w.list) - 1
}

// vocabulary is the words of all labels with a fixed set of values.
type vocabulary struct {
	kinds, vias, outcomes, loads, operations, answers, transports words
}

func newVocabulary() vocabulary {
	codes := []string{"INVALID_INPUT", "TOOL_NOT_FOUND", "POLICY_DENIED", "EXECUTION_ERROR", "TIMEOUT"}
	// A host call is answered by a code of its own, or by that of the call it makes.
	answers := append([]string{"ok", "NOT_FOUND", "OUTSIDE_ROOT", "NOT_GRANTED", "TOO_LARGE", "DENIED", "UNAVAILABLE", "INVALID", "CAPABILITY", "CONSENT", "ASKS", "suspended"}, codes...)
	return vocabulary{
		kinds:      newWords("tool", "resource", "prompt", "completion"),
		vias:       newWords("client", "tool", "code", "test"),
		outcomes:   newWords(append([]string{"ok", "input_required", "rehearsed"}, codes...)...),
		loads:      newWords("published", "unchanged", "failed"),
		operations: newWords("http", "fs", "exec", "sql", "kv", "ask", "call", "env", "secret", "module", "log", "console", "progress", "disconnect"),
		answers:    newWords(answers...),
		transports: newWords("streamable", "sse", "websocket", "stdio", "rest"),
	}
}
