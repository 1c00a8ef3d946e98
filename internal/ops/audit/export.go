package audit

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// Format is a form that a log is exported in.
type Format string

const (
	// JSONL is one object a line, as they were written.
	JSONL Format = "jsonl"
	// CSV is RFC 4180 with a header. Cells that a spreadsheet would compute begin
	// with an apostrophe.
	CSV Format = "csv"
	// OTLP is one ExportLogsServiceRequest a line, in the JSON encoding of the
	// OpenTelemetry protocol.
	OTLP Format = "otlp-json"
)

// Formats returns all formats.
func Formats() []Format { return []Format{JSONL, CSV, OTLP} }

// Span is a time from Since up to Until; zero times are no bounds.
type Span struct{ Since, Until time.Time }

// Holds reports whether a time is in the span.
func (s Span) Holds(t time.Time) bool {
	return (s.Since.IsZero() || !t.Before(s.Since)) && (s.Until.IsZero() || t.Before(s.Until))
}

// Export writes the lines of a span of the log at a path. It returns how many
// lines were left out as they are no records.
func Export(out io.Writer, path string, format Format, span Span) (strange int, err error) {
	buffered := bufio.NewWriter(out)
	add, flush, err := exporter(buffered, format)
	if err != nil {
		return 0, err
	}
	f, err := openFiles(path)
	if err != nil {
		return 0, fmt.Errorf("export the audit log: %w", err)
	}
	defer func() { err = errors.Join(err, f.close()) }()
	err = f.each(func(_ string, _ bool, file *os.File) error {
		n, err := readLines(file, func(l *Line) error {
			if !span.Holds(l.Time) {
				return nil
			}
			return add(l)
		})
		strange += n
		return err
	})
	if err := errors.Join(err, flush(), buffered.Flush()); err != nil {
		return strange, fmt.Errorf("export the audit log: %w", err)
	}
	return strange, nil
}

// exporter returns what writes a line in a format, and what ends the output.
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
	return nil, nil, fmt.Errorf("there is no format %q", format)
}

// columns are those of [CSV]: paths of names within a line.
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

// cell returns a value as text: objects and lists as JSON.
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

// jsonText returns a decoded value as JSON; what does not show is escaped.
func jsonText(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return "" // nothing that was decoded
	}
	return string(appendShown(nil, text))
}
