package audit

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Format is an export format.
type Format string

const (
	// JSONL is one object per line, as written in the log.
	JSONL Format = "jsonl"
	// CSV is RFC 4180 with a header. Cells that a spreadsheet would evaluate start with
	// an apostrophe.
	CSV Format = "csv"
	// OTLP is one ExportLogsServiceRequest per line, in the JSON encoding of the
	// OpenTelemetry protocol.
	OTLP Format = "otlp-json"
)

// Formats returns all formats.
func Formats() []Format { return []Format{JSONL, CSV, OTLP} }

// TimeRange is the time range from Since until before Until. A zero time is no bound.
type TimeRange struct{ Since, Until time.Time }

// Contains reports whether a time is in the range.
func (r TimeRange) Contains(t time.Time) bool {
	return (r.Since.IsZero() || !t.Before(r.Since)) && (r.Until.IsZero() || t.Before(r.Until))
}

// Export writes the lines of the log at path that are in the range. It returns the
// number of skipped lines that are not records.
func Export(out io.Writer, path string, format Format, span TimeRange) (unreadable int, err error) {
	buffered := bufio.NewWriter(out)
	add, flush, err := exporter(buffered, format)
	if err != nil {
		return 0, err
	}
	unreadable, err = eachLine(path, "export", func(l *Line) error {
		if !span.Contains(l.Time) {
			return nil
		}
		return add(l)
	})
	return unreadable, errors.Join(err, flush(), buffered.Flush())
}

// exporter returns functions that write a line in a format and that end the output.
func exporter(out *bufio.Writer, format Format) (add func(*Line) error, flush func() error, err error) {
	flush = func() error { return nil }
	switch format {
	case JSONL:
		return func(l *Line) error {
			_, err := out.Write(append(l.JSON, '\n'))
			return err
		}, flush, nil
	case OTLP:
		return func(l *Line) error {
			text, err := json.Marshal(exportRequest(l))
			if err == nil {
				_, err = out.Write(append(text, '\n'))
			}
			return err
		}, flush, nil
	case CSV:
		rows := csv.NewWriter(out)
		flush = func() error { rows.Flush(); return rows.Error() }
		return func(l *Line) error { return rows.Write(cells(l)) }, flush, rows.Write(columnNames())
	}
	return nil, nil, fmt.Errorf("unknown format %q", format)
}

// columns returns the columns of [CSV], each a path of member names.
func columns() [][]string {
	return [][]string{
		{"seq"}, {"time"}, {"kind"}, {"event.name"}, {"attributes"},
		{"call_id"}, {"root_id"}, {"parent_id"}, {"leg"}, {"depth"}, {"via"}, {"alias"}, {"trace_id"}, {"span_id"},
		{"mcp.method.name"}, {"called"}, {"gen_ai.tool.name"}, {"gen_ai.prompt.name"}, {"name"}, {"mcp.resource.uri"}, {"revision"}, {"definition"},
		{"principal", "id"}, {"principal", "kind"}, {"principal", "issuer"}, {"principal", "scopes"}, {"principal", "groups"}, {"principal", "claims"},
		{"agent", "claimed"}, {"agent", "verified"}, {"request_id"}, {"client.address"}, {"listener"}, {"mcp.session.id"},
		{"arguments", "shape"}, {"arguments", "digest"}, {"gen_ai.tool.call.arguments"},
		{"approval", "state"}, {"approval", "why"}, {"approval", "policies"}, {"approval", "asked"},
		{"outcome"}, {"error.type"}, {"error.message"}, {"denied_by"}, {"limited"}, {"declined"}, {"cached"}, {"duration_ms"},
	}
}

func columnNames() []string {
	var names []string
	for _, path := range columns() {
		names = append(names, strings.Join(path, "."))
	}
	return names
}

func cells(l *Line) []string {
	var row []string
	for _, path := range columns() {
		row = append(row, cell(l.member(path...)))
	}
	return row
}

// cell returns a value as text, objects and lists as JSON.
func cell(value any) string {
	text := ""
	switch value := value.(type) {
	case nil:
	case string:
		text = value
	case json.Number:
		return value.String()
	default:
		text = jsonText(value)
	}
	if text != "" && slices.Contains([]byte("=+-@\t\r\n"), text[0]) {
		return "'" + text
	}
	return text
}

// jsonText returns a decoded value as JSON, with non-printable characters escaped.
func jsonText(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return "" // cannot happen for a decoded value
	}
	return string(appendShown(nil, text))
}

// These types are the JSON encoding of the OpenTelemetry protocol (opentelemetry-proto,
// logs/v1): names in lower camel case, 64-bit integers as strings, ids in hexadecimal.
type (
	otlpRequest struct {
		ResourceLogs []otlpResource `json:"resourceLogs"`
	}
	otlpResource struct {
		Resource struct {
			Attributes []otlpAttribute `json:"attributes"`
		} `json:"resource"`
		ScopeLogs []otlpScope `json:"scopeLogs"`
	}
	otlpScope struct {
		Scope struct {
			Name string `json:"name"`
		} `json:"scope"`
		LogRecords []otlpRecord `json:"logRecords"`
	}
	otlpRecord struct {
		Time       string          `json:"timeUnixNano"`
		Observed   string          `json:"observedTimeUnixNano"`
		Severity   int             `json:"severityNumber"`
		Level      string          `json:"severityText"`
		EventName  string          `json:"eventName"`
		Body       map[string]any  `json:"body"`
		Attributes []otlpAttribute `json:"attributes"`
		TraceID    string          `json:"traceId,omitempty"`
		SpanID     string          `json:"spanId,omitempty"`
	}
	otlpAttribute struct {
		Key   string         `json:"key"`
		Value map[string]any `json:"value"`
	}
)

// OpenTelemetry severity numbers (logs data model).
const (
	otlpInfo = 9
	otlpWarn = 13
)

// exportRequest returns a line as a request with one log record.
func exportRequest(l *Line) otlpRequest {
	nanoseconds := strconv.FormatInt(l.Time.UnixNano(), 10)
	record := otlpRecord{
		Time: nanoseconds, Observed: nanoseconds, Severity: otlpInfo, Level: "INFO", EventName: "mcpd.audit." + l.text("kind"),
		Body: map[string]any{"stringValue": l.String()}, TraceID: hexID(l.text("trace_id"), 32), SpanID: hexID(l.text("span_id"), 16),
		Attributes: attributes(nil, "", l.members),
	}
	if l.text("error.type") != "" {
		record.Severity, record.Level = otlpWarn, "WARN"
	}
	resource := otlpResource{ScopeLogs: []otlpScope{{LogRecords: []otlpRecord{record}}}}
	resource.Resource.Attributes = []otlpAttribute{{"service.name", map[string]any{"stringValue": "mcpd"}}}
	resource.ScopeLogs[0].Scope.Name = "mcpd.audit"
	return otlpRequest{[]otlpResource{resource}}
}

// hexID returns id if it has this number of hexadecimal digits, otherwise "".
func hexID(id string, digits int) string {
	if len(id) != digits || strings.Trim(id, "0123456789abcdef") != "" {
		return ""
	}
	return id
}

// attributes appends the members of an object under dotted names, sorted by name. Lists
// and captured arguments are JSON strings.
func attributes(all []otlpAttribute, prefix string, members map[string]any) []otlpAttribute {
	for _, name := range slices.Sorted(maps.Keys(members)) {
		key := prefix + name
		nested, isObject := members[name].(map[string]any)
		if isObject && key != "arguments.shape" && key != "gen_ai.tool.call.arguments" {
			all = attributes(all, key+".", nested)
			continue
		}
		all = append(all, otlpAttribute{key, otlpValue(members[name])})
	}
	return all
}

func otlpValue(value any) map[string]any {
	switch value := value.(type) {
	case string:
		return map[string]any{"stringValue": value}
	case bool:
		return map[string]any{"boolValue": value}
	case json.Number:
		if n, err := value.Int64(); err == nil {
			return map[string]any{"intValue": strconv.FormatInt(n, 10)}
		}
		f, _ := value.Float64()
		return map[string]any{"doubleValue": f}
	}
	return map[string]any{"stringValue": jsonText(value)}
}
