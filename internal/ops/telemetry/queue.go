package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// queue is the batch span processor of the SDK, which passes spans to the exporter
// through the queue. The queue counts what becomes of them, logs errors, and ends an
// export once [queue.close] may wait no longer.
type queue struct {
	sdktrace.SpanProcessor

	// fixed at creation
	exporter sdktrace.SpanExporter
	size     int64
	logger   *slog.Logger
	ctx      context.Context // of all exports: done when close may wait no longer
	giveUp   context.CancelFunc
	done     chan struct{} // closed after the last export

	closed                     atomic.Bool
	waiting                    atomic.Int64
	exported, dropped, refused atomic.Uint64

	failing bool // the last export failed; of the goroutine of the processor
}

// newQueue returns a queue for an exporter. All options of the processor are given,
// as it takes others from the environment of the process.
func newQueue(s queueSettings, e sdktrace.SpanExporter, logger *slog.Logger) *queue {
	ctx, giveUp := context.WithCancel(context.Background())
	q := &queue{exporter: e, size: int64(s.size), logger: logger, ctx: ctx, giveUp: giveUp, done: make(chan struct{})}
	q.SpanProcessor = sdktrace.NewBatchSpanProcessor(batches{q}, sdktrace.WithMaxQueueSize(s.size), sdktrace.WithMaxExportBatchSize(s.batch),
		sdktrace.WithBatchTimeout(s.delay), sdktrace.WithExportTimeout(s.patience))
	return q
}

// OnEnd takes a span, or drops it if the queue is full. It never waits. The processor
// would drop spans, too, and tell a global meter of it.
func (q *queue) OnEnd(s sdktrace.ReadOnlySpan) {
	if !s.SpanContext().IsSampled() {
		return
	}
	if q.closed.Load() {
		q.dropped.Add(1)
		return
	}
	if q.waiting.Add(1) > q.size {
		q.waiting.Add(-1)
		q.dropped.Add(1)
		return
	}
	q.SpanProcessor.OnEnd(s)
}

// batches is the exporter that the processor sees.
type batches struct{ *queue }

// ExportSpans exports a batch. It returns no error: the SDK would print it.
func (b batches) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	q, n := b.queue, uint64(len(spans))
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

// export calls the exporter, until ctx is done or q gives up. A panic loses one batch.
func (q *queue) export(ctx context.Context, spans []sdktrace.ReadOnlySpan) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(q.ctx, cancel)()
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v", cause)
		}
	}()
	return q.exporter.ExportSpans(ctx, spans)
}

// log says when exports begin to fail and when they work again.
func (q *queue) log(ctx context.Context, err error) {
	switch {
	case err != nil && !q.failing:
		q.logger.WarnContext(ctx, "traces are lost until their collector takes them", "error", err)
	case err == nil && q.failing:
		q.logger.InfoContext(ctx, "the collector takes traces again")
	}
	q.failing = err != nil
}

// Shutdown closes the exporter, after the last export.
func (b batches) Shutdown(ctx context.Context) error {
	defer close(b.done)
	return b.exporter.Shutdown(ctx)
}

// close exports the spans that wait until ctx is done, and returns after the last
// export. A second close does nothing.
func (q *queue) close(ctx context.Context) error {
	q.closed.Store(true)
	err := q.SpanProcessor.Shutdown(ctx)
	lost := q.dropped.Load()
	q.giveUp()
	<-q.done
	q.dropped.Add(uint64(q.waiting.Swap(0))) // spans that ended meanwhile
	if err == nil || q.dropped.Load() == lost {
		return nil
	}
	return fmt.Errorf("send the last traces: %w", err)
}
