package telemetry

import (
	"fmt"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// scrapes is how many requests for metrics are answered at once; more get 503.
const scrapes = 4

// Handler returns what serves metrics, as OpenMetrics to those who ask for it and
// in the text format of Prometheus to others. Who may ask is for the caller to say:
// metrics name the tools of all.
func (t *Telemetry) Handler() http.Handler {
	serve := promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{
		ErrorLog: complaints{t.logger}, ErrorHandling: promhttp.ContinueOnError,
		EnableOpenMetrics: true, DisableCompression: true, MaxRequestsInFlight: scrapes,
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "metrics are read with GET", http.StatusMethodNotAllowed)
			return
		}
		t.metrics.expire()
		serve.ServeHTTP(w, r)
	})
}

// complaints passes on what goes wrong while metrics are gathered.
type complaints struct{ logger *slog.Logger }

// Println logs a complaint.
func (c complaints) Println(words ...any) {
	c.logger.Error("metrics are incomplete", "error", fmt.Sprint(words...))
}
