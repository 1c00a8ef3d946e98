package observe

import "context"

// Recorder records spans for a [Tracer]. A Handle is a started span, or nil for a span
// that is not recorded; nil is passed to no other method.
type Recorder interface {
	// Start starts the span of a call (Semantic conventions for MCP, Server). The
	// returned context is for the work of the call, even if the call is not recorded.
	Start(ctx context.Context, c Call) (context.Context, Handle)
	// Part starts a child span: a local one, or a client request to another process.
	Part(of Handle, name string, client bool) Handle
	// Resume starts a child of a span that may have ended. The returned context is for
	// the work of the child, even if it is not recorded.
	Resume(ctx context.Context, of SpanContext, name string) (context.Context, Handle)
	// In returns a context with the span h, and Context the ids of the span in a
	// context.
	In(ctx context.Context, h Handle) context.Context
	Context(ctx context.Context) SpanContext
	// IDs returns the trace id and the span id in hexadecimal.
	IDs(h Handle) (trace, span string)
	Attr(h Handle, key Key, value string)
	// Found sets the name of the called item, Fail the error code, and End ends the
	// span. method is empty for a child span.
	Found(h Handle, method, name string)
	Fail(h Handle, method, code string)
	End(h Handle)
	// Inject returns the fields traceparent and tracestate for an outgoing request, or
	// "" if nothing is propagated.
	Inject(ctx context.Context) (traceparent, tracestate string)
}

// Handle is a span of a [Recorder]. Only the Recorder knows its type.
type Handle any

// Tracer creates spans. The zero Tracer creates none and does not allocate.
type Tracer struct{ recorder Recorder }

// NewTracer returns a tracer that records its spans with r.
func NewTracer(r Recorder) Tracer { return Tracer{r} }

// Traces reports whether the tracer creates spans.
func (t Tracer) Traces() bool { return t.recorder != nil }

// Call describes a call at its start.
type Call struct {
	// Method is the MCP method, such as tools/call, also for calls over other
	// transports.
	Method string
	// ID and RequestID are as in the log; the caller may choose the RequestID. Via is
	// the origin of the call.
	ID, RequestID, Via string
	// Parent is the span of the sender, from _meta or else from the header of the
	// carrier. Carrier is the span in the header if _meta has one too. Without a
	// Parent, the span in the context is the parent.
	Parent, Carrier SpanContext
}

// Start starts the span of a call. The returned context is for the work of the call;
// without tracing it is ctx.
func (t Tracer) Start(ctx context.Context, c Call) (context.Context, Span) {
	if t.recorder == nil {
		return ctx, Span{}
	}
	ctx, h := t.recorder.Start(ctx, c)
	return ctx, Span{recorder: t.recorder, handle: h, method: c.Method}
}

// Inject returns the fields traceparent and tracestate for an outgoing request, or ""
// without tracing or if OTEL_PROPAGATORS forbids it.
func (t Tracer) Inject(ctx context.Context) (traceparent, tracestate string) {
	if t.recorder == nil {
		return "", ""
	}
	return t.recorder.Inject(ctx)
}

// Origin is the span that caused work which may outlast it. It stores only the ids of
// the span. The zero Origin is none.
type Origin struct {
	recorder Recorder
	of       SpanContext
}

// Origin returns the origin of work in a context.
func (t Tracer) Origin(ctx context.Context) Origin {
	if t.recorder == nil {
		return Origin{}
	}
	return Origin{t.recorder, t.recorder.Context(ctx)}
}

// Start starts a child span of the origin. The returned context is for the work of the
// child, even if it is not traced.
func (o Origin) Start(ctx context.Context, name string) (context.Context, Span) {
	if !o.of.Valid() {
		return ctx, Span{}
	}
	ctx, h := o.recorder.Resume(ctx, o.of, name)
	return ctx, Span{recorder: o.recorder, handle: h}
}

// Span is the span of a call or of a part of it. The methods of a Span that is not
// traced, such as the zero Span, do nothing and do not allocate. A Span is not safe for
// concurrent use, but its children may be used by other goroutines.
type Span struct {
	recorder Recorder
	handle   Handle // nil if the span is not recorded
	method   string // of a call; empty for a child span
}

// Key is the name of an attribute.
type Key string

// Attributes of spans. Values are truncated at 256 characters. None has a value that a
// caller or script chose.
const (
	// Policy is the name of a policy or a limit.
	Policy Key = "mcpd.policy.name"
	// Decision is the decision of the policies: [Allowed] or [Denied].
	Decision Key = "mcpd.policy.decision"
	// PolicyOn is [OnResult] for policies over results, and absent for policies over
	// calls.
	PolicyOn Key = "mcpd.policy.on"
	// Revision identifies the snapshot that serves a call.
	Revision Key = "mcpd.snapshot.revision"
)

// OnResult is the value of [PolicyOn].
const OnResult = "result"

// Values of [Decision].
const (
	Allowed = "allow"
	Denied  = "deny"
)

// Recorded reports whether something records the span.
func (s Span) Recorded() bool { return s.handle != nil }

// IDs returns the trace id and the span id in hexadecimal, or "" for a span that is not
// traced.
func (s Span) IDs() (trace, span string) {
	if s.handle == nil {
		return "", ""
	}
	return s.recorder.IDs(s.handle)
}

// Found sets the name of the called item from the files. Without it the span has only
// its method as name, since the name in a request is untrusted.
func (s Span) Found(name string) {
	if s.handle != nil {
		s.recorder.Found(s.handle, s.method, name)
	}
}

// Child starts a local child span, such as "policy" or "script".
func (s Span) Child(name string) Span { return s.part(name, false) }

// Client starts a child span for a request to another process.
func (s Span) Client(name string) Span { return s.part(name, true) }

func (s Span) part(name string, client bool) Span {
	if s.handle == nil {
		return Span{}
	}
	return Span{recorder: s.recorder, handle: s.recorder.Part(s.handle, name, client)}
}

// In returns a context with the span, for [Tracer.Inject], logs and nested calls. If
// the span is not traced, it returns ctx.
func (s Span) In(ctx context.Context) context.Context {
	if s.handle == nil {
		return ctx
	}
	return s.recorder.In(ctx, s.handle)
}

// Attr sets an attribute.
func (s Span) Attr(key Key, value string) {
	if s.handle != nil {
		s.recorder.Attr(s.handle, key, value)
	}
}

// Fail marks the span as failed with a code: one of the five error codes for a call, or
// a host error code. Messages are not recorded.
func (s Span) Fail(code string) {
	if s.handle != nil {
		s.recorder.Fail(s.handle, s.method, code)
	}
}

// End ends the span. Later changes are dropped.
func (s Span) End() {
	if s.handle != nil {
		s.recorder.End(s.handle)
	}
}
