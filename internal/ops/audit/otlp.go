package audit

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// The types here are those of the JSON encoding of the OpenTelemetry protocol
// (opentelemetry-proto, logs/v1): names in lower camel case, 64-bit integers as
// texts, ids in hexadecimal.
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

// The severities of OpenTelemetry that are used (logs data model).
const (
	otlpInfo = 9
	otlpWarn = 13
)

// exportRequest returns a line as a request to take one log record.
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

// hexID returns an id of so many digits, "" for any other text.
func hexID(id string, digits int) string {
	if len(id) != digits || strings.Trim(id, "0123456789abcdef") != "" {
		return ""
	}
	return id
}

// attributes appends the members of an object under names with dots, in the
// order of their names. Lists, and what was passed as arguments, are JSON.
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
