package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

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

// environment reads variables. What they hold is in no error: it may be a secret.
type environment struct {
	lookup func(name string) (string, bool)
	read   func(name string) ([]byte, error)
}

// text returns the value of the first of the variables that is set and not empty,
// as the OpenTelemetry specification has it (Environment Variable Specification,
// Parsing empty value), and the name of that one; the first when none is.
func (e environment) text(names ...string) (value, name string) {
	for _, name := range names {
		if value, ok := e.lookup(name); ok && strings.TrimSpace(value) != "" {
			return strings.TrimSpace(value), name
		}
	}
	return "", names[0]
}

// choice returns the value of a variable in lower case, which must be one of
// those offered, or the first of them when it is not set.
func (e environment) choice(names []string, offered ...string) (string, error) {
	value, name := e.text(names...)
	if value == "" {
		return offered[0], nil
	}
	for _, one := range offered {
		if strings.EqualFold(value, one) {
			return one, nil
		}
	}
	return "", fmt.Errorf("environment variable %s: write %s", name, alternatives(offered))
}

// flag reports whether a variable is "true". Any other value is false, as the
// specification has it, except that what is neither is an error here.
func (e environment) flag(name string) (bool, error) {
	value, err := e.choice([]string{name}, "false", "true")
	return value == "true", err
}

// count returns a variable that is a number from 1 to most.
func (e environment) count(byDefault, most int, names ...string) (int, error) {
	value, name := e.text(names...)
	if value == "" {
		return byDefault, nil
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > most {
		return 0, fmt.Errorf("environment variable %s: write a whole number from 1 to %d", name, most)
	}
	return n, nil
}

// milliseconds returns a variable that is a time in milliseconds, an hour at most.
func (e environment) milliseconds(byDefault time.Duration, names ...string) (time.Duration, error) {
	n, err := e.count(int(byDefault/time.Millisecond), int(time.Hour/time.Millisecond), names...)
	return time.Duration(n) * time.Millisecond, err
}

// pair is one key with its value.
type pair struct{ key, value string }

// pairs returns a variable that is a list such as "a=b,c=d", with percent-encoding
// in values, as W3C Baggage has it. allowed says which characters a key may have.
func (e environment) pairs(allowed func(key string) bool, names ...string) ([]pair, error) {
	value, name := e.text(names...)
	wrong := fmt.Errorf("environment variable %s: write key=value pairs with commas between them, and other characters in values as %%XX", name)
	var list []pair
	for member := range strings.SplitSeq(value, ",") {
		if member = strings.TrimSpace(member); member == "" {
			continue
		}
		key, encoded, found := strings.Cut(member, "=")
		key = strings.TrimSpace(key)
		decoded, err := url.PathUnescape(strings.TrimSpace(encoded))
		if !found || err != nil || !allowed(key) || !printable(decoded) {
			return nil, wrong
		}
		list = append(list, pair{key, decoded})
	}
	return list, nil
}

// file returns what the file holds that a variable names; nil when it is not set.
func (e environment) file(names ...string) ([]byte, error) {
	path, name := e.text(names...)
	if path == "" {
		return nil, nil
	}
	content, err := e.read(path)
	if err != nil {
		return nil, fmt.Errorf("environment variable %s: %w", name, err)
	}
	return content, nil
}

// printable reports whether a text is UTF-8 without control characters.
func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// alternatives joins words: "a, b or c".
func alternatives(words []string) string {
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// all joins the errors of several variables, so that all are told at once.
type all struct{ errs []error }

// must notes an error and returns the value that came with it.
func must[T any](a *all, value T, err error) T {
	if err != nil {
		a.errs = append(a.errs, err)
	}
	return value
}

func (a *all) err() error { return errors.Join(a.errs...) }
