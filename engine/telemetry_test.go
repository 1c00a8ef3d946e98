package engine_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/extensions/telemetry"
)

// span is a span on the console.
type span struct {
	Name, Trace, ID, Parent string
	Attributes              map[string]any
}

// UnmarshalJSON decodes a span of OpenTelemetry's console exporter.
func (s *span) UnmarshalJSON(text []byte) error {
	var written struct {
		Name                string
		SpanContext, Parent struct{ TraceID, SpanID string }
		Attributes          []struct {
			Key   string
			Value struct{ Value any }
		}
	}
	if err := json.Unmarshal(text, &written); err != nil {
		return err
	}
	*s = span{Name: written.Name, Trace: written.SpanContext.TraceID, ID: written.SpanContext.SpanID, Parent: written.Parent.SpanID, Attributes: map[string]any{}}
	for _, a := range written.Attributes {
		s.Attributes[a.Key] = a.Value.Value
	}
	return nil
}

// spansOf returns the spans of a closed server, in the order of their ends.
func spansOf(t *testing.T, console *bytes.Buffer) (all []span) {
	t.Helper()
	for lines := json.NewDecoder(console); lines.More(); {
		var s span
		if err := lines.Decode(&s); err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}

// onConsole sends spans to the console.
func onConsole(name string) (string, bool) { return "console", name == "OTEL_TRACES_EXPORTER" }

// metricsOf returns the Prometheus metrics of a server.
func metricsOf(s *engine.Server) string {
	w := httptest.NewRecorder()
	s.Metrics().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return w.Body.String()
}

// judgedTools have the policies judgedBy, before and after their calls.
const judgedTools = `
tool "add" {
  input "n" { type = number }
  run = "return 1"
}
tool "say" {
  input "text" { type = string }
  run = "return input.text"
}`

const judgedBy = `
policy "small" {
  tools  = ["add"]
  allow  = "args.n < 10.0"
  reason = "too large"
}
policy "words" {
  on     = "result"
  tools  = ["say"]
  deny   = "string(result) == 'secret'"
  reason = "no"
}`

// The span has the decision: allowed, denied by a policy, and the same for results.
func TestTelemetry_policySpan(t *testing.T) {
	var console bytes.Buffer
	s := server(t, engine.Options{
		Files: engine.Files{Tools: files("t.hcl", judgedTools), Config: files("mcpd.hcl", judgedBy), LookupEnv: onConsole}, Extensions: []engine.Extension{telemetry.New(telemetry.Options{Console: &console})},
	})
	for _, n := range []int{1, 10} {
		_, _ = s.Call(t.Context(), "add", map[string]any{"n": n})
	}
	for _, text := range []string{"plain", "secret"} {
		_, _ = s.Call(t.Context(), "say", map[string]any{"text": text})
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	var got []map[string]any
	for _, s := range spansOf(t, &console) {
		if s.Name == "policy" {
			got = append(got, s.Attributes)
		}
	}
	want := []map[string]any{
		{"mcpd.policy.decision": "allow"},
		{"mcpd.policy.decision": "deny", "mcpd.policy.name": "small", "error.type": "POLICY_DENIED"},
		{"mcpd.policy.decision": "allow"},
		{"mcpd.policy.decision": "allow", "mcpd.policy.on": "result"},
		{"mcpd.policy.decision": "allow"},
		{"mcpd.policy.decision": "deny", "mcpd.policy.on": "result", "mcpd.policy.name": "words", "error.type": "POLICY_DENIED"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// The record has the ids of the span, and the MCP method.
func TestTelemetry_auditSpan(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	var console bytes.Buffer
	s := server(t, engine.Options{
		Files: engine.Files{
			Tools:     files("t.hcl", `tool "one" { run = "return 1" }`),
			Config:    files("mcpd.hcl", auditBlock(path, "")),
			LookupEnv: onConsole,
		},
		Extensions: []engine.Extension{telemetry.New(telemetry.Options{Console: &console})},
	})
	_, _ = s.Call(t.Context(), "one", nil)
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	type ids struct{ Trace, Span, Method string }
	var want, got []ids
	for _, s := range spansOf(t, &console) {
		if strings.HasPrefix(s.Name, "tools/call") {
			want = append(want, ids{s.Trace, s.ID, "tools/call"})
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		var record struct {
			Kind  string
			Trace string `json:"trace_id"`
			Span  string `json:"span_id"`
			MCP   string `json:"mcp.method.name"`
		}
		if err := json.Unmarshal(line, &record); err != nil {
			t.Fatal(err)
		}
		if record.Kind == "outcome" {
			got = append(got, ids{record.Trace, record.Span, record.MCP})
		}
	}
	if diff := cmp.Diff(want, got); diff != "" || len(want) != 1 || want[0].Span == "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
