package engine_test

import (
	"errors"
	"testing"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
)

// Where the operator denies by default, a tool that no allow rule covers is not
// listed, and its calls end before their arguments are looked at. A Go policy
// that allows does not cover it.
func TestWhatNoPolicyCoversIsNeitherListedNorLookedAt(t *testing.T) {
	s := server(t, engine.Options{
		Config:   files("mcpd.hcl", "server {\n  default_decision = \"deny\"\n}\n"),
		Policies: []engine.Policy{func(identity.Agent, string, map[string]any) engine.Decision { return engine.Allow() }},
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
	})
	visible := s.Visible(t.Context(), engine.Tools, identity.Caller{Principal: identity.Anonymous()})
	if len(visible.Tools) != 1 || visible.Tools[0].Name() != "open" {
		t.Errorf("%d tools are listed", len(visible.Tools))
	}
	_, err := s.Call(t.Context(), "add", map[string]any{"a": "no number"})
	var failed *engine.CallError
	if !errors.As(err, &failed) || failed.Code != engine.PolicyDenied {
		t.Errorf("got %v", err)
	}
	if _, err := s.Call(t.Context(), "open", nil); err != nil {
		t.Error(err)
	}
}
