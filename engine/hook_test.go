package engine_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
)

const loginTool = `
tool "login" {
  input "user" { type = string }
  input "password" {
    type      = string
    sensitive = true
  }
  output "user" { type = string }
  output "token" {
    type      = string
    sensitive = true
  }
  run = <<JS
    return { user: input.user, token: "t-" + input.password };
  JS
}
`

func TestHook_redactsSensitive(t *testing.T) {
	var events []string
	log := &logBuffer{}
	s := server(t, engine.Options{
		Logger: log.logger(),
		Files: engine.Files{Tools: files("login.hcl", loginTool+`
hook "write" {
  on  = ["start", "end", "error"]
  run = <<JS
    log.info(JSON.stringify(event));
  JS
}
`)},
		Hooks: []engine.Hook{func(_ context.Context, e call.Event) {
			events = append(events, string(e.Phase)+" "+string(e.Arguments)+" "+string(e.Result))
		}},
	})
	result, err := s.Call(t.Context(), "login", map[string]any{"user": "ada", "password": "hunter2"})
	if err != nil || string(result.Value) != `{"user":"ada","token":"t-hunter2"}` {
		t.Fatalf("the caller gets %s, %v", result.Value, err)
	}
	if _, err := s.Call(t.Context(), "login", map[string]any{"password": "hunter2"}); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v", err)
	}
	want := []string{
		`start {"password":"[sensitive]","user":"ada"} `,
		`end {"password":"[sensitive]","user":"ada"} {"user":"ada","token":"[sensitive]"}`,
		`start {"password":"[sensitive]"} `,
		`error {"password":"[sensitive]"} `,
	}
	if diff := cmp.Diff(want, events); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if err := s.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if text := log.String(); strings.Contains(text, "hunter2") || strings.Count(text, "[sensitive]") < 4 {
		t.Errorf("the log of the hooks:\n%s", text)
	}
}

func TestHook_event(t *testing.T) {
	var last call.Event
	s := server(t, engine.Options{Files: engine.Files{Tools: files("add.hcl", addTool)}, Hooks: []engine.Hook{func(_ context.Context, e call.Event) { last = e }}})
	caller := identity.Caller{
		Principal: identity.Anonymous(), Agent: identity.Agent{AgentID: "bot", Model: "m-1", RequestID: "r-1", Metadata: map[string]string{"team": "qa"}},
		Source: identity.Source{Listener: "local"},
	}
	result := s.Execute(t.Context(), call.Request{Name: "add", Arguments: json.RawMessage(`{"a":2,"b":3}`), Caller: caller})
	if last.Duration < 0 {
		t.Errorf("the call took %s", last.Duration)
	}
	last.Duration = 0
	want := call.Event{
		Phase: call.End, Tool: "add", Kind: "tool", CallID: result.CallID, RootID: result.CallID, Leg: 1, Via: call.ViaClient, Caller: caller,
		Arguments: json.RawMessage(`{"a":2,"b":3}`), Result: json.RawMessage(`{"sum":5}`), Revision: s.Snapshot().Revision(),
	}
	if diff := cmp.Diff(want, last); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestHook_targets(t *testing.T) {
	log := &logBuffer{}
	s := server(t, engine.Options{Logger: log.logger(), Files: engine.Files{Tools: files("add.hcl", addTool+`
tool "other" { run = "return 1;" }
hook "adds" {
  on    = ["end"]
  tools = ["ad*"]
  run   = "log.info('for ' + event.tool);"
}
`)}})
	for _, tool := range []string{"add", "other"} {
		_, _ = s.Call(t.Context(), tool, map[string]any{"a": 1, "b": 2})
	}
	_, _ = s.Call(t.Context(), "other", nil)
	if err := s.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if text := log.String(); strings.Count(text, "for add") != 1 || strings.Contains(text, "for other") {
		t.Errorf("the log:\n%s", text)
	}
}

func TestHook_failure(t *testing.T) {
	s := server(t, engine.Options{
		Files: engine.Files{Tools: files("add.hcl", addTool+"hook \"bad\" {\n  on = [\"start\"]\n  run = \"throw new Error('no');\"\n}\n")},
		Hooks: []engine.Hook{func(_ context.Context, e call.Event) {
			if e.Phase == call.End {
				panic("no")
			}
		}},
	})
	if _, err := s.Call(t.Context(), "add", map[string]any{"a": 1, "b": 2}); err != nil {
		t.Fatal(err)
	}
	if err := s.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.Status().HookFailures; got != 2 {
		t.Errorf("%d failures are counted, want 2", got)
	}
}
