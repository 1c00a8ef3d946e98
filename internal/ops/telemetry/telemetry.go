// Package telemetry exports traces and serves metrics. It implements the interfaces of
// package observe with OpenTelemetry and Prometheus.
//
// A [Telemetry] is created from [Options] and closed by [Telemetry.Close]. It exports
// spans as the OTEL_* variables configure; by default nothing is traced.
// [Telemetry.Handler] serves the metrics.
//
// Calls never wait for telemetry. Spans go through a bounded queue, the OpenTelemetry
// batch processor, which drops and counts spans when it is full. The package has no
// global state, and reads the environment only through [Options].LookupEnv.
//
// Two parts are written by hand. The OpenTelemetry OTLP client links gRPC, so the
// client is our own. The SDK's readers of OTEL_* use the process environment and ignore
// invalid values, so the readers are our own too.
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

// Options configure the telemetry. The zero value traces nothing.
type Options struct {
	// Service, Version, LookupEnv, Logger and Now are as in [observe.Options].
	Service, Version string
	LookupEnv        func(name string) (string, bool)
	// ReadFile reads certificates and keys named by OTEL_* variables; nil means that no
	// file can be read.
	ReadFile func(name string) ([]byte, error)
	// Console receives the spans of OTEL_TRACES_EXPORTER=console, one JSON object per
	// line, from one goroutine; nil drops them.
	Console io.Writer
	Logger  *slog.Logger
	Now     func() time.Time
}

// Telemetry is the telemetry of one server. It is safe for concurrent use.
type Telemetry struct {
	// fixed at creation
	registry *prometheus.Registry
	metrics  *Metrics
	tracer   observe.Tracer
	spans    *batchProcessor // nil without tracing
	logger   *slog.Logger
}

// New returns the telemetry of a server. The error names every variable with an invalid
// value. [Telemetry.Close] must be called.
func New(o Options) (*Telemetry, error) {
	o = o.withDefaults()
	settings, err := readSettings(&environment{lookup: o.LookupEnv, read: o.ReadFile}, o)
	if err != nil {
		return nil, err
	}
	t := &Telemetry{registry: prometheus.NewRegistry(), logger: o.Logger}
	if settings.exporter != nil {
		t.spans = newBatchProcessor(settings.queue, settings.exporter, o.Logger)
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
		o.ReadFile = func(string) ([]byte, error) { return nil, errors.New("no file access") }
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

// Tracer returns the tracer, or the zero Tracer without tracing.
func (t *Telemetry) Tracer() observe.Tracer { return t.tracer }

// Metrics returns the metrics.
func (t *Telemetry) Metrics() observe.Metrics { return t.metrics }

// IDs returns the trace id and the span id of a context, or "".
func (*Telemetry) IDs(ctx context.Context) (traceID, spanID string) {
	of := trace.SpanContextFromContext(ctx)
	if !of.IsValid() {
		return "", ""
	}
	return of.TraceID().String(), of.SpanID().String()
}

// Close exports the waiting spans until ctx is done, and releases all resources. Later
// spans are dropped. It returns the error of ctx if spans were lost. A second Close
// does nothing.
func (t *Telemetry) Close(ctx context.Context) error {
	if t.spans == nil {
		return nil
	}
	return t.spans.close(ctx)
}

// maxScrapes is the maximum number of concurrent metrics requests; more get status 503.
const maxScrapes = 4

// Handler serves the metrics, as OpenMetrics if requested and otherwise in the
// Prometheus text format. The caller must authorize requests, since metrics name all
// tools.
func (t *Telemetry) Handler() http.Handler {
	serve := promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{
		ErrorLog: promLogger{t.logger}, ErrorHandling: promhttp.ContinueOnError,
		EnableOpenMetrics: true, DisableCompression: true, MaxRequestsInFlight: maxScrapes,
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "use GET for metrics", http.StatusMethodNotAllowed)
			return
		}
		t.metrics.expire()
		serve.ServeHTTP(w, r)
	})
}

// promLogger logs errors of the metrics library.
type promLogger struct{ logger *slog.Logger }

func (l promLogger) Println(words ...any) {
	l.logger.Error("gather metrics", "error", fmt.Sprint(words...))
}
