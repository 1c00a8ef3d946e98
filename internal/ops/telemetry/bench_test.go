package telemetry_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/mcpd/mcpd/internal/base/observe"
	"github.com/mcpd/mcpd/internal/ops/telemetry"
)

func TestMetrics_allocations(t *testing.T) {
	m := counting(t, 1000)
	m.HostCallEnded("kv.get", "ok", time.Millisecond)
	m.CallEnded("tool", "t500", "client", "ok", time.Millisecond)
	m.CallEnded("tool", "nobody", "client", "ok", time.Millisecond)
	if n := testing.AllocsPerRun(100, func() {
		m.CallEnded("tool", "t500", "client", "ok", 1234*time.Microsecond)
		m.CallEnded("tool", "nobody", "client", "ok", time.Second)
		m.Denied("p")
		m.Limited("nobody")
		m.HostCallEnded("kv.get", "ok", time.Millisecond)
		m.Loaded("published", time.Millisecond)
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

// counting returns metrics with this number of tools.
func counting(t testing.TB, tools int) observe.Metrics {
	t.Helper()
	tel, err := telemetry.New(telemetry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	catalog := observe.Catalog{Policies: []string{"p"}}
	for i := range tools {
		catalog.Items = append(catalog.Items, observe.Item{Kind: "tool", Name: fmt.Sprint("t", i)})
	}
	tel.Metrics().Publish(catalog)
	return tel.Metrics()
}

func BenchmarkMetrics_call(b *testing.B) {
	m := counting(b, 1000)
	b.ReportAllocs()
	for b.Loop() {
		m.CallEnded("tool", "t500", "client", "ok", 1234*time.Microsecond)
	}
}

func BenchmarkMetrics_callParallel(b *testing.B) {
	m := counting(b, 1000)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			m.CallEnded("tool", "t500", "client", "ok", 1234*time.Microsecond)
		}
	})
}

func BenchmarkMetrics_hostCall(b *testing.B) {
	m := counting(b, 1)
	b.ReportAllocs()
	for b.Loop() {
		m.HostCallEnded("http.request", "ok", 1234*time.Microsecond)
	}
}

func BenchmarkPublish_1000Tools(b *testing.B) {
	m := counting(b, 1)
	var catalog observe.Catalog
	for i := range 1000 {
		catalog.Items = append(catalog.Items, observe.Item{Kind: "tool", Name: fmt.Sprint("t", i)})
	}
	b.ReportAllocs()
	for b.Loop() {
		m.Publish(catalog)
	}
}

func BenchmarkTracer_nil(b *testing.B) {
	var off observe.Tracer
	benchmarkCall(b, off, "")
}

func BenchmarkTracer_notSampled(b *testing.B) {
	benchmarkTraced(b, "always_off")
}

func BenchmarkTracer_sampled(b *testing.B) {
	benchmarkTraced(b, "always_on")
}

func benchmarkTraced(b *testing.B, sampler string) {
	// The queue is always full, so that only the path of the call is measured.
	tel, err := telemetry.New(telemetry.Options{LookupEnv: environment("OTEL_TRACES_EXPORTER", "console", "OTEL_TRACES_SAMPLER", sampler,
		"OTEL_BSP_MAX_QUEUE_SIZE", "1", "OTEL_BSP_SCHEDULE_DELAY", "3600000")})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = tel.Close(context.Background()) }()
	benchmarkCall(b, tel.Tracer(), parentOfMeta)
}

// benchmarkCall makes a call with three child spans.
func benchmarkCall(b *testing.B, tracer observe.Tracer, parent string) {
	ctx, remote := context.Background(), observe.Parent(parent, "")
	b.ReportAllocs()
	for b.Loop() {
		_, span := tracer.Start(ctx, observe.Call{Method: "tools/call", ID: "c1", RequestID: "r1", Via: "client", Parent: remote})
		span.Found("refund")
		for _, name := range [...]string{"gate", "policy", "script"} {
			span.Child(name).End()
		}
		span.End()
	}
}
