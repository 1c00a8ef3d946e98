package telemetry

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

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
