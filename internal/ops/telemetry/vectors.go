package telemetry

import "github.com/prometheus/client_golang/prometheus"

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
