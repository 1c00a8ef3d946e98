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

	"github.com/mcpd/mcpd/internal/telemetry"
)

func TestTheLogHandlerIsOne(t *testing.T) {
	var out bytes.Buffer
	slogtest.Run(t, func(*testing.T) slog.Handler {
		out.Reset()
		return telemetry.LogHandler(slog.NewJSONHandler(&out, nil))
	}, func(t *testing.T) map[string]any {
		var record map[string]any
		if err := json.Unmarshal(out.Bytes(), &record); err != nil {
			t.Fatal(err)
		}
		return record
	})
}

func TestRecordsGetTheIdsThatTheyLack(t *testing.T) {
	tel := start(t, telemetry.Options{LookupEnv: environment("OTEL_TRACES_EXPORTER", "console")})
	ctx, span := tel.Tracer().Start(t.Context(), telemetry.Call{Method: "tools/call", Parent: telemetry.Parent(parentOfMeta, "")})
	defer span.End()
	traceparent, _ := tel.Tracer().Inject(ctx)
	trace := " trace_id=" + traceparent[3:35] + " span_id=" + traceparent[36:52]
	both := telemetry.WithIDs(ctx, "r", "c")
	for name, row := range map[string]struct {
		ctx  context.Context
		log  func(context.Context, *slog.Logger)
		want string
	}{
		"no ids":           {t.Context(), func(ctx context.Context, l *slog.Logger) { l.InfoContext(ctx, "m", "a", 1) }, "msg=m a=1"},
		"all":              {both, func(ctx context.Context, l *slog.Logger) { l.InfoContext(ctx, "m", "a", 1) }, "msg=m a=1 request_id=r call_id=c" + trace},
		"a trace alone":    {ctx, func(ctx context.Context, l *slog.Logger) { l.InfoContext(ctx, "m") }, "msg=m" + trace},
		"no trace":         {telemetry.WithIDs(t.Context(), "r", ""), func(ctx context.Context, l *slog.Logger) { l.InfoContext(ctx, "m") }, "msg=m request_id=r"},
		"one is there":     {both, func(ctx context.Context, l *slog.Logger) { l.InfoContext(ctx, "m", "call_id", "own") }, "msg=m call_id=own request_id=r" + trace},
		"one is the log's": {both, func(ctx context.Context, l *slog.Logger) { l.With("call_id", "own").InfoContext(ctx, "m") }, "msg=m call_id=own request_id=r" + trace},
		"a group": {both, func(ctx context.Context, l *slog.Logger) {
			l.With("x", 1).WithGroup("g").With("y", 2).WithGroup("h").InfoContext(ctx, "m", "call_id", "z")
		}, "msg=m x=1 request_id=r call_id=c" + trace + " g.y=2 g.h.call_id=z"},
	} {
		var out bytes.Buffer
		row.log(row.ctx, slog.New(telemetry.LogHandler(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: withoutTime}))))
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

// silent takes all records and drops them.
type silent struct{ slog.Handler }

func (silent) Enabled(context.Context, slog.Level) bool { return true }

func TestARecordThatGetsNoIdsAllocatesNothing(t *testing.T) {
	logger, ctx := slog.New(telemetry.LogHandler(silent{slog.DiscardHandler})), t.Context()
	if n := testing.AllocsPerRun(100, func() { logger.LogAttrs(ctx, slog.LevelInfo, "m", slog.Int("a", 1)) }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func BenchmarkARecordWithIds(b *testing.B) {
	logger := slog.New(telemetry.LogHandler(slog.NewTextHandler(io.Discard, nil)))
	ctx := telemetry.WithIDs(b.Context(), "r", "c")
	b.ReportAllocs()
	for b.Loop() {
		logger.LogAttrs(ctx, slog.LevelInfo, "m", slog.Int("a", 1))
	}
}
