package engine_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
)

// callers maps names to callers as sent, and as Go code sees them.
var callers = map[string]struct{ given, seen identity.Caller }{
	"a principal": {
		given: identity.Caller{Principal: identity.Principal{ID: "ada", Kind: identity.KindToken, Issuer: "https://corp", Scopes: []string{"x"}, Claims: map[string]any{"team": "a"}}, Agent: identity.Agent{AgentID: "bot"}},
		seen:  identity.Caller{Principal: identity.Principal{ID: "ada", Kind: identity.KindToken, Issuer: "https://corp", Scopes: []string{"x"}, Claims: map[string]any{"team": "a"}}, Agent: identity.Agent{AgentID: "bot"}},
	},
	"nobody": {
		given: identity.Caller{Principal: identity.Anonymous()},
		seen:  identity.Caller{Principal: identity.Anonymous(), Agent: identity.Agent{AgentID: identity.AnonymousAgent}},
	},
	"the zero caller": {
		given: identity.Caller{},
		seen:  identity.Caller{Principal: identity.Anonymous(), Agent: identity.Agent{AgentID: identity.AnonymousAgent}},
	},
}

func TestCallerFromContext(t *testing.T) {
	for name, test := range callers {
		for _, late := range []bool{false, true} {
			var seen identity.Caller
			s := server(t, engine.Options{})
			track := func(ctx context.Context, _ identity.Agent, _ struct{}) (bool, error) {
				ctx, cancel := context.WithCancel(ctx)
				defer cancel()
				caller, ok := engine.CallerFromContext(ctx)
				seen = caller
				if caller.Principal.ID == "ada" {
					caller.Principal.Claims["team"] = "changed" // a copy
				}
				return ok, nil
			}
			if err := engine.AddTool(s, engine.ToolOptions{Name: "track"}, track); err != nil {
				t.Fatal(err)
			}
			request := call.Request{Name: "track", Caller: test.given}
			if late {
				request.Late = discardResults{}
			}
			result := s.Execute(t.Context(), request)
			if result.Err != nil || string(result.Value) != "true" {
				t.Fatalf("%s: %v, %s", name, result.Err, result.Value)
			}
			seen.Agent.RequestID = ""
			want := test.seen
			if want.Principal.Claims["team"] == "a" {
				want.Principal.Claims = map[string]any{"team": "changed"}
			}
			if diff := cmp.Diff(want, seen); diff != "" {
				t.Errorf("%s (-want +got)\n%s", name, diff)
			}
			if test.given.Principal.Claims["team"] == "changed" {
				t.Fatalf("%s: the tool has changed the caller", name)
			}
		}
	}
}

type discardResults struct{}

func (discardResults) Answer(call.Result) {}

func TestCallerFromContext_outsideOfCall(t *testing.T) {
	caller, ok := engine.CallerFromContext(t.Context())
	if ok || caller.Principal.Kind != identity.KindAnonymous || caller.Principal.ID != "anonymous" {
		t.Errorf("got %v, %+v", ok, caller)
	}
}

// A Go tool that a script calls sees the caller of the client.
func TestCallerFromContext_nested(t *testing.T) {
	s := unloaded(t, engine.Options{Files: engine.Files{Tools: files("t.hcl", `
tool "outer" {
  allow {
    call { tools = ["who"] }
  }
  run = "return tools.who({});"
}
`)}})
	who := func(ctx context.Context, _ identity.Agent, _ struct{}) (map[string]string, error) {
		caller, _ := engine.CallerFromContext(ctx)
		return map[string]string{"id": caller.Principal.ID}, nil
	}
	if err := engine.AddTool(s, engine.ToolOptions{Name: "who"}, who); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	result := s.Execute(t.Context(), call.Request{Name: "outer", Caller: callers["a principal"].given})
	if result.Err != nil || string(result.Value) != `{"id":"ada"}` {
		t.Errorf("%v, %s", result.Err, result.Value)
	}
}

func TestPolicy_caller(t *testing.T) {
	for name, test := range callers {
		var seen engine.PolicyInput
		s := server(t, engine.Options{
			Files: engine.Files{Tools: files("add.hcl", addTool)},
			Policies: []engine.Policy{
				func(in engine.PolicyInput) engine.Decision {
					in.Args["a"] = 40.0 // a copy
					if in.Caller.Principal.ID == "ada" {
						in.Caller.Principal.Claims["team"] = "changed"
					}
					return engine.Allow()
				},
				func(in engine.PolicyInput) engine.Decision {
					seen = in
					if in.Caller.Principal.Kind == identity.KindAnonymous {
						return engine.Deny("sign in")
					}
					return engine.Allow()
				},
			},
		})
		result := s.Execute(t.Context(), call.Request{Name: "add", Arguments: []byte(`{"a":1,"b":2}`), Caller: test.given})
		denied := result.Err != nil && result.Err.Code == call.PolicyDenied && result.Err.Message == "sign in"
		if denied != (test.seen.Principal.Kind == identity.KindAnonymous) || !denied && result.Err != nil {
			t.Errorf("%s: %v", name, result.Err)
		}
		seen.Caller.Agent.RequestID = ""
		if diff := cmp.Diff(test.seen, seen.Caller); diff != "" || seen.Tool != "add" || seen.Args["a"] == 40.0 {
			t.Errorf("%s: tool %s, args %v (-want +got)\n%s", name, seen.Tool, seen.Args, diff)
		}
	}
}

func TestPolicy_panicDenies(t *testing.T) {
	s := server(t, engine.Options{Files: engine.Files{Tools: files("add.hcl", addTool)}, Policies: []engine.Policy{
		func(engine.PolicyInput) engine.Decision { panic("hunter2") },
	}})
	_, err := s.Call(t.Context(), "add", map[string]any{"a": 1, "b": 2})
	if failed := callError(t, err); failed.Code != call.PolicyDenied || failed.Message != "denied: a policy failed" {
		t.Errorf("got %v", failed)
	}
}
