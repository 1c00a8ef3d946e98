package telemetry

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
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
	settings, err := readSettings(environment{lookup: o.LookupEnv, read: o.ReadFile}, o)
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
