package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
)

func TestCallLog_saysWhoCalled(t *testing.T) {
	log := &logBuffer{}
	s := server(t, engine.Options{
		Logger: slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Files: engine.Files{Tools: files("t.hcl", `
tool "good" { run = "return 'the-value';" }
tool "bad" { run = "throw new Error('boom');" }
tool "shut" { run = "return 1;" }
tool "outer" {
  allow {
    call { tools = ["good"] }
  }
  run = "return await tools.good();"
}
policy "shut" {
  tools  = ["shut"]
  deny   = "true"
  reason = "closed"
}
`)},
	})
	caller := identity.Caller{
		Principal: identity.Principal{ID: "ada", Kind: identity.KindToken, Issuer: "https://id.example.com"}, Agent: identity.Agent{AgentID: "bot", RequestID: "r-1"},
	}
	type line struct {
		Message   string `json:"msg"`
		Level     string `json:"level"`
		Tool      string `json:"tool"`
		Request   string `json:"request_id"`
		Principal string `json:"principal"`
		Issuer    string `json:"issuer"`
		DeniedBy  string `json:"denied_by"`
		Code      string `json:"code"`
	}
	said := func(l line) line {
		l.Request, l.Principal, l.Issuer = "r-1", "ada", "https://id.example.com"
		return l
	}
	const failed, succeeded = "call failed", "call succeeded"
	for name, want := range map[string][]line{
		"good":    {said(line{Message: succeeded, Level: "DEBUG", Tool: "good"})},
		"outer":   {said(line{Message: succeeded, Level: "DEBUG", Tool: "good"}), said(line{Message: succeeded, Level: "DEBUG", Tool: "outer"})},
		"bad":     {said(line{Message: failed, Level: "WARN", Tool: "bad", Code: "EXECUTION_ERROR"})},
		"shut":    {said(line{Message: failed, Level: "INFO", Tool: "shut", Code: "POLICY_DENIED", DeniedBy: "shut"})},
		"missing": {said(line{Message: failed, Level: "INFO", Tool: "missing", Code: "TOOL_NOT_FOUND"})},
	} {
		began := len(log.String())
		s.Execute(t.Context(), call.Request{Name: name, Arguments: json.RawMessage("{}"), Caller: caller})
		var got []line
		for lines := json.NewDecoder(strings.NewReader(log.String()[began:])); lines.More(); {
			var l line
			if err := lines.Decode(&l); err != nil {
				t.Fatal(err)
			}
			got = append(got, l)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
	if strings.Contains(log.String(), "the-value") {
		t.Error("the log holds what a tool returned")
	}
}

// A log at level error must cost no more than no log.
func TestCallLog_debugOffCostsNothing(t *testing.T) {
	allocations := func(logger *slog.Logger) float64 {
		s := server(t, engine.Options{Logger: logger, Files: engine.Files{Tools: files("t.hcl", `tool "good" { run = "return 1;" }`)}})
		request := call.Request{Name: "good", Arguments: json.RawMessage("{}"), Caller: identity.Caller{Principal: identity.Anonymous()}}
		return testing.AllocsPerRun(200, func() {
			if result := s.Execute(context.Background(), request); result.Err != nil {
				t.Fatal(result.Err)
			}
		})
	}
	off := allocations(slog.New(slog.DiscardHandler))
	if on := allocations(slog.New(slog.NewTextHandler(&logBuffer{}, &slog.HandlerOptions{Level: slog.LevelInfo}))); on > off+0.5 {
		t.Errorf("%v allocations with a log from info on, %v without one", on, off)
	}
}

// logBuffer is a log that a test reads while the server writes it.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(line)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func (b *logBuffer) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// lineOf returns the first line of a log that says something.
func lineOf(log, said string) string {
	for line := range strings.Lines(log) {
		if strings.Contains(line, said) {
			return line
		}
	}
	return ""
}
