package telemetry

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// console writes spans as lines of JSON, for development.
type console struct {
	out      io.Writer
	resource []attribute.KeyValue
}

// line is a span as the console shows it.
type line struct {
	Trace      string         `json:"trace_id"`
	Span       string         `json:"span_id"`
	Parent     string         `json:"parent_id,omitempty"`
	Name       string         `json:"name"`
	Kind       string         `json:"kind"`
	Start      time.Time      `json:"start"`
	Took       string         `json:"took"`
	Failed     bool           `json:"failed,omitempty"`
	Attributes map[string]any `json:"attributes,omitempty"`
	Resource   map[string]any `json:"resource"`
}

func (c *console) export(_ context.Context, spans []sdktrace.ReadOnlySpan) (refused int, err error) {
	encoder := json.NewEncoder(c.out)
	for _, s := range spans {
		if err := encoder.Encode(c.line(s)); err != nil {
			return 0, fmt.Errorf("write spans: %w", err)
		}
	}
	return 0, nil
}

func (c *console) close() {}

func (c *console) line(s sdktrace.ReadOnlySpan) line {
	l := line{
		Trace: s.SpanContext().TraceID().String(), Span: s.SpanContext().SpanID().String(),
		Name: s.Name(), Kind: s.SpanKind().String(), Start: s.StartTime().UTC(), Took: s.EndTime().Sub(s.StartTime()).String(),
		Failed: s.Status().Code == codes.Error, Attributes: object(s.Attributes()), Resource: object(c.resource),
	}
	if s.Parent().SpanID().IsValid() {
		l.Parent = s.Parent().SpanID().String()
	}
	return l
}

func object(attributes []attribute.KeyValue) map[string]any {
	o := make(map[string]any, len(attributes))
	for _, a := range attributes {
		o[string(a.Key)] = a.Value.AsInterface()
	}
	return o
}
