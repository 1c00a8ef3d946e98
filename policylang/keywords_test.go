package policylang_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/policylang"
)

// Validators match keywords by case. If policies did not, they would prune has() of an argument
// that callers can still send.
func TestSchema_keywordsAreCaseSensitive(t *testing.T) {
	env, err := policylang.NewEnv(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	deny := diag.WholeFile("p.hcl", "has(args.x) && args.x == 'bad'")
	for _, schema := range []string{
		`{"type":"object","properties":{"y":{"type":"string"}},"AdditionalProperties":false}`,
		`{"type":"object","properties":{"y":{"type":"string"}},"additionalProperties":true,"additionalproperties":false}`,
	} {
		policy, problems := env.Compile(
			policylang.Source{Name: "cap", Deny: &deny, Reason: "x is bad"},
			policylang.Tool{Name: "t", Schema: json.RawMessage(schema)},
		)
		if problems.HasErrors() {
			t.Fatalf("%s: %v", schema, problems)
		}
		decision := policy.Decide(t.Context(), policylang.Input{
			Caller: identity.Caller{Principal: identity.Anonymous()}, Args: map[string]any{"x": "bad"}, Now: time.Unix(0, 0),
		})
		if decision.Outcome != policylang.Deny || decision.Reason != "x is bad" {
			t.Errorf("%s: %v %q", schema, decision.Outcome, decision.Reason)
		}
	}
}
