package observe

import "context"

// Recorder records spans for a [Tracer]. A Handle is a span that the Recorder has begun; it
// is nil for a span that is not recorded, which no other method gets.
type Recorder interface {
	// Start begins the span of a call (Semantic conventions for MCP, Server). The context
	// is for what the call does, also where the call is not recorded.
	Start(ctx context.Context, c Call) (context.Context, Handle)
	// Part begins a part of a span: in this process, or a question to another one.
	Part(of Handle, name string, client bool) Handle
	// Resume begins a part of a span that may be over. The context is for what the part
	// does, also where the part is not recorded.
	Resume(ctx context.Context, of SpanContext, name string) (context.Context, Handle)
	// In returns a context whose span is h, and Context the ids of the span of a context.
	In(ctx context.Context, h Handle) context.Context
	Context(ctx context.Context) SpanContext
	// IDs returns the ids of the trace and of the span in hexadecimal.
	IDs(h Handle) (trace, span string)
	Attr(h Handle, key Key, value string)
	// Found sets the name of what a call by method is of, Fail its code, and End ends it.
	// method is empty for a part.
	Found(h Handle, method, name string)
	Fail(h Handle, method, code string)
	End(h Handle)
	// Inject returns the fields traceparent and tracestate for a request to another
	// server, which are empty if nothing is to be carried on.
	Inject(ctx context.Context) (traceparent, tracestate string)
}

// Handle is a span of a [Recorder], which alone knows its type.
type Handle any

// Tracer makes spans. The zero Tracer makes none, and none of its methods allocates.
type Tracer struct{ recorder Recorder }

// NewTracer returns a tracer whose spans a recorder records.
func NewTracer(r Recorder) Tracer { return Tracer{r} }

// Traces reports whether the tracer makes spans.
func (t Tracer) Traces() bool { return t.recorder != nil }

// Call is what is known of a call when it begins.
type Call struct {
	// Method is that of MCP, such as tools/call, which also names calls by other
	// wires.
	Method string
	// ID and RequestID are those of the log, the second as its caller chose it; Via
	// is what made the call.
	ID, RequestID, Via string
	// Parent is the span that the message comes from, by its _meta or else by the
	// header of what carried it. Carrier is that of the header where _meta has one
	// too. Without a Parent the span of the context is the parent.
	Parent, Carrier SpanContext
}

// Start begins the span of a call. The context is for what the call does; if nothing is
// traced it is the one given.
func (t Tracer) Start(ctx context.Context, c Call) (context.Context, Span) {
	if t.recorder == nil {
		return ctx, Span{}
	}
	ctx, h := t.recorder.Start(ctx, c)
	return ctx, Span{recorder: t.recorder, handle: h, method: c.Method}
}

// Inject returns the fields traceparent and tracestate of a request to another server,
// which are empty if nothing is traced or OTEL_PROPAGATORS forbids it.
func (t Tracer) Inject(ctx context.Context) (traceparent, tracestate string) {
	if t.recorder == nil {
		return "", ""
	}
	return t.recorder.Inject(ctx)
}

// Origin is the span that something comes of which may go on when the span is over. It
// keeps nothing of the span but its ids. The zero Origin is none.
type Origin struct {
	recorder Recorder
	of       SpanContext
}

// Origin returns the origin of what is done in a context.
func (t Tracer) Origin(ctx context.Context) Origin {
	if t.recorder == nil {
		return Origin{}
	}
	return Origin{t.recorder, t.recorder.Context(ctx)}
}

// Start begins a part of the origin. The context is for what the part does, also where the
// part is not traced.
func (o Origin) Start(ctx context.Context, name string) (context.Context, Span) {
	if !o.of.Valid() {
		return ctx, Span{}
	}
	ctx, h := o.recorder.Resume(ctx, o.of, name)
	return ctx, Span{recorder: o.recorder, handle: h}
}

// Span is a call or a part of one. The methods of a Span that is not traced, such as the
// zero Span, do nothing, and allocate nothing. A span is used by one goroutine at a time,
// and its children by others.
type Span struct {
	recorder Recorder
	handle   Handle // nil if the span is not recorded
	method   string // of a call; empty for a part
}

// Key is the name of an attribute.
type Key string

// The attributes of a call and of its parts. Values are cut at 256 characters. None is
// for what a caller or a script chose.
const (
	// Policy is the name of a policy or a limit.
	Policy Key = "mcpd.policy.name"
	// Decision is what the policies came to: [Allowed] or [Denied].
	Decision Key = "mcpd.policy.decision"
	// PolicyOn is [OnResult] where policies judge what a call returned, and absent where
	// they judge the call.
	PolicyOn Key = "mcpd.policy.on"
	// Revision is that of the snapshot that serves a call.
	Revision Key = "mcpd.snapshot.revision"
)

// OnResult is the value of [PolicyOn].
const OnResult = "result"

// The values of [Decision].
const (
	Allowed = "allow"
	Denied  = "deny"
)

// IDs returns the ids of the trace and of the span in hexadecimal, which are empty for a
// span that is not traced.
func (s Span) IDs() (trace, span string) {
	if s.handle == nil {
		return "", ""
	}
	return s.recorder.IDs(s.handle)
}

// Found sets what a call is of, by its name in the files. Without it the span has no name
// but that of its method: the name that a caller asks for is not shown.
func (s Span) Found(name string) {
	if s.handle != nil {
		s.recorder.Found(s.handle, s.method, name)
	}
}

// Child begins a part that happens here, such as "policy" or "script".
func (s Span) Child(name string) Span { return s.part(name, false) }

// Client begins a part that asks something of another process.
func (s Span) Client(name string) Span { return s.part(name, true) }

func (s Span) part(name string, client bool) Span {
	if s.handle == nil {
		return Span{}
	}
	return Span{recorder: s.recorder, handle: s.recorder.Part(s.handle, name, client)}
}

// In returns a context by which [Tracer.Inject], logs and calls that are made from
// here name this span; the context given, if the span is not traced.
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

// Fail marks the span as failed with a code: one of the five of the RFC for a call,
// or that of a host error. There are no messages.
func (s Span) Fail(code string) {
	if s.handle != nil {
		s.recorder.Fail(s.handle, s.method, code)
	}
}

// End ends the span. What is set afterwards is dropped.
func (s Span) End() {
	if s.handle != nil {
		s.recorder.End(s.handle)
	}
}
