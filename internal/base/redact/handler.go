package redact

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
)

// Redactor redacts the values that a log must not show. It is safe for concurrent use.
type Redactor interface {
	// Redact returns the text with placeholders for values. Without values it returns
	// text itself.
	Redact(text string) string
	// RedactJSON redacts JSON. The result is JSON, or nil.
	RedactJSON(raw json.RawMessage) json.RawMessage
}

// NewHandler returns a handler that redacts the message and the attributes of each
// record, including their keys, with a redactor. Values other than strings, numbers, times
// and groups become their text or JSON. Numbers are not redacted: they are counts.
// Attributes of [slog.Logger.With] are redacted when a record is written, so that later
// values are covered too.
func NewHandler(next slog.Handler, redactor Redactor) slog.Handler {
	return handler{next: next, redactor: redactor}
}

type handler struct {
	next     slog.Handler
	redactor Redactor
	// steps are the attributes and groups of WithAttrs and WithGroup, in order.
	steps []step
}

// step is a group, or attributes if it has no name.
type step struct {
	group string
	attrs []slog.Attr
}

// Enabled returns the result of the next handler: disabled records are not redacted.
func (h handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	if len(attrs) > 0 {
		h.steps = append(slices.Clip(h.steps), step{attrs: attrs})
	}
	return h
}

func (h handler) WithGroup(name string) slog.Handler {
	if name != "" {
		h.steps = append(slices.Clip(h.steps), step{group: name})
	}
	return h
}

// maxInlineAttrs is the usual maximum number of attributes, which need no allocation.
const maxInlineAttrs = 10

// Handle passes on the redacted record.
func (h handler) Handle(ctx context.Context, r slog.Record) error {
	var room [maxInlineAttrs]slog.Attr
	attrs := room[:0]
	r.Attrs(func(a slog.Attr) bool {
		attrs = append(attrs, h.attr(a))
		return true
	})
	shown := slog.NewRecord(r.Time, r.Level, h.redactor.Redact(r.Message), r.PC)
	if len(h.steps) > 0 {
		shown.AddAttrs(h.within(slices.Clone(attrs))...)
	} else {
		shown.AddAttrs(attrs...)
	}
	return h.next.Handle(ctx, shown)
}

// within returns the attributes of a record inside the groups and after the attributes
// of the handler.
func (h handler) within(attrs []slog.Attr) []slog.Attr {
	for _, s := range slices.Backward(h.steps) {
		if s.group != "" {
			attrs = []slog.Attr{{Key: h.redactor.Redact(s.group), Value: slog.GroupValue(attrs...)}}
		} else {
			attrs = append(h.attrs(s.attrs), attrs...)
		}
	}
	return attrs
}

func (h handler) attrs(attrs []slog.Attr) []slog.Attr {
	shown := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		shown[i] = h.attr(a)
	}
	return shown
}

func (h handler) attr(a slog.Attr) slog.Attr {
	return slog.Attr{Key: h.redactor.Redact(a.Key), Value: h.value(a.Value.Resolve())}
}

func (h handler) value(v slog.Value) slog.Value {
	switch v.Kind() {
	case slog.KindString:
		return slog.StringValue(h.redactor.Redact(v.String()))
	case slog.KindGroup:
		return slog.GroupValue(h.attrs(v.Group())...)
	case slog.KindAny:
		return h.any(v.Any())
	default:
		return v
	}
}

// any returns the redacted form of any value: its text if it has one, otherwise its
// JSON. Package fmt recovers from methods that panic.
func (h handler) any(v any) slog.Value {
	switch v := v.(type) {
	case nil:
		return slog.AnyValue(nil)
	case []byte:
		return slog.StringValue(h.redactor.Redact(string(v)))
	case error, fmt.Stringer:
		return slog.StringValue(h.redactor.Redact(fmt.Sprint(v)))
	}
	raw := encode(v)
	if raw == nil {
		return slog.StringValue(h.redactor.Redact(fmt.Sprint(v)))
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return slog.StringValue(h.redactor.Redact(text))
	}
	return slog.AnyValue(h.redactor.RedactJSON(raw))
}

// encode returns a value as JSON, or nil if it cannot be encoded or panics.
func encode(v any) (raw json.RawMessage) {
	defer func() {
		if recover() != nil {
			raw = nil
		}
	}()
	raw, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return raw
}
