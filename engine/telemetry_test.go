package engine_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/engine"
)

// TestTheSpanOfPoliciesTellsWhatTheyCameTo for a call that they allow, and one that one of
// them denies.
func TestTheSpanOfPoliciesTellsWhatTheyCameTo(t *testing.T) {
	const tools = `
tool "add" {
  input "n" { type = number }
  run = "return 1"
}`
	const config = `
policy "small" {
  tools  = ["add"]
  allow  = "args.n < 10.0"
  reason = "too large"
}`
	var console bytes.Buffer
	s := server(t, engine.Options{
		Tools: files("t.hcl", tools), Config: files("mcpd.hcl", config), Telemetry: &engine.Telemetry{Console: &console},
		LookupEnv: func(name string) (string, bool) { return "console", name == "OTEL_TRACES_EXPORTER" },
	})
	for _, n := range []int{1, 10} {
		_, _ = s.Call(t.Context(), "add", map[string]any{"n": n})
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	var got []map[string]any
	for lines := json.NewDecoder(&console); lines.More(); {
		var span struct {
			Name       string
			Attributes map[string]any
		}
		if err := lines.Decode(&span); err != nil {
			t.Fatal(err)
		}
		if span.Name == "policy" {
			got = append(got, span.Attributes)
		}
	}
	want := []map[string]any{
		{"mcpd.policy.decision": "allow"},
		{"mcpd.policy.decision": "deny", "mcpd.policy.name": "small", "error.type": "POLICY_DENIED"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
