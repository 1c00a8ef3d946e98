package engine_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
)

func TestGoPolicy_denies(t *testing.T) {
	for _, test := range []struct {
		name, message string
		policy        engine.Policy
	}{
		{"with a reason", "Blocked in prod", func(engine.PolicyInput) engine.Decision { return engine.Deny("Blocked in prod") }},
		{"with the zero decision", "", func(engine.PolicyInput) engine.Decision { return engine.Decision{} }},
		{"with a panic, which callers do not see", "denied: a policy failed", func(engine.PolicyInput) engine.Decision { panic("hunter2") }},
	} {
		t.Run(test.name, func(t *testing.T) {
			log := &logBuffer{}
			s := server(t, engine.Options{Logger: log.logger(), Files: engine.Files{Tools: files("add.hcl", addTool)}, Policies: []engine.Policy{test.policy}})
			_, err := s.Call(t.Context(), "add", map[string]any{"a": 1, "b": 2})
			if failed := callError(t, err); failed.Code != call.PolicyDenied || failed.Message != test.message {
				t.Errorf("got %v", failed)
			}
		})
	}
}

func TestGoPolicy_arguments(t *testing.T) {
	var saw map[string]any
	s := server(t, engine.Options{
		Files: engine.Files{Tools: files("t.hcl", `
tool "echo" {
  input "id" { type = string }
  input "tags" { type = list(string) }
  input "limit" {
    type    = integer
    default = 10
  }
  run = "return input;"
}
`)},
		Policies: []engine.Policy{
			func(in engine.PolicyInput) engine.Decision {
				in.Args["id"] = "changed"
				in.Args["tags"].([]any)[0] = "changed"
				return engine.Allow()
			},
			func(in engine.PolicyInput) engine.Decision {
				saw = in.Args
				return engine.Allow()
			},
		},
	})
	got, err := s.Call(t.Context(), "echo", map[string]any{"id": "x", "tags": []string{"a"}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"id": "x", "tags": []any{"a"}, "limit": int64(10)}, saw); diff != "" {
		t.Errorf("the second policy (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(`{"id":"x","tags":["a"],"limit":10}`, string(got.Value)); diff != "" {
		t.Errorf("the tool (-want +got)\n%s", diff)
	}
}

func TestGoPolicy_agent(t *testing.T) {
	s := server(t, engine.Options{Files: engine.Files{Tools: files("add.hcl", addTool)}, Policies: []engine.Policy{
		func(in engine.PolicyInput) engine.Decision {
			if in.Caller.Agent.AgentID == "bot" && in.Caller.Agent.Metadata["team"] == "qa" && in.Caller.Agent.RequestID != "" {
				return engine.Allow()
			}
			return engine.Deny("not you")
		},
	}})
	request := call.Request{Name: "add", Arguments: json.RawMessage(`{"a":1,"b":2}`)}
	request.Caller.Agent = identity.Agent{AgentID: "bot", Metadata: map[string]string{"team": "qa"}}
	if result := s.Execute(t.Context(), request); result.Err != nil {
		t.Errorf("the bot: %v", result.Err)
	}
	request.Caller.Agent.AgentID = "other"
	if result := s.Execute(t.Context(), request); result.Err == nil || !strings.Contains(result.Err.Message, "not you") {
		t.Errorf("another: %v", result.Err)
	}
}
