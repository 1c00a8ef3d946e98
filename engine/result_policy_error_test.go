package engine_test

import (
	"context"
	"errors"
	"testing"

	"github.com/mcpd/mcpd/engine"
)

// leak reveals a secret in every way except its result.
const leak = `
tool "leak" {
  input "how" { type = string }
  output "n" { type = integer }
  run = <<JS
    log.info("secret");
    progress(1, 2, "secret");
    switch (input.how) {
      case "tool": throw new ToolError("secret", { rows: ["secret"] });
      case "rpc": throw new RpcError(-32000, "secret", ["secret"]);
      case "error": throw new Error("secret");
      case "member": return { n: 1, secret: 1 };
    }
    return { n: 1 };
  JS
}
policy "nobody" {
  on     = "result"
  tools  = ["leak", "plain"]
  deny   = "true"
  reason = "no"
}
`

const hidden = "the tool failed; its message is hidden, because policies evaluate its results"

// Log records and progress are dropped, too.
func TestResultPolicy_masksErrors(t *testing.T) {
	s := unloaded(t, engine.Options{Files: engine.Files{Tools: files("leak.hcl", leak)}})
	goTool(t, s, "plain", func(context.Context) (string, error) { return "", errors.New("secret") })
	if _, err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ name, arguments, want string }{
		{"leak", `{"how":"tool"}`, "EXECUTION_ERROR: " + hidden},
		{"leak", `{"how":"rpc"}`, "EXECUTION_ERROR: " + hidden},
		{"leak", `{"how":"error"}`, "EXECUTION_ERROR: " + hidden},
		{"leak", `{"how":"member"}`, "EXECUTION_ERROR: " + hidden},
		{"leak", `{"how":"not"}`, "POLICY_DENIED: no"},
		{"leak", `{"how":1}`, "INVALID_INPUT: the arguments do not fit the tool's input schema: /how must be a string, not a number"},
		{"plain", `{}`, "EXECUTION_ERROR: " + hidden},
	} {
		told := &clientRecorder{}
		r := toolCall(test.name, test.arguments)
		r.Emit = told
		result := s.Execute(t.Context(), r)
		wantOutcome(t, result, test.want)
		if e := result.Err; e.Details != nil || e.RPC != nil || len(told.told) > 0 {
			t.Errorf("%s %s: notifications %v before %+v", test.name, test.arguments, told.told, e)
		}
	}
}

// The error was stored before the policy was added.
func TestResultPolicy_masksStoredErrors(t *testing.T) {
	const text = `
tool "leak" {
  run = "throw new ToolError('secret')"
}
policy "all" {
  requires_approval = "true"
  reason            = "Leaks"
}
`
	s, tools := resultPolicyServer(t, text)
	r := toolCall("leak", `{}`)
	r.Resume = respondWith(mustAsk(t, s.Execute(t.Context(), r)), "accept")
	wantOutcome(t, s.Execute(t.Context(), r), "EXECUTION_ERROR: secret")
	tools["lookup.hcl"] = files("lookup.hcl", text+"policy \"nobody\" {\n  on = \"result\"\n  deny = \"true\"\n  reason = \"no\"\n}\n")["lookup.hcl"]
	if _, err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantOutcome(t, s.Execute(t.Context(), r), "EXECUTION_ERROR: "+hidden)
}
