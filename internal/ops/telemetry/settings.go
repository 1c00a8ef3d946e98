package telemetry

import (
	"context"
	"crypto/rand"
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

// settings are the trace settings from the OTEL_* variables.
type settings struct {
	exporter  sdktrace.SpanExporter // nil disables tracing
	resource  *resource.Resource
	queue     queueSettings
	sampler   sdktrace.Sampler
	propagate bool // into the requests of scripts
}

// queueSettings are the settings of the batch span processor in the specification.
type queueSettings struct {
	size, batch     int
	delay, patience time.Duration
}

const (
	endpointVariable = "OTEL_EXPORTER_OTLP_ENDPOINT"
	exporterVariable = "OTEL_TRACES_EXPORTER"
	samplerVariable  = "OTEL_TRACES_SAMPLER"
)

// otlpVars returns the names of an OTLP variable: the one for traces has precedence
// over the one for all signals.
func otlpVars(what string) []string {
	return []string{"OTEL_EXPORTER_OTLP_TRACES_" + what, "OTEL_EXPORTER_OTLP_" + what}
}

// readSettings reads the variables. Unlike the specification, it exports nothing by
// default: sending spans to a local port without a listener is useless.
func readSettings(e *environment, o Options) (settings, error) {
	s := settings{sampler: e.sampler(), propagate: e.propagate(), queue: e.queueSettings()}
	attributes := e.resource(o)
	// In the specification any value except "true" is false; here another value is an
	// error.
	disabled := e.choice([]string{"OTEL_SDK_DISABLED"}, "false", "true") == "true"
	exporting := e.exporting()
	s.resource = resource.NewSchemaless(attributes...)
	var err error
	switch exporting {
	case "otlp":
		if client := e.otlp(attributes); client != nil {
			s.exporter, err = otlptrace.New(context.Background(), client)
		}
	case "console":
		s.exporter, err = stdouttrace.New(stdouttrace.WithWriter(o.Console))
	}
	if disabled {
		s.exporter = nil
	}
	return s, errors.Join(append(e.wrong, err)...)
}

// exporting returns otlp, console or none.
func (e *environment) exporting() string {
	value, _ := e.text(exporterVariable)
	endpoint, _ := e.text(otlpVars("ENDPOINT")...)
	switch {
	case value != "":
		return e.choice([]string{exporterVariable}, "otlp", "console", "none")
	case endpoint != "":
		return "otlp"
	}
	return "none"
}

func (e *environment) queueSettings() queueSettings {
	size := e.count(2048, 1<<20, "OTEL_BSP_MAX_QUEUE_SIZE")
	q := queueSettings{
		size: size, batch: e.count(min(512, size), 1<<20, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE"),
		delay: e.milliseconds(5*time.Second, "OTEL_BSP_SCHEDULE_DELAY"), patience: e.milliseconds(30*time.Second, "OTEL_BSP_EXPORT_TIMEOUT"),
	}
	if q.batch > size && size > 0 {
		e.refuse("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "write at most OTEL_BSP_MAX_QUEUE_SIZE, which is %d", size)
	}
	return q
}

// sampler returns the sampler (Trace SDK, Built-in samplers).
func (e *environment) sampler() sdktrace.Sampler {
	kind := e.choice([]string{samplerVariable}, "parentbased_always_on", "parentbased_always_off", "parentbased_traceidratio", "always_on", "always_off", "traceidratio")
	own, ofParent := strings.CutPrefix(kind, "parentbased_")
	var sampler sdktrace.Sampler
	switch own {
	case "always_on":
		sampler = sdktrace.AlwaysSample()
	case "always_off":
		sampler = sdktrace.NeverSample()
	default:
		sampler = sdktrace.TraceIDRatioBased(e.ratio())
	}
	if ofParent {
		sampler = sdktrace.ParentBased(sampler)
	}
	return sampler
}

func (e *environment) ratio() float64 {
	value, name := e.text(samplerVariable + "_ARG")
	if value == "" {
		return 1
	}
	ratio, err := strconv.ParseFloat(value, 64)
	if err != nil || !(ratio >= 0 && ratio <= 1) {
		e.refuse(name, "write a number from 0 to 1")
	}
	return ratio
}

// propagate reports whether requests propagate the trace. Baggage is recognized but not
// propagated: it would let callers put text into the requests of scripts.
func (e *environment) propagate() bool {
	value, name := e.text("OTEL_PROPAGATORS")
	if value == "" {
		return true
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
			e.refuse(name, "write tracecontext, baggage or none, with commas between them")
			return false
		}
	}
	return carried && !none
}

// resource returns the resource of the spans: the service and additional attributes.
// OTEL_SERVICE_NAME has precedence over OTEL_RESOURCE_ATTRIBUTES.
func (e *environment) resource(o Options) []attribute.KeyValue {
	pairs := e.pairs(func(key string) bool { return key != "" && printable(key) }, "OTEL_RESOURCE_ATTRIBUTES")
	service, _ := e.text("OTEL_SERVICE_NAME")
	values := map[string]string{"service.name": o.Service, "service.version": o.Version, "service.instance.id": instanceID()}
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

// instanceID returns a random UUID of version 4, which tells the servers of a service apart
// (OpenTelemetry semantic conventions, Service attributes).
func instanceID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// endpoint returns the URL for spans. The variable for traces is used unchanged; the
// one for all signals gets the path of traces (OTLP Exporter, Endpoint URLs for
// OTLP/HTTP).
func (e *environment) endpoint() string {
	value, name := e.text(otlpVars("ENDPOINT")...)
	if value == "" {
		value, name = "http://localhost:4318", endpointVariable
	}
	u, err := url.Parse(value)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.Fragment != "" {
		e.refuse(name, "write a URL such as http://localhost:4318, without user and password")
		return ""
	}
	if name == endpointVariable {
		return u.JoinPath("v1/traces").String()
	}
	if u.Path == "" {
		u.Path = "/"
	}
	return u.String()
}

func (e *environment) headers() http.Header {
	header := http.Header{}
	for _, p := range e.pairs(httpheader.IsToken, otlpVars("HEADERS")...) {
		header.Set(p.key, p.value)
	}
	return header
}

// environment reads variables. Errors do not contain values, which may be secrets.
type environment struct {
	lookup func(name string) (string, bool)
	read   func(name string) ([]byte, error)
	// wrong holds the errors of all variables.
	wrong []error
}

func (e *environment) refuse(name, format string, args ...any) {
	e.wrong = append(e.wrong, fmt.Errorf("environment variable "+name+": "+format, args...))
}

// text returns the value and the name of the first variable that is set and not empty
// (Environment Variable Specification, Parsing empty value). Otherwise it returns the
// first name.
func (e *environment) text(names ...string) (value, name string) {
	for _, name := range names {
		if value, ok := e.lookup(name); ok && strings.TrimSpace(value) != "" {
			return strings.TrimSpace(value), name
		}
	}
	return "", names[0]
}

// choice returns the value of a variable in lower case, which must be one of offered.
// The default is the first one.
func (e *environment) choice(names []string, offered ...string) string {
	value, name := e.text(names...)
	if value == "" {
		return offered[0]
	}
	for _, one := range offered {
		if strings.EqualFold(value, one) {
			return one
		}
	}
	e.refuse(name, "write %s", alternatives(offered))
	return offered[0]
}

// count returns a variable with a number from 1 to limit.
func (e *environment) count(byDefault, limit int, names ...string) int {
	value, name := e.text(names...)
	if value == "" {
		return byDefault
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > limit {
		e.refuse(name, "write a whole number from 1 to %d", limit)
		return 0
	}
	return n
}

// milliseconds returns a variable with a duration in milliseconds, at most an hour.
func (e *environment) milliseconds(byDefault time.Duration, names ...string) time.Duration {
	return time.Duration(e.count(int(byDefault/time.Millisecond), int(time.Hour/time.Millisecond), names...)) * time.Millisecond
}

// pair is a key with its value.
type pair struct{ key, value string }

// pairs returns a variable with a list such as "a=b,c=d", with percent-encoded values
// as in W3C Baggage. allowed reports whether a key is valid.
func (e *environment) pairs(allowed func(key string) bool, names ...string) (list []pair) {
	value, name := e.text(names...)
	for member := range strings.SplitSeq(value, ",") {
		if member = strings.TrimSpace(member); member == "" {
			continue
		}
		key, encoded, found := strings.Cut(member, "=")
		key = strings.TrimSpace(key)
		decoded, err := url.PathUnescape(strings.TrimSpace(encoded))
		if !found || err != nil || !allowed(key) || !printable(decoded) {
			e.refuse(name, "write key=value pairs with commas between them, and other characters in values as %%XX")
			return nil
		}
		list = append(list, pair{key, decoded})
	}
	return list
}

// file returns the content of the file that a variable names, or nil if it is not set.
func (e *environment) file(names ...string) []byte {
	path, name := e.text(names...)
	if path == "" {
		return nil
	}
	content, err := e.read(path)
	if err != nil {
		e.refuse(name, "%w", err)
	}
	return content
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
