package configcheck_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/language/configcheck"
	"github.com/mcpd/mcpd/internal/language/hclfile"
)

func TestWhatNoAllowPolicyCoversIsWarnedOfWhereTheDefaultIsToDeny(t *testing.T) {
	const file = `tool "open" { run = "return 1" }
tool "asked" { run = "return 1" }
tool "bare" { run = "return 1" }
prompt "hello" {
  message "user" { text = "hi" }
}
policy "allows" {
  tools  = ["open"]
  allow  = "principal.id == 'ada'"
  reason = "no"
}
policy "asks" {
  tools             = ["*"]
  requires_approval = "true"
  reason            = "sure?"
}
policy "results" {
  on     = "result"
  tools  = ["bare"]
  deny   = "false"
  reason = "no"
}
`
	warning := func(place, what, kind string) string {
		return place + ": warning: no allow policy covers " + what + ": every call of it is denied; add a policy block whose " + kind +
			`s match it, with allow = "…"; a call that no such policy allows is denied here`
	}
	for operator, want := range map[string][]string{
		"server { default_decision = \"deny\" }\n": {
			warning("a.hcl:2:6", `tool "asked"`, "tool"), warning("a.hcl:3:6", `tool "bare"`, "tool"), warning("a.hcl:4:8", `prompt "hello"`, "prompt"),
		},
		"server { default_decision = \"allow\" }\n": nil,
		"": nil,
	} {
		got := said(configcheck.Check(config(t, operator), []*hclfile.Definitions{tools(t, "a.hcl", file)}, configcheck.Elsewhere{}))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s(-want +got)\n%s", operator, diff)
		}
	}
}

func TestToolsThatOneBlockBringsAreWarnedOfOnce(t *testing.T) {
	operator := config(t, "server { default_decision = \"deny\" }\ncodeact {}\n")
	var offers []configcheck.Offered
	for _, name := range []string{"call_tool", "describe_tool", "run_code"} {
		offers = append(offers, configcheck.Offered{Kind: "tool", Name: name, Range: operator.Codeact.Range})
	}
	want := []string{`mcpd.hcl:2:1: warning: no allow policy covers tools "call_tool", "describe_tool" and "run_code": every call of them is denied; ` +
		`add a policy block whose tools match them, with allow = "…"; a call that no such policy allows is denied here`}
	if diff := cmp.Diff(want, said(configcheck.Check(operator, nil, configcheck.Elsewhere{Offered: offers}))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
