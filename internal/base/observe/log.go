package observe

import (
	"context"
	"log/slog"
	"slices"
)

// LogHandler returns a handler that adds call_id and request_id of the [Request] in the
// context, and trace_id and span_id, to records without them. The attributes are
// outside of all groups. Without any id in the context it does not allocate. spanOf
// returns the trace id and the span id, like [Telemetry.IDs]; nil adds neither.
func LogHandler(next slog.Handler, spanOf func(context.Context) (trace, span string)) slog.Handler {
	if spanOf == nil {
		spanOf = func(context.Context) (trace, span string) { return "", "" }
	}
	return logHandler{root: next, next: next, spanOf: spanOf}
}

type logHandler struct {
	root slog.Handler // without the attributes and groups since the first group
	next slog.Handler // with all attributes and groups
	// spanOf returns the trace id and the span id of a context.
	spanOf func(context.Context) (trace, span string)
	// steps are the attributes and groups since the first group, in order.
	steps []step
	// has marks the ids that top-level attributes already set.
	has [len(ids)]bool
}

// ids are the names of the attributes from the context.
var ids = [...]string{"call_id", "request_id", "trace_id", "span_id"}

// step is a group, or attributes if it has no name.
type step struct {
	group string
	attrs []slog.Attr
}

// note marks the id that an attribute sets.
func note(has *[len(ids)]bool, a slog.Attr) {
	if i := slices.Index(ids[:], a.Key); i >= 0 {
		has[i] = true
	}
}

func (h logHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

// Handle adds the missing ids.
func (h logHandler) Handle(ctx context.Context, r slog.Record) error {
	trace, span := h.spanOf(ctx)
	request, _ := ctx.Value(requestKey{}).(Request)
	if trace == "" && request == (Request{}) {
		return h.next.Handle(ctx, r)
	}
	missing := h.missing(r, [...]string{request.Call, request.ID, trace, span})
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

// missing returns the ids to add to a record.
func (h logHandler) missing(r slog.Record, values [len(ids)]string) []slog.Attr {
	has := h.has
	if len(h.steps) == 0 {
		r.Attrs(func(a slog.Attr) bool {
			note(&has, a)
			return true
		})
	}
	var missing []slog.Attr
	for i, value := range values {
		if value != "" && !has[i] {
			missing = append(missing, slog.String(ids[i], value))
		}
	}
	return missing
}

// grouped returns the next handler with attributes before the first group.
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
		note(&h.has, a)
	}
	return h
}

func (h logHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	h.next = h.next.WithGroup(name)
	h.steps = append(slices.Clip(h.steps), step{group: name})
	return h
}

// Request identifies the request that the server works on, for the log. The zero
// Request is for work without a request, such as a reload.
type Request struct {
	// ID is the request_id, which callers may choose, and Call the call_id.
	ID, Call string
}

type requestKey struct{}

// In returns a context with the request. [LogHandler] adds its ids to records.
func (r Request) In(ctx context.Context) context.Context {
	return context.WithValue(ctx, requestKey{}, r)
}
