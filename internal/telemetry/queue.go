package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// exporter sends spans somewhere, one batch at a time, each of at least one span.
type exporter interface {
	// export returns soon after ctx is done. refused says how many spans arrived
	// and were not taken; an error is for all of them.
	export(ctx context.Context, spans []sdktrace.ReadOnlySpan) (refused int, err error)
	close()
}

// queue keeps spans that have ended until they are sent. It is the batch span
// processor of the SDK over again, since that one reads the environment, tells its
// errors to a global handler and nobody what it dropped.
type queue struct {
	// fixed at creation
	settings queueSettings
	exporter exporter
	logger   *slog.Logger
	spans    chan sdktrace.ReadOnlySpan
	stop     chan struct{} // closed by the first close
	done     chan struct{} // closed when the last span is sent or lost
	cancel   context.CancelFunc
	stopping sync.Once

	closed                     atomic.Bool
	exported, dropped, refused atomic.Uint64
}

func newQueue(s queueSettings, e exporter, logger *slog.Logger) *queue {
	ctx, cancel := context.WithCancel(context.Background())
	q := &queue{
		settings: s, exporter: e, logger: logger, cancel: cancel,
		spans: make(chan sdktrace.ReadOnlySpan, s.size), stop: make(chan struct{}), done: make(chan struct{}),
	}
	go q.run(ctx)
	return q
}

// OnStart does nothing; it is there for the SDK.
func (q *queue) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd takes a span, or drops it where there is no room. It never waits.
func (q *queue) OnEnd(s sdktrace.ReadOnlySpan) {
	if !s.SpanContext().IsSampled() {
		return
	}
	if !q.closed.Load() {
		select {
		case q.spans <- s:
			return
		default:
		}
	}
	q.dropped.Add(1)
}

// Shutdown and ForceFlush do nothing: [Telemetry.Close] closes the queue.
func (q *queue) Shutdown(context.Context) error   { return nil }
func (q *queue) ForceFlush(context.Context) error { return nil }

// run sends batches that are full, or that have waited long enough, until it is
// told to stop; then it sends what is left.
func (q *queue) run(ctx context.Context) {
	defer close(q.done)
	defer q.exporter.close()
	var told failing
	batch := make([]sdktrace.ReadOnlySpan, 0, q.settings.batch)
	tick := time.NewTicker(q.settings.delay)
	defer tick.Stop()
	for stopped := false; !stopped; {
		select {
		case s := <-q.spans:
			if batch = append(batch, s); len(batch) < q.settings.batch {
				continue
			}
		case <-tick.C:
		case <-q.stop:
			stopped = true
			continue // what there is goes with what is left
		}
		batch = q.send(ctx, batch, &told)
	}
	for len(q.spans) > 0 {
		if batch = append(batch, <-q.spans); len(batch) == q.settings.batch {
			batch = q.send(ctx, batch, &told)
		}
	}
	q.send(ctx, batch, &told)
}

// send sends a batch and returns it empty.
func (q *queue) send(ctx context.Context, batch []sdktrace.ReadOnlySpan, told *failing) []sdktrace.ReadOnlySpan {
	if len(batch) == 0 {
		return batch
	}
	within, cancel := context.WithTimeout(ctx, q.settings.patience)
	defer cancel()
	refused, err := q.export(within, batch)
	refused = max(0, min(refused, len(batch)))
	if err != nil {
		q.dropped.Add(uint64(len(batch)))
	} else {
		q.refused.Add(uint64(refused))
		q.exported.Add(uint64(len(batch) - refused))
	}
	told.note(ctx, q.logger, err)
	clear(batch)
	return batch[:0]
}

// export is that of the exporter, whose panic loses the batch alone.
func (q *queue) export(ctx context.Context, batch []sdktrace.ReadOnlySpan) (refused int, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v", cause)
		}
	}()
	return q.exporter.export(ctx, batch)
}

// failing tells the log when sending begins to fail and when it works again.
type failing struct{ now bool }

func (f *failing) note(ctx context.Context, logger *slog.Logger, err error) {
	switch {
	case err != nil && !f.now:
		logger.WarnContext(ctx, "traces are lost until their collector takes them", "error", err)
	case err == nil && f.now:
		logger.InfoContext(ctx, "the collector takes traces again")
	}
	f.now = err != nil
}

// close sends what there is until ctx is done, and waits for the end of that.
func (q *queue) close(ctx context.Context) error {
	q.closed.Store(true)
	q.stopping.Do(func() { close(q.stop) })
	defer q.cancel()
	select {
	case <-q.done:
		return nil
	case <-ctx.Done():
	}
	lost := q.dropped.Load()
	q.cancel()
	<-q.done
	if q.dropped.Load() == lost {
		return nil
	}
	return fmt.Errorf("send the last traces: %w", ctx.Err())
}
