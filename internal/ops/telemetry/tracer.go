package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/mcpd/mcpd/internal/base/observe"
)

// recorder records spans with OpenTelemetry.
type recorder struct {
	// fixed at creation
	tracer    trace.Tracer
	propagate bool
	// Span options by kind, created once.
	server, internal, client []trace.SpanStartOption
}

// Limits of a span: characters per value, attributes, and links.
const (
	valueLength = 256
	attributes  = 32
	links       = 1
)

func newRecorder(s settings, q *batchProcessor, version string) *recorder {
	limits := sdktrace.SpanLimits{AttributeValueLengthLimit: valueLength, AttributeCountLimit: attributes, LinkCountLimit: links}
	// The SDK reads missing options from the process environment, and always adds
	// OTEL_RESOURCE_ATTRIBUTES of the process to the resource.
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

// contextOf returns the context of a remote or finished span. It drops an invalid
// tracestate, as in W3C Trace Context section 4.3.
func contextOf(c observe.SpanContext) trace.SpanContext {
	config := trace.SpanContextConfig{TraceID: c.TraceID, SpanID: c.SpanID, TraceFlags: trace.TraceFlags(c.Flags), Remote: c.Remote}
	if c.State != "" {
		config.TraceState, _ = trace.ParseTraceState(c.State)
	}
	return trace.NewSpanContext(config)
}

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

func (r *recorder) Resume(ctx context.Context, of observe.SpanContext, name string) (context.Context, observe.Handle) {
	ctx, span := r.tracer.Start(trace.ContextWithSpanContext(ctx, contextOf(of)), name, r.internal...)
	if !span.IsRecording() {
		return ctx, nil
	}
	return ctx, span
}

func (*recorder) In(ctx context.Context, h observe.Handle) context.Context {
	return trace.ContextWithSpan(ctx, h.(trace.Span))
}

func (*recorder) Context(ctx context.Context) observe.SpanContext {
	c := trace.SpanContextFromContext(ctx)
	return observe.SpanContext{TraceID: c.TraceID(), SpanID: c.SpanID(), Flags: byte(c.TraceFlags()), State: c.TraceState().String(), Remote: c.IsRemote()}
}

func (*recorder) IDs(h observe.Handle) (traceID, spanID string) {
	of := h.(trace.Span).SpanContext()
	return of.TraceID().String(), of.SpanID().String()
}

func (*recorder) Attr(h observe.Handle, key observe.Key, value string) {
	h.(trace.Span).SetAttributes(attribute.String(string(key), value))
}

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

func (*recorder) Fail(h observe.Handle, method, code string) {
	span, kind := h.(trace.Span), code
	if method == "tools/call" {
		if kind = "tool_error"; code == "TOOL_NOT_FOUND" {
			kind = "-32602" // the JSON-RPC error code of the response
		}
		span.SetAttributes(attribute.String("mcpd.error.code", code))
	}
	span.SetStatus(codes.Error, "")
	span.SetAttributes(attribute.String("error.type", kind))
}

func (*recorder) End(h observe.Handle) { h.(trace.Span).End() }

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

// batchProcessor is the SDK's batch span processor with a counting exporter. It counts the
// outcome of spans, logs errors, and aborts an export when [batchProcessor.close] times out.
type batchProcessor struct {
	sdktrace.SpanProcessor

	// fixed at creation
	exporter sdktrace.SpanExporter
	size     int64
	logger   *slog.Logger
	ctx      context.Context // of all exports; done when close times out
	cancel   context.CancelFunc
	done     chan struct{} // closed after the last export

	closed                     atomic.Bool
	waiting                    atomic.Int64
	exported, dropped, refused atomic.Uint64

	failing bool // the last export failed; used by the goroutine of the processor
}

// newBatchProcessor returns a batch processor for an exporter. It sets all options of the processor, which
// otherwise reads them from the process environment.
func newBatchProcessor(s queueSettings, e sdktrace.SpanExporter, logger *slog.Logger) *batchProcessor {
	ctx, cancel := context.WithCancel(context.Background())
	q := &batchProcessor{exporter: e, size: int64(s.size), logger: logger, ctx: ctx, cancel: cancel, done: make(chan struct{})}
	q.SpanProcessor = sdktrace.NewBatchSpanProcessor(batches{q}, sdktrace.WithMaxQueueSize(s.size), sdktrace.WithMaxExportBatchSize(s.batch),
		sdktrace.WithBatchTimeout(s.delay), sdktrace.WithExportTimeout(s.patience))
	return q
}

// OnEnd queues a span, or drops it if the queue is full. It does not block. The
// processor would drop spans too, but report them to a global meter.
func (p *batchProcessor) OnEnd(s sdktrace.ReadOnlySpan) {
	if !s.SpanContext().IsSampled() {
		return
	}
	if p.closed.Load() {
		p.dropped.Add(1)
		return
	}
	if p.waiting.Add(1) > p.size {
		p.waiting.Add(-1)
		p.dropped.Add(1)
		return
	}
	p.SpanProcessor.OnEnd(s)
}

// batches is the exporter that the processor uses.
type batches struct{ *batchProcessor }

// ExportSpans exports a batch. It returns no error, because the SDK would print it.
func (b batches) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	q, n := b.batchProcessor, uint64(len(spans))
	q.waiting.Add(-int64(n))
	err := q.export(ctx, spans)
	if some, ok := errors.AsType[partial](err); ok {
		rejected := min(uint64(some.rejected), n)
		q.refused.Add(rejected)
		n, err = n-rejected, nil
	}
	if err != nil {
		q.dropped.Add(n)
	} else {
		q.exported.Add(n)
	}
	q.log(ctx, err)
	return nil
}

// export calls the exporter until ctx is done or the queue is closed. A panic loses one
// batch.
func (p *batchProcessor) export(ctx context.Context, spans []sdktrace.ReadOnlySpan) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)()
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v", cause)
		}
	}()
	return p.exporter.ExportSpans(ctx, spans)
}

// log logs when exports start to fail and when they work again.
func (p *batchProcessor) log(ctx context.Context, err error) {
	switch {
	case err != nil && !p.failing:
		p.logger.WarnContext(ctx, "export traces", "error", err)
	case err == nil && p.failing:
		p.logger.InfoContext(ctx, "trace export recovered")
	}
	p.failing = err != nil
}

// Shutdown closes the exporter after the last export.
func (b batches) Shutdown(ctx context.Context) error {
	defer close(b.done)
	return b.exporter.Shutdown(ctx)
}

// close exports the waiting spans until ctx is done, and returns after the last export.
// A second close does nothing.
func (p *batchProcessor) close(ctx context.Context) error {
	p.closed.Store(true)
	err := p.SpanProcessor.Shutdown(ctx)
	lost := p.dropped.Load()
	p.cancel()
	<-p.done
	p.dropped.Add(uint64(p.waiting.Swap(0))) // spans that ended meanwhile
	if err == nil || p.dropped.Load() == lost {
		return nil
	}
	return fmt.Errorf("export last spans: %w", err)
}
