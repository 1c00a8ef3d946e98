package telemetry

import (
	"context"
	"log/slog"
	"slices"

	"go.opentelemetry.io/otel/trace"
)

// LogHandler returns a handler that adds trace_id and span_id of the context to the
// records that lack them, and passes them on. They stand outside of all groups. Where
// nothing is traced nothing is allocated.
func LogHandler(next slog.Handler) slog.Handler { return logHandler{root: next, next: next} }

type logHandler struct {
	root slog.Handler // without what WithAttrs and WithGroup have added since the first group
	next slog.Handler // with all of it
	// steps are what was added since the first group, in order.
	steps []step
	// has are the ids that attributes outside of groups give already.
	has given
}

// step is a group, or attributes when it has no name.
type step struct {
	group string
	attrs []slog.Attr
}

// given says which ids a record has.
type given struct{ trace, span bool }

func (g *given) note(a slog.Attr) {
	switch a.Key {
	case "trace_id":
		g.trace = true
	case "span_id":
		g.span = true
	}
}

// Enabled reports what the next handler does.
func (h logHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

// Handle adds what the record lacks.
func (h logHandler) Handle(ctx context.Context, r slog.Record) error {
	of := trace.SpanContextFromContext(ctx)
	if !of.IsValid() {
		return h.next.Handle(ctx, r)
	}
	missing := h.missing(r, of)
	switch {
	case len(missing) == 0:
		return h.next.Handle(ctx, r)
	case len(h.steps) == 0:
		r = r.Clone()
		r.AddAttrs(missing...)
		return h.next.Handle(ctx, r)
	}
	return h.grouped(missing).Handle(ctx, r)
}

// missing returns the ids that a record is to get.
func (h logHandler) missing(r slog.Record, of trace.SpanContext) []slog.Attr {
	has := h.has
	if len(h.steps) == 0 {
		r.Attrs(func(a slog.Attr) bool {
			has.note(a)
			return true
		})
	}
	var missing []slog.Attr
	if !has.trace {
		missing = append(missing, slog.String("trace_id", of.TraceID().String()))
	}
	if !has.span {
		missing = append(missing, slog.String("span_id", of.SpanID().String()))
	}
	return missing
}

// grouped returns the next handler with attributes in front of the first group.
func (h logHandler) grouped(attrs []slog.Attr) slog.Handler {
	next := h.root.WithAttrs(attrs)
	for _, s := range h.steps {
		if s.group != "" {
			next = next.WithGroup(s.group)
			continue
		}
		next = next.WithAttrs(s.attrs)
	}
	return next
}

// WithAttrs returns a handler whose records have more attributes.
func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	if len(attrs) == 0 {
		return h
	}
	h.next = h.next.WithAttrs(attrs)
	if len(h.steps) > 0 {
		h.steps = append(slices.Clip(h.steps), step{attrs: attrs})
		return h
	}
	h.root = h.next
	for _, a := range attrs {
		h.has.note(a)
	}
	return h
}

// WithGroup returns a handler whose records stand in a group.
func (h logHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	h.next = h.next.WithGroup(name)
	h.steps = append(slices.Clip(h.steps), step{group: name})
	return h
}
