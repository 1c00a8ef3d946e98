package telemetry

import (
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
