package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/mcpd/mcpd/internal/base/observe"
)

// sink is an exporter that the test blocks or makes fail.
type sink struct {
	hold chan struct{} // nil does not block
	err  error

	mu      sync.Mutex
	batches []int
}

func (s *sink) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if s.hold != nil {
		select {
		case <-s.hold:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.batches = append(s.batches, len(spans))
	return s.err
}

func (s *sink) Shutdown(context.Context) error { return nil }

func (s *sink) total() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, batch := range s.batches {
		n += batch
	}
	return n
}

// traced returns a tracer that exports to e, and its queue.
func traced(e sdktrace.SpanExporter, size, batch int) (observe.Tracer, *batchProcessor) {
	s := settings{exporter: e, sampler: sdktrace.AlwaysSample(), queue: queueSettings{size: size, batch: batch, delay: time.Second, patience: 10 * time.Second}}
	q := newBatchProcessor(s.queue, e, slog.New(slog.DiscardHandler))
	return observe.NewTracer(newRecorder(s, q, "")), q
}

func spans(t observe.Tracer, n int) {
	for range n {
		_, span := t.Start(context.Background(), observe.Call{Method: "tools/call"})
		span.End()
	}
}

func TestQueue_batches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sink{}
		tracer, q := traced(s, 100, 10)
		spans(tracer, 19)
		synctest.Wait()
		if got := s.total(); got != 10 {
			t.Errorf("%d spans sent with one full batch, want 10", got)
		}
		time.Sleep(time.Second) // fake time
		synctest.Wait()
		if got := s.total(); got != 19 {
			t.Errorf("%d spans sent after the delay, want 19", got)
		}
		if err := q.close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A collector that does not respond delays no call: no fake time passes.
func TestQueue_slowCollector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size, batch, made = 50, 10, 1000
		s := &sink{hold: make(chan struct{})}
		tracer, q := traced(s, size, batch)
		spans(tracer, batch)
		synctest.Wait() // the first batch is in flight
		began := time.Now()
		spans(tracer, made)
		if took := time.Since(began); took != 0 {
			t.Errorf("calls waited %v", took)
		}
		if got := q.dropped.Load(); got != made-size {
			t.Errorf("%d spans dropped, want %d", got, made-size)
		}
		close(s.hold)
		if err := q.close(t.Context()); err != nil {
			t.Error(err)
		}
		if got := s.total(); got != batch+size || q.exported.Load() != batch+size {
			t.Errorf("%d spans sent, %d counted, want %d", got, q.exported.Load(), batch+size)
		}
	})
}

func TestQueue_closeTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sink{hold: make(chan struct{})}
		tracer, q := traced(s, 100, 10)
		spans(tracer, 35)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		began := time.Now()
		if err := q.close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("close returned %v", err)
		}
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("close took %v, want 3s", took)
		}
		if got := q.dropped.Load(); got != 35 {
			t.Errorf("%d spans counted as dropped, want 35", got)
		}
		spans(tracer, 1)
		if got := q.dropped.Load(); got != 36 {
			t.Errorf("%d spans counted as dropped after one more, want 36", got)
		}
		if err := q.close(t.Context()); err != nil {
			t.Errorf("second close returned %v", err)
		}
	})
}

func TestQueue_closeFlushes(t *testing.T) {
	for range 100 {
		s := &sink{}
		tracer, q := traced(s, 100, 10)
		spans(tracer, 5)
		if err := q.close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(s.batches) != 1 || s.batches[0] != 5 {
			t.Fatalf("batches %v", s.batches)
		}
	}
}

func TestQueue_droppedBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sink{hold: make(chan struct{})}
		tracer, q := traced(s, 100, 10)
		spans(tracer, 10)
		time.Sleep(10 * time.Second) // fake time: the timeout of a batch
		synctest.Wait()
		if got := q.dropped.Load(); got != 10 {
			t.Errorf("%d spans dropped, want 10", got)
		}
		close(s.hold)
		spans(tracer, 10)
		if err := q.close(t.Context()); err != nil || s.total() != 10 {
			t.Errorf("%d spans sent, %v", s.total(), err)
		}
	})
}

func TestQueue_concurrentClose(t *testing.T) {
	s := &sink{}
	tracer, q := traced(s, 1000, 7)
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() { spans(tracer, 200) })
	}
	callers.Go(func() { _ = q.close(context.Background()) })
	callers.Wait()
	if got := uint64(s.total()); got != q.exported.Load() || got+q.dropped.Load() > 1600 {
		t.Errorf("%d spans sent, %d counted, %d dropped", got, q.exported.Load(), q.dropped.Load())
	}
}
