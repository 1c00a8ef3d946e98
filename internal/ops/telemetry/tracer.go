package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/mcpd/mcpd/internal/base/observe"
)

// recorder records spans: its handles are those of OpenTelemetry.
type recorder struct {
	// fixed at creation
	tracer    trace.Tracer
	propagate bool
	// The options of spans by kind, made once.
	server, internal, client []trace.SpanStartOption
}

// What a span holds at most: characters of each value, attributes, and links.
const (
	valueLength = 256
	attributes  = 32
	links       = 1
)

func newRecorder(s settings, q *queue, version string) *recorder {
	limits := sdktrace.SpanLimits{AttributeValueLengthLimit: valueLength, AttributeCountLimit: attributes, LinkCountLimit: links}
	// The SDK takes options that are missing here from the environment of the process,
	// and adds OTEL_RESOURCE_ATTRIBUTES of the process to the resource in any case.
	provider := sdktrace.NewTracerProvider(sdktrace.WithSampler(s.sampler), sdktrace.WithRawSpanLimits(limits),
		sdktrace.WithResource(s.resource), sdktrace.WithSpanProcessor(q))
	of := func(kind trace.SpanKind) []trace.SpanStartOption {
		return []trace.SpanStartOption{trace.WithSpanKind(kind)}
	}
	return &recorder{
		tracer:    provider.Tracer("github.com/mcpd/mcpd", trace.WithInstrumentationVersion(version)),
		propagate: s.propagate,
		server:    of(trace.SpanKindServer), internal: of(trace.SpanKindInternal), client: of(trace.SpanKindClient),
	}
}

// Start implements [observe.Recorder].
func (r *recorder) Start(ctx context.Context, c observe.Call) (context.Context, observe.Handle) {
	if c.Parent.Valid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, contextOf(c.Parent))
	}
	kind := r.internal
	if of := trace.SpanContextFromContext(ctx); !of.IsValid() || of.IsRemote() {
		kind = r.server
	}
	ctx, span := r.tracer.Start(ctx, c.Method, kind...)
	if !span.IsRecording() {
		return ctx, nil
	}
	set := make([]attribute.KeyValue, 0, 8)
	for _, a := range [...]struct{ key, value string }{
		{"mcp.method.name", c.Method}, {"mcpd.call.id", c.ID}, {"mcpd.request.id", c.RequestID}, {"mcpd.call.via", c.Via},
	} {
		if a.value != "" {
			set = append(set, attribute.String(a.key, a.value))
		}
	}
	span.SetAttributes(set...)
	if c.Carrier.Valid() && c.Parent.Valid() {
		span.AddLink(trace.Link{SpanContext: contextOf(c.Carrier)})
	}
	return ctx, span
}

// contextOf returns the span of another process, or one that may be over. A tracestate with
// a mistake is dropped, as W3C Trace Context section 4.3 has it.
func contextOf(c observe.SpanContext) trace.SpanContext {
	config := trace.SpanContextConfig{TraceID: c.TraceID, SpanID: c.SpanID, TraceFlags: trace.TraceFlags(c.Flags), Remote: c.Remote}
	if c.State != "" {
		config.TraceState, _ = trace.ParseTraceState(c.State)
	}
	return trace.NewSpanContext(config)
}

// Part implements [observe.Recorder].
func (r *recorder) Part(of observe.Handle, name string, client bool) observe.Handle {
	kind := r.internal
	if client {
		kind = r.client
	}
	_, part := r.tracer.Start(trace.ContextWithSpan(context.Background(), of.(trace.Span)), name, kind...)
	if !part.IsRecording() {
		return nil
	}
	return part
}

// Resume implements [observe.Recorder].
func (r *recorder) Resume(ctx context.Context, of observe.SpanContext, name string) (context.Context, observe.Handle) {
	ctx, span := r.tracer.Start(trace.ContextWithSpanContext(ctx, contextOf(of)), name, r.internal...)
	if !span.IsRecording() {
		return ctx, nil
	}
	return ctx, span
}

// In implements [observe.Recorder].
func (*recorder) In(ctx context.Context, h observe.Handle) context.Context {
	return trace.ContextWithSpan(ctx, h.(trace.Span))
}

// Context implements [observe.Recorder].
func (*recorder) Context(ctx context.Context) observe.SpanContext {
	c := trace.SpanContextFromContext(ctx)
	return observe.SpanContext{TraceID: c.TraceID(), SpanID: c.SpanID(), Flags: byte(c.TraceFlags()), State: c.TraceState().String(), Remote: c.IsRemote()}
}

// IDs implements [observe.Recorder].
func (*recorder) IDs(h observe.Handle) (traceID, spanID string) {
	of := h.(trace.Span).SpanContext()
	return of.TraceID().String(), of.SpanID().String()
}

// Attr implements [observe.Recorder].
func (*recorder) Attr(h observe.Handle, key observe.Key, value string) {
	h.(trace.Span).SetAttributes(attribute.String(string(key), value))
}

// Found implements [observe.Recorder].
func (*recorder) Found(h observe.Handle, method, name string) {
	span := h.(trace.Span)
	switch method {
	case "tools/call":
		span.SetAttributes(attribute.String("gen_ai.operation.name", "execute_tool"), attribute.String("gen_ai.tool.name", name))
	case "prompts/get":
		span.SetAttributes(attribute.String("gen_ai.prompt.name", name))
	default:
		span.SetAttributes(attribute.String("mcpd.item.name", name))
		return
	}
	span.SetName(method + " " + name)
}

// Fail implements [observe.Recorder].
func (*recorder) Fail(h observe.Handle, method, code string) {
	span, kind := h.(trace.Span), code
	if method == "tools/call" {
		if kind = "tool_error"; code == "TOOL_NOT_FOUND" {
			kind = "-32602" // the JSON-RPC error that it is answered with
		}
		span.SetAttributes(attribute.String("mcpd.error.code", code))
	}
	span.SetStatus(codes.Error, "")
	span.SetAttributes(attribute.String("error.type", kind))
}

// End implements [observe.Recorder].
func (*recorder) End(h observe.Handle) { h.(trace.Span).End() }

// Inject implements [observe.Recorder].
func (r *recorder) Inject(ctx context.Context) (traceparent, tracestate string) {
	if !r.propagate {
		return "", ""
	}
	of := trace.SpanContextFromContext(ctx)
	if !of.IsValid() {
		return "", ""
	}
	c := observe.SpanContext{TraceID: of.TraceID(), SpanID: of.SpanID(), Flags: byte(of.TraceFlags())}
	return c.Traceparent(), of.TraceState().String()
}
