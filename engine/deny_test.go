package engine_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/extensions/telemetry"
	"github.com/mcpd/mcpd/identity"
)

// If calls are denied by default, a tool without an allow rule is not listed, and its calls end
// before their arguments are read. A Go policy that allows does not count as an allow rule.
func TestDefaultDeny_hidesUncovered(t *testing.T) {
	s := server(t, engine.Options{
		Files: engine.Files{
			Config: files("mcpd.hcl", "server {\n  default_decision = \"deny\"\n}\n"),
			Tools: files("t.hcl", addTool+`
tool "open" {
  run = <<JS
    return 1;
  JS
}
policy "open" {
  tools  = ["open"]
  allow  = "true"
  reason = "never"
}
`),
		},
		Policies: []engine.Policy{func(engine.PolicyInput) engine.Decision { return engine.Allow() }},
	})
	visible := s.Visible(t.Context(), call.Tools, identity.Caller{Principal: identity.Anonymous()})
	if len(visible.Tools) != 1 || visible.Tools[0].Name() != "open" {
		t.Errorf("%d tools are listed", len(visible.Tools))
	}
	_, err := s.Call(t.Context(), "add", map[string]any{"a": "no number"})
	var failed *call.Error
	if !errors.As(err, &failed) || failed.Code != call.PolicyDenied {
		t.Errorf("got %v", err)
	}
	if _, err := s.Call(t.Context(), "open", nil); err != nil {
		t.Error(err)
	}
}

// fewTools are allowed if n is below ten.
const fewTools = `
tool "few" {
  input "n" { type = number }
  run = "return 1"
}
tool "half" {
  input "n" { type = number }
  run = "return 1"
}
tool "told" {
  input "tenant" {
    type = string
    from = "principal.claims.tenant"
  }
  run = "return 1"
}
tool "vast" {
  timeout = "30s"
  run = "return new Array(150000).fill([])"
}
policy "few" {
  tools  = ["few", "half"]
  when   = "args.n < 10.0"
  allow  = "true"
  reason = "never"
}
policy "all" {
  tools  = ["told", "vast"]
  allow  = "true"
  reason = "never"
}
policy "small" {
  tools  = ["vast"]
  on     = "result"
  deny   = "size(result) > 1000000"
  reason = "never"
}
`

// Denials by other causes than policies in files have names in metrics, logs and audit records.
// Callers get the messages.
func TestDeniedBy_otherCauses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	log := &logBuffer{}
	s := server(t, engine.Options{
		Extensions: []engine.Extension{telemetry.New(telemetry.Options{})}, Logger: log.logger(),
		Files: engine.Files{
			Config: files("mcpd.hcl", "server {\n  default_decision = \"deny\"\n}\n"+auditBlock(path, "")),
			Tools:  files("t.hcl", addTool+fewTools),
		},
		Policies: []engine.Policy{func(in engine.PolicyInput) engine.Decision {
			switch {
			case in.Tool != "half":
				return engine.Allow()
			case in.Args["n"] == 3.0:
				panic("hunter2")
			}
			return engine.Deny("Closed")
		}},
	})
	var told []string
	for _, r := range []call.Request{toolCall("add", `{}`), toolCall("few", `{"n":10}`), toolCall("few", `{"n":1}`), toolCall("half", `{"n":1}`), toolCall("half", `{"n":3}`), toolCall("told", `{}`), toolCall("vast", `{}`)} {
		answer := "ok"
		if err := s.Execute(t.Context(), r).Err; err != nil {
			answer = string(err.Code) + ": " + err.Message
		}
		told = append(told, answer)
	}
	if diff := cmp.Diff([]string{
		"POLICY_DENIED: no policy allows this call", "POLICY_DENIED: no policy allows this call", "ok", "POLICY_DENIED: Closed", "POLICY_DENIED: denied: a policy failed",
		"POLICY_DENIED: the server cannot compute \"tenant\" for this caller", "POLICY_DENIED: denied by policy",
	}, told); diff != "" {
		t.Errorf("messages for callers (-want +got)\n%s", diff)
	}
	metrics := metricsOf(s)
	for _, series := range []string{`mcpd_denials_total{policy="(default)"} 2`, `mcpd_denials_total{policy="(go)"} 2`, `mcpd_denials_total{policy="(from)"} 1`,
		`mcpd_denials_total{policy="(result)"} 1`, `mcpd_denials_total{policy="other"} 0`} {
		if !strings.Contains(metrics, series+"\n") {
			t.Errorf("the metrics lack %s", series)
		}
	}
	var by []string
	for _, l := range outcomesOf(t, s, path) {
		by = append(by, l.DeniedBy)
		if said := "denied_by=" + l.DeniedBy; l.DeniedBy != "" && !strings.Contains(log.String(), said) {
			t.Errorf("the log lacks %s", said)
		}
	}
	if diff := cmp.Diff([]string{"(default)", "(default)", "", "(go)", "(go)", "(from)", "(result)"}, by); diff != "" {
		t.Errorf("denied_by in the audit log (-want +got)\n%s", diff)
	}
}
