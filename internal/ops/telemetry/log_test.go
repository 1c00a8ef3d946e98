package telemetry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/slogtest"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/base/observe"
	"github.com/mcpd/mcpd/internal/ops/telemetry"
)

func TestLogHandler_slogtest(t *testing.T) {
	var out bytes.Buffer
	slogtest.Run(t, func(*testing.T) slog.Handler {
		out.Reset()
		return observe.LogHandler(slog.NewJSONHandler(&out, nil), nil)
	}, func(t *testing.T) map[string]any {
		var record map[string]any
		if err := json.Unmarshal(out.Bytes(), &record); err != nil {
			t.Fatal(err)
		}
		return record
	})
}

func TestLogHandler_addsIDs(t *testing.T) {
	tel := start(t, telemetry.Options{LookupEnv: environment("OTEL_TRACES_EXPORTER", "console")})
	ctx, span := tel.Tracer().Start(t.Context(), observe.Call{Method: "tools/call", Parent: observe.Parent(parentOfMeta, "")})
	defer span.End()
	traceparent, _ := tel.Tracer().Inject(ctx)
	spanID := " span_id=" + traceparent[36:52]
	asked := observe.Request{ID: "r1", Call: "c1"}
	both := " trace_id=" + traceparent[3:35] + spanID
	for name, row := range map[string]struct {
		ctx  context.Context
		log  func(context.Context, *slog.Logger)
		want string
	}{
		"no ids":             {t.Context(), func(ctx context.Context, l *slog.Logger) { l.InfoContext(ctx, "m", "a", 1) }, "msg=m a=1"},
		"both":               {ctx, func(ctx context.Context, l *slog.Logger) { l.InfoContext(ctx, "m", "a", 1) }, "msg=m a=1" + both},
		"one is there":       {ctx, func(ctx context.Context, l *slog.Logger) { l.InfoContext(ctx, "m", "trace_id", "own") }, "msg=m trace_id=own" + spanID},
		"one is the log's":   {ctx, func(ctx context.Context, l *slog.Logger) { l.With("trace_id", "own").InfoContext(ctx, "m") }, "msg=m trace_id=own" + spanID},
		"those of a request": {asked.In(t.Context()), func(ctx context.Context, l *slog.Logger) { l.InfoContext(ctx, "m") }, "msg=m call_id=c1 request_id=r1"},
		"one of a request is there": {asked.In(ctx), func(ctx context.Context, l *slog.Logger) {
			l.With("call_id", "own").InfoContext(ctx, "m")
		}, "msg=m call_id=own request_id=r1" + both},
		"a group": {ctx, func(ctx context.Context, l *slog.Logger) {
			l.With("x", 1).WithGroup("g").With("y", 2).WithGroup("h").InfoContext(ctx, "m", "trace_id", "z")
		}, "msg=m x=1" + both + " g.y=2 g.h.trace_id=z"},
	} {
		var out bytes.Buffer
		row.log(row.ctx, slog.New(observe.LogHandler(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: withoutTime}), tel.IDs)))
		if diff := cmp.Diff(row.want, strings.TrimSpace(out.String())); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

func withoutTime(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
		return slog.Attr{}
	}
	return a
}

// silent accepts all records and drops them.
type silent struct{ slog.Handler }

func (silent) Enabled(context.Context, slog.Level) bool { return true }

func TestLogHandler_allocations(t *testing.T) {
	logger, ctx := slog.New(observe.LogHandler(silent{slog.DiscardHandler}, new(telemetry.Telemetry).IDs)), t.Context()
	if n := testing.AllocsPerRun(100, func() { logger.LogAttrs(ctx, slog.LevelInfo, "m", slog.Int("a", 1)) }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func BenchmarkLogHandler(b *testing.B) {
	tel := start(b, telemetry.Options{LookupEnv: environment("OTEL_TRACES_EXPORTER", "console")})
	logger := slog.New(observe.LogHandler(slog.NewTextHandler(io.Discard, nil), tel.IDs))
	ctx, span := tel.Tracer().Start(b.Context(), observe.Call{Method: "tools/call"})
	defer span.End()
	b.ReportAllocs()
	for b.Loop() {
		logger.LogAttrs(ctx, slog.LevelInfo, "m", slog.Int("a", 1))
	}
}
