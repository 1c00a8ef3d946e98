package engine_test

import (
	"errors"
	"testing"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
)

func TestFrom_type(t *testing.T) {
	s := server(t, engine.Options{Files: engine.Files{Tools: files("t.hcl", `
tool "whose" {
  input "tenant" {
    type    = string
    pattern = "^[a-z]+$"
    from    = "principal.claims.tenant"
  }
  run = <<JS
    return input.tenant;
  JS
}
`)}})
	for _, test := range []struct {
		claim any
		want  call.Code
	}{
		{"acme", ""}, {"../../etc", call.PolicyDenied}, {map[string]any{"evil": true}, call.PolicyDenied}, {nil, call.PolicyDenied},
	} {
		principal := identity.Anonymous()
		if test.claim != nil {
			principal.Claims["tenant"] = test.claim
		}
		got := call.Code("")
		if result := s.Execute(t.Context(), call.Request{Name: "whose", Caller: identity.Caller{Principal: principal}}); result.Err != nil {
			got = result.Err.Code
		}
		if got != test.want {
			t.Errorf("a claim of %v ends with %q, want %q", test.claim, got, test.want)
		}
	}
	// Callers cannot pass it as an argument.
	if _, err := s.Call(t.Context(), "whose", map[string]any{"tenant": "acme"}); err == nil {
		t.Error("the caller chose its own tenant")
	}
}

func TestHide_invalidArguments(t *testing.T) {
	s := server(t, engine.Options{Files: engine.Files{Tools: files("t.hcl", `
tool "hidden" {
  input "k" { type = string }
  run = <<JS
    return 1;
  JS
}
policy "hide" {
  tools    = ["hidden"]
  deny     = "true"
  reason   = "nobody may know"
  disclose = "hide"
}
`)}})
	for _, args := range []any{nil, []int{1}, 7, map[string]any{"x": 1}} {
		_, err := s.Call(t.Context(), "hidden", args)
		var failed *call.Error
		if !errors.As(err, &failed) || failed.Code != call.ToolNotFound || failed.Schema != nil {
			t.Errorf("%v: %v", args, err)
		}
	}
}
