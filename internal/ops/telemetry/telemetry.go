// Package telemetry sends traces and serves metrics: it implements the interfaces of
// package observe by OpenTelemetry and Prometheus.
//
// A [Telemetry] is made of [Options] and ended by [Telemetry.Close]. It sends spans where the
// OTEL_* variables say; without any of those nothing is traced. [Telemetry.Handler] serves
// its metrics.
//
// No call waits for telemetry. Spans go through a bounded queue, the batch processor of
// OpenTelemetry, which counts and drops spans when it is full. The package keeps no
// state outside of its values, and reads the environment through [Options].LookupEnv
// alone.
//
// Two parts are done by hand. The client of OTLP is ours, since that of OpenTelemetry
// links gRPC. So are the readers of OTEL_*: those of the SDK read the environment of the
// process, and drop what they do not understand.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/trace"

	"github.com/mcpd/mcpd/internal/base/observe"
)

// Options are what telemetry is made with. The zero value traces nothing.
type Options struct {
	// Service, Version, LookupEnv, Logger and Now are those of [observe.Options].
	Service, Version string
	LookupEnv        func(name string) (string, bool)
	// ReadFile reads the certificates and keys that the variables OTEL_* name; nil means
	// that there are no files.
	ReadFile func(name string) ([]byte, error)
	// Console gets the spans of OTEL_TRACES_EXPORTER=console, one JSON object a line,
	// from one goroutine; nil drops them.
	Console io.Writer
	Logger  *slog.Logger
	Now     func() time.Time
}

// Telemetry is what one server tells of itself. It is safe for concurrent use.
type Telemetry struct {
	// fixed at creation
	registry *prometheus.Registry
	metrics  *Metrics
	tracer   observe.Tracer
	spans    *queue // nil when nothing is traced
	logger   *slog.Logger
}

// New returns the telemetry of a server. The error names every variable that has
// a value which means nothing. [Telemetry.Close] must be called.
func New(o Options) (*Telemetry, error) {
	o = o.withDefaults()
	settings, err := readSettings(&environment{lookup: o.LookupEnv, read: o.ReadFile}, o)
	if err != nil {
		return nil, err
	}
	t := &Telemetry{registry: prometheus.NewRegistry(), logger: o.Logger}
	if settings.exporter != nil {
		t.spans = newQueue(settings.queue, settings.exporter, o.Logger)
		t.tracer = observe.NewTracer(newRecorder(settings, t.spans, o.Version))
	}
	t.metrics = newMetrics(o.Now)
	t.metrics.register(t.registry, o.Version, t.spans)
	return t, nil
}

func (o Options) withDefaults() Options {
	if o.LookupEnv == nil {
		o.LookupEnv = func(string) (string, bool) { return "", false }
	}
	if o.ReadFile == nil {
		o.ReadFile = func(string) ([]byte, error) { return nil, errors.New("this program reads no files") }
	}
	if o.Console == nil {
		o.Console = io.Discard
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// Tracer returns the tracer; the zero Tracer when nothing is traced.
func (t *Telemetry) Tracer() observe.Tracer { return t.tracer }

// Metrics returns the metrics.
func (t *Telemetry) Metrics() observe.Metrics { return t.metrics }

// IDs returns the ids of the trace and of the span of a context, "" for none.
func (*Telemetry) IDs(ctx context.Context) (traceID, spanID string) {
	of := trace.SpanContextFromContext(ctx)
	if !of.IsValid() {
		return "", ""
	}
	return of.TraceID().String(), of.SpanID().String()
}

// Close sends the spans that wait, until ctx is done, and lets go of everything.
// Spans that end later are dropped. It returns the error of ctx when spans were
// lost by it; a second Close does nothing.
func (t *Telemetry) Close(ctx context.Context) error {
	if t.spans == nil {
		return nil
	}
	return t.spans.close(ctx)
}

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

func (c complaints) Println(words ...any) {
	c.logger.Error("metrics are incomplete", "error", fmt.Sprint(words...))
}
