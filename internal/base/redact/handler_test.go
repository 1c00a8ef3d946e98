package redact_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"testing/slogtest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/base/redact"
)

// redactor redacts one value, "hunter2".
type redactor struct{}

func (redactor) Redact(text string) string { return strings.ReplaceAll(text, "hunter2", redact.Mark) }
func (v redactor) RedactJSON(raw json.RawMessage) json.RawMessage {
	return json.RawMessage(v.Redact(string(raw)))
}

// timeless is a text handler without times.
func timeless(to io.Writer) slog.Handler {
	return slog.NewTextHandler(to, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})
}

// valuer is a value that is computed when it is logged.
type valuer struct{ text string }

func (v valuer) LogValue() slog.Value {
	return slog.GroupValue(slog.String("deep", v.text), slog.Any("error", errors.New(v.text)))
}

// bugged panics when it is encoded or printed.
type bugged struct{}

func (bugged) MarshalJSON() ([]byte, error) { panic("hunter2") }
func (*bugged) Error() string               { panic("hunter2") }

func TestHandler_attributes(t *testing.T) {
	for _, test := range []struct {
		name  string
		value any
		want  string
	}{
		{"text", "is hunter2", `v="is [sensitive]"`},
		{"error", fmt.Errorf("read: %w", errors.New("hunter2")), `v="read: [sensitive]"`},
		{"a text of bytes", []byte("hunter2"), `v=[sensitive]`},
		{"a list", []string{"a", "hunter2"}, `v="[\"a\",\"[sensitive]\"]"`},
		{"a map", map[string]any{"hunter2": "hunter2"}, `v="{\"[sensitive]\":\"[sensitive]\"}"`},
		{"a struct", struct{ A []any }{[]any{1, "hunter2"}}, `v="{\"A\":[1,\"[sensitive]\"]}"`},
		{"a pointer", &struct{ A string }{"hunter2"}, `v="{\"A\":\"[sensitive]\"}"`},
		{"text marshaler", netip.MustParseAddr("::1"), `v=::1`},
		{"log valuer", valuer{"hunter2"}, `v.deep=[sensitive] v.error=[sensitive]`},
		{"func", func() {}, `v=0x`},
		{"panicking value", bugged{}, `v={}`},
		{"panicking error", new(bugged), `v="%!v(PANIC=Error method: [sensitive])"`},
		{"nothing", nil, `v=<nil>`},
		{"a number", 7, `v=7`},
		{"a time", time.Second, `v=1s`},
	} {
		var log bytes.Buffer
		slog.New(redact.NewHandler(timeless(&log), redactor{})).Info("m", "v", test.value)
		if want := "level=INFO msg=m " + test.want; !strings.HasPrefix(log.String(), want) {
			t.Errorf("%s: got\n%s\nwant\n%s", test.name, &log, want)
		}
	}
}

func TestHandler_messagesKeysGroups(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(redact.NewHandler(timeless(&log), redactor{}))
	logger = logger.With("hunter2", "hunter2").WithGroup("hunter2").With(slog.Group("g", "a", "hunter2"))
	logger.Error("no hunter2", "a", "hunter2", slog.Group("hunter2", "b", "x hunter2"))
	want := `level=ERROR msg="no [sensitive]" [sensitive]=[sensitive] [sensitive].g.a=[sensitive] [sensitive].a=[sensitive] [sensitive].[sensitive].b="x [sensitive]"` + "\n"
	if diff := cmp.Diff(want, log.String()); diff != "" {
		t.Errorf("log (-want +got)\n%s", diff)
	}
}

func TestText_jsonStaysValid(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(redact.NewHandler(slog.NewJSONHandler(&log, nil), redactor{}))
	logger.Info("m", "list", []any{1, "hunter2", map[string]any{"a": nil}})
	if !strings.HasSuffix(log.String(), `"msg":"m","list":[1,"[sensitive]",{"a":null}]}`+"\n") {
		t.Error(log.String())
	}
}

// late redacts values that are added after a logger was created.
type late struct{ redactor *redactor }

func (l *late) Redact(text string) string {
	if l.redactor == nil {
		return text
	}
	return l.redactor.Redact(text)
}
func (l *late) RedactJSON(raw json.RawMessage) json.RawMessage {
	return json.RawMessage(l.Redact(string(raw)))
}

func TestHandler_laterValue(t *testing.T) {
	var log bytes.Buffer
	l := new(late)
	logger := slog.New(redact.NewHandler(timeless(&log), l)).With("a", "hunter2")
	l.redactor = new(redactor)
	logger.Info("m")
	if log.String() != "level=INFO msg=m a=[sensitive]\n" {
		t.Error(log.String())
	}
}

func TestHandler_independentLoggers(t *testing.T) {
	var log bytes.Buffer
	base := slog.New(redact.NewHandler(timeless(&log), redactor{})).With("a", 1).WithGroup("g").With("b", 2)
	one, two := base.With("c", 3), base.With("d", 4)
	one.Info("m")
	two.Info("m")
	if log.String() != "level=INFO msg=m a=1 g.b=2 g.c=3\nlevel=INFO msg=m a=1 g.b=2 g.d=4\n" {
		t.Error(log.String())
	}
}

func TestHandler_slogtest(t *testing.T) {
	var log bytes.Buffer
	slogtest.Run(t, func(*testing.T) slog.Handler {
		log.Reset()
		return redact.NewHandler(slog.NewJSONHandler(&log, nil), redactor{})
	}, func(t *testing.T) map[string]any {
		var got map[string]any
		if err := json.Unmarshal(log.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		return got
	})
}

// taken is a handler that accepts records from a level on, and drops them.
type taken struct{ slog.Level }

func (t taken) Enabled(_ context.Context, l slog.Level) bool { return l >= t.Level }
func (taken) Handle(context.Context, slog.Record) error      { return nil }
func (t taken) WithAttrs([]slog.Attr) slog.Handler           { return t }
func (t taken) WithGroup(string) slog.Handler                { return t }
func record(ctx context.Context, l *slog.Logger, at slog.Level) {
	l.LogAttrs(ctx, at, "a call failed", slog.String("tool", "t"), slog.String("call_id", "c"), slog.String("request_id", "r"), slog.Int("n", 1), slog.Duration("took", 1))
}

// Five attributes fit into a record without allocation.
func TestHandler_allocations(t *testing.T) {
	logger := slog.New(redact.NewHandler(taken{slog.LevelInfo}, redactor{}))
	for _, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo} {
		if got := testing.AllocsPerRun(1000, func() { record(t.Context(), logger, level) }); got > 0 {
			t.Errorf("%s: %v allocations", level, got)
		}
	}
}

func BenchmarkHandler(b *testing.B) {
	for name, level := range map[string]slog.Level{"unwritten": slog.LevelDebug, "written": slog.LevelInfo} {
		b.Run(name, func(b *testing.B) {
			logger := slog.New(redact.NewHandler(taken{slog.LevelInfo}, redactor{}))
			b.ReportAllocs()
			for b.Loop() {
				record(b.Context(), logger, level)
			}
		})
	}
}
