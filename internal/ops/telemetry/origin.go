package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/trace"
)

// Origin is the span that something comes of which may go on when the span is over. It
// keeps nothing of the span but its ids. The zero Origin is none.
type Origin struct {
	tracer *Tracer
	of     trace.SpanContext
}

// Origin returns that of what is done in a context.
func (t *Tracer) Origin(ctx context.Context) Origin {
	if t == nil {
		return Origin{}
	}
	return Origin{t, trace.SpanContextFromContext(ctx)}
}

// Start begins a part of the origin that happens here. The context is for what the part
// does, also where the part is not traced.
func (o Origin) Start(ctx context.Context, name string) (context.Context, Span) {
	if !o.of.IsValid() {
		return ctx, Span{}
	}
	ctx, span := o.tracer.tracer.Start(trace.ContextWithSpanContext(ctx, o.of), name, trace.WithSpanKind(trace.SpanKindInternal))
	if !span.IsRecording() {
		return ctx, Span{}
	}
	return ctx, Span{span: span, tracer: o.tracer}
}
