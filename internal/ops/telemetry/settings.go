package telemetry

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/mcpd/mcpd/internal/base/httpheader"
)

// settings are what the variables OTEL_* say of traces.
type settings struct {
	exporter  sdktrace.SpanExporter // nil when nothing is traced
	resource  *resource.Resource
	queue     queueSettings
	sampler   sdktrace.Sampler
	propagate bool // to what scripts call
}

// queueSettings are those of the batch span processor of the specification.
type queueSettings struct {
	size, batch     int
	delay, patience time.Duration
}

const (
	endpointVariable = "OTEL_EXPORTER_OTLP_ENDPOINT"
	exporterVariable = "OTEL_TRACES_EXPORTER"
	samplerVariable  = "OTEL_TRACES_SAMPLER"
)

// forTraces returns the names of a variable of OTLP: the one of traces counts
// before the one of all signals.
func forTraces(what string) []string {
	return []string{"OTEL_EXPORTER_OTLP_TRACES_" + what, "OTEL_EXPORTER_OTLP_" + what}
}

// readSettings reads the variables. Unlike the specification has it, nothing is
// exported unless a variable asks for it: a server that sends its spans to a port
// of its machine which nobody listens on is of no use.
func readSettings(e environment, o Options) (settings, error) {
	var a all
	s := settings{sampler: must2(&a, e.sampler), propagate: must2(&a, e.propagate), queue: e.queueSettings(&a)}
	attributes := e.resource(&a, o)
	disabled := must2(&a, func() (bool, error) { return e.flag("OTEL_SDK_DISABLED") })
	exporting := must2(&a, e.exporting)
	s.resource = resource.NewSchemaless(attributes...)
	switch {
	case exporting == "otlp":
		if client := e.otlp(&a, attributes); client != nil {
			s.exporter = must2(&a, func() (*otlptrace.Exporter, error) { return otlptrace.New(context.Background(), client) })
		}
	case exporting == "console":
		s.exporter = must2(&a, func() (*stdouttrace.Exporter, error) { return stdouttrace.New(stdouttrace.WithWriter(o.Console)) })
	}
	if disabled {
		s.exporter = nil
	}
	return s, a.err()
}

// must2 is [must] of a function.
func must2[T any](a *all, read func() (T, error)) T {
	value, err := read()
	return must(a, value, err)
}

// exporting returns otlp, console or none.
func (e environment) exporting() (string, error) {
	byDefault := "none"
	if endpoint, _ := e.text(forTraces("ENDPOINT")...); endpoint != "" {
		byDefault = "otlp"
	}
	if value, _ := e.text(exporterVariable); value == "" {
		return byDefault, nil
	}
	return e.choice([]string{exporterVariable}, "otlp", "console", "none")
}

func (e environment) queueSettings(a *all) queueSettings {
	var q queueSettings
	q.size = must2(a, func() (int, error) { return e.count(2048, 1<<20, "OTEL_BSP_MAX_QUEUE_SIZE") })
	q.batch = must2(a, func() (int, error) { return e.count(min(512, q.size), 1<<20, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE") })
	q.delay = must2(a, func() (time.Duration, error) { return e.milliseconds(5*time.Second, "OTEL_BSP_SCHEDULE_DELAY") })
	q.patience = must2(a, func() (time.Duration, error) { return e.milliseconds(30*time.Second, "OTEL_BSP_EXPORT_TIMEOUT") })
	if q.batch > q.size && q.size > 0 {
		must(a, 0, fmt.Errorf("environment variable OTEL_BSP_MAX_EXPORT_BATCH_SIZE: write at most OTEL_BSP_MAX_QUEUE_SIZE, which is %d", q.size))
	}
	return q
}

// sampler returns the sampler (Trace SDK, Built-in samplers).
func (e environment) sampler() (sdktrace.Sampler, error) {
	kind, err := e.choice([]string{samplerVariable}, "parentbased_always_on", "parentbased_always_off", "parentbased_traceidratio", "always_on", "always_off", "traceidratio")
	if err != nil {
		return nil, err
	}
	own, ofParent := strings.CutPrefix(kind, "parentbased_")
	var sampler sdktrace.Sampler
	switch own {
	case "always_on":
		sampler = sdktrace.AlwaysSample()
	case "always_off":
		sampler = sdktrace.NeverSample()
	default:
		ratio, err := e.ratio()
		if err != nil {
			return nil, err
		}
		sampler = sdktrace.TraceIDRatioBased(ratio)
	}
	if ofParent {
		sampler = sdktrace.ParentBased(sampler)
	}
	return sampler, nil
}

func (e environment) ratio() (float64, error) {
	value, name := e.text(samplerVariable + "_ARG")
	if value == "" {
		return 1, nil
	}
	ratio, err := strconv.ParseFloat(value, 64)
	if err != nil || !(ratio >= 0 && ratio <= 1) {
		return 0, fmt.Errorf("environment variable %s: write a number from 0 to 1", name)
	}
	return ratio, nil
}

// propagate reports whether requests carry the trace on. Baggage is known and not
// carried: it would let callers put text into the requests of scripts.
func (e environment) propagate() (bool, error) {
	value, name := e.text("OTEL_PROPAGATORS")
	if value == "" {
		return true, nil
	}
	carried, none := false, false
	for one := range strings.SplitSeq(value, ",") {
		switch strings.ToLower(strings.TrimSpace(one)) {
		case "tracecontext":
			carried = true
		case "none":
			none = true
		case "baggage", "":
		default:
			return false, fmt.Errorf("environment variable %s: write tracecontext, baggage or none, with commas between them", name)
		}
	}
	return carried && !none, nil
}

// resource returns what the spans are of: the service, and what the variables add.
// OTEL_SERVICE_NAME counts before OTEL_RESOURCE_ATTRIBUTES.
func (e environment) resource(a *all, o Options) []attribute.KeyValue {
	key := func(key string) bool { return key != "" && printable(key) }
	pairs := must2(a, func() ([]pair, error) { return e.pairs(key, "OTEL_RESOURCE_ATTRIBUTES") })
	service, _ := e.text("OTEL_SERVICE_NAME")
	values := map[string]string{"service.name": o.Service, "service.version": o.Version}
	for _, p := range pairs {
		values[p.key] = p.value
	}
	if service != "" {
		values["service.name"] = service
	}
	var attributes []attribute.KeyValue
	for key, value := range values {
		if value != "" {
			attributes = append(attributes, attribute.String(key, value))
		}
	}
	set := attribute.NewSet(attributes...) // sorted
	return set.ToSlice()
}

// endpoint returns where spans go. The variable of traces is taken as it is, and
// the one of all signals gets the path of traces (OTLP Exporter, Endpoint URLs for
// OTLP/HTTP).
func (e environment) endpoint() (*url.URL, error) {
	value, name := e.text(forTraces("ENDPOINT")...)
	if value == "" {
		value, name = "http://localhost:4318", endpointVariable
	}
	u, err := url.Parse(value)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.Fragment != "" {
		return nil, fmt.Errorf("environment variable %s: write a URL such as http://localhost:4318, without user and password", name)
	}
	if name == endpointVariable {
		return u.JoinPath("v1/traces"), nil
	}
	if u.Path == "" {
		u.Path = "/"
	}
	return u, nil
}

// headers returns what every request carries.
func (e environment) headers() (http.Header, error) {
	pairs, err := e.pairs(httpheader.IsToken, forTraces("HEADERS")...)
	header := make(http.Header, len(pairs))
	for _, p := range pairs {
		header.Set(p.key, p.value)
	}
	return header, err
}
