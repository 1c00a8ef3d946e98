package telemetry

import (
	"context"
	"encoding/hex"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Tracer makes spans. A nil Tracer makes none, and none of its methods allocates.
type Tracer struct {
	// fixed at creation
	tracer    trace.Tracer
	propagate bool
}

// What a span holds at most: characters of each value, attributes, and links.
const (
	valueLength = 256
	attributes  = 32
	links       = 1
)

func newTracer(s settings, q *queue, version string) *Tracer {
	limits := sdktrace.SpanLimits{AttributeValueLengthLimit: valueLength, AttributeCountLimit: attributes, LinkCountLimit: links}
	// The SDK takes options that are missing here from the environment of the process,
	// and adds OTEL_RESOURCE_ATTRIBUTES of the process to the resource in any case.
	provider := sdktrace.NewTracerProvider(sdktrace.WithSampler(s.sampler), sdktrace.WithRawSpanLimits(limits),
		sdktrace.WithResource(s.resource), sdktrace.WithSpanProcessor(q))
	return &Tracer{
		tracer:    provider.Tracer("github.com/mcpd/mcpd", trace.WithInstrumentationVersion(version)),
		propagate: s.propagate,
	}
}

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
	Parent, Carrier Remote
}

// Start begins the span of a call (Semantic conventions for MCP, Server). The
// context is for what the call does; where nothing is traced it is the one given.
func (t *Tracer) Start(ctx context.Context, c Call) (context.Context, Span) {
	if t == nil {
		return ctx, Span{}
	}
	return t.start(ctx, c)
}

// start is Start of a tracer that there is, so that the other is inlined.
func (t *Tracer) start(ctx context.Context, c Call) (context.Context, Span) {
	if c.Parent.Valid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, c.Parent.of)
	}
	kind := trace.SpanKindInternal
	if of := trace.SpanContextFromContext(ctx); !of.IsValid() || of.IsRemote() {
		kind = trace.SpanKindServer
	}
	ctx, span := t.tracer.Start(ctx, c.Method, trace.WithSpanKind(kind))
	if !span.IsRecording() {
		return ctx, Span{}
	}
	s := Span{span: span, tracer: t, method: c.Method}
	s.describe(c)
	return ctx, s
}

// Inject returns the fields traceparent and tracestate of what a call asks of
// others, which are empty where nothing is traced or OTEL_PROPAGATORS forbids it.
func (t *Tracer) Inject(ctx context.Context) (traceparent, tracestate string) {
	if t == nil || !t.propagate {
		return "", ""
	}
	of := trace.SpanContextFromContext(ctx)
	if !of.IsValid() {
		return "", ""
	}
	id, span := of.TraceID(), of.SpanID()
	text := make([]byte, 0, parentBytes)
	text = append(text, "00-"...)
	text = append(hex.AppendEncode(text, id[:]), '-')
	text = append(hex.AppendEncode(text, span[:]), '-')
	text = hex.AppendEncode(text, []byte{byte(of.TraceFlags() & (trace.FlagsSampled | randomFlag))})
	return string(text), of.TraceState().String()
}
