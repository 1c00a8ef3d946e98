package engine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
)

func TestSensitive_variables(t *testing.T) {
	log := &logBuffer{}
	s := server(t, engine.Options{
		Logger: log.logger(),
		Files: engine.Files{
			Config: files("mcpd.hcl", `
variable "pin" {
  type      = string
  default   = "hunter2"
  sensitive = true
}
`),
			Tools: files("tools.hcl", `
tool "throws" {
  run = <<JS
    console.log("the pin", vars.pin);
    log.warn("fields", { pin: vars.pin });
    throw new ToolError("no " + vars.pin, { details: { pin: vars.pin } });
  JS
}
tool "denied" { run = "return 1" }
policy "tells" {
  tools  = ["denied"]
  deny   = "vars.pin != ''"
  reason = <<CEL
    "ask for " + vars.pin
  CEL
}
hook "tells" {
  on  = ["error"]
  run = <<JS
    log.info("a hook with " + vars.pin);
    throw new Error("a hook without " + vars.pin);
  JS
}
`),
		}})
	for tool, want := range map[string]string{"throws": "no [sensitive]", "denied": "ask for [sensitive]"} {
		_, err := s.Call(t.Context(), tool, nil)
		failure, ok := errors.AsType[*call.Error](err)
		if !ok || failure.Message != want || strings.Contains(string(failure.Details), "hunter2") {
			t.Errorf("%s: the caller gets %v", tool, err)
		}
	}
	if err := s.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	text := log.String()
	for _, want := range []string{"the pin [sensitive]", "a hook with [sensitive]", "a hook without [sensitive]"} {
		if !strings.Contains(text, want) {
			t.Errorf("the log lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "hunter2") {
		t.Errorf("the log holds the value:\n%s", text)
	}
}

// leakingPolicies are policies that output what they see of a call of openTool, and the expected texts.
var leakingPolicies = []struct{ policy, want string }{
	{`policy "tells" {
  tools  = ["open"]
  deny   = "args.password != ''"
  reason = <<CEL
    "the password " + args.password + " with the pin " + string(args.pin) + " is known"
  CEL
}`, "the password [sensitive] with the pin [sensitive] is known"},
	{`policy "asks" {
  tools             = ["open"]
  requires_approval = "true"
  reason            = <<CEL
    "Open it with " + args.password + "?"
  CEL
}`, "Open it with [sensitive]?"},
	{`policy "fails" {
  tools  = ["open"]
  deny   = "int(args.password) > 5"
  reason = "no"
}`, "denied"},
	{`limit "fails" {
  tools = ["open"]
  rate  = "1/h"
  key   = "string(int(args.password))"
}`, "denied"},
	{`policy "judges" {
  on     = "result"
  tools  = ["open"]
  deny   = "result.inside != ''"
  reason = <<CEL
    "there is " + result.inside + " inside, and " + result.open
  CEL
}`, "there is [sensitive] inside, and [sensitive]"},
	{`# in Go`, "Go knows [sensitive]"},
	{`# in Go, and fails`, "denied: a policy failed"},
}

// openTool has sensitive inputs and outputs, and a hook that logs everything.
const openTool = `
tool "open" {
  input "password" {
    type      = string
    sensitive = true
  }
  input "pin" {
    type      = integer
    sensitive = true
    default   = 31415926
  }
  output "open" { type = string }
  output "inside" {
    type      = string
    sensitive = true
  }
  run = "return { open: input.password, inside: 'gold-bars' }"
}
hook "tells" {
  on  = ["error", "end"]
  run = "log.info(JSON.stringify(event))"
}
`

// Reasons reach the caller, the approving user, hooks, the log and the audit log.
func TestSensitive_policyReasons(t *testing.T) {
	for _, test := range leakingPolicies {
		seen := callUnder(t, test.policy, "hunter2")
		if !strings.Contains(seen["the caller"], test.want) {
			t.Errorf("%s: the caller gets %s", test.policy, seen["the caller"])
		}
		for where, text := range seen {
			for _, value := range []string{"hunter2", "31415926", "gold-bars"} {
				if strings.Contains(text, value) {
					t.Errorf("%s: %s sees %s: %s", test.policy, where, value, text)
				}
			}
		}
	}
}

// A truncated value would not be recognized later.
func TestSensitive_truncatedReason(t *testing.T) {
	for i, want := range map[int]string{0: "the password [sensitive] with the pin [sensitive] is known", 4: "there is [sensitive] inside, and [sensitive]"} {
		for where, text := range callUnder(t, leakingPolicies[i].policy, strings.Repeat("hunter2", 1000)) {
			if strings.Contains(text, "hunter2") || !strings.Contains(text, want) {
				t.Errorf("%s sees %.200s", where, text)
			}
		}
	}
}

// callUnder calls openTool under a policy with a password, and returns all outputs by
// destination.
func callUnder(t *testing.T, policy, password string) map[string]string {
	t.Helper()
	log := &logBuffer{}
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	o := engine.Options{
		Logger: log.logger(), Files: engine.Files{
			Tools:  files("open.hcl", openTool+policy),
			Config: files("mcpd.hcl", auditBlock(path, "  capture = [\"*\"]\n")),
		},
	}
	if strings.HasPrefix(policy, "# in Go") {
		o.Policies = []engine.Policy{func(in engine.PolicyInput) engine.Decision {
			said := "Go knows " + in.Args["password"].(string)
			if strings.HasSuffix(policy, "fails") {
				panic(said)
			}
			return engine.Deny(said)
		}}
	}
	s := server(t, o)
	request := deployCall("", nil)
	request.Name, request.Arguments = "open", []byte(`{"password":"`+password+`"}`)
	result := s.Execute(t.Context(), request)
	told := outcomeText(result)
	if result.Ask != nil {
		told = string(result.Ask.Requests[0].Params)
	}
	if err := errors.Join(s.Drain(t.Context()), s.Close(context.Background())); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{"the caller": told, "the log": log.String(), "the audit log": string(written)}
}
