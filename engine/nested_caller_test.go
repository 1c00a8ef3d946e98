package engine_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
)

// recursiveTool is a tool that calls itself to a given depth, and then a tool that returns its caller.
const recursiveTool = `
tool "deeper" {
  input "left" { type = integer }
  allow {
    call { tools = ["deeper", "top"] }
  }
  run = <<JS
    return input.left === 0 ? await tools.top({}) : await tools.deeper({ left: input.left - 1 });
  JS
}
tool "top" {
  input "tenant" {
    type = string
    from = "principal.claims.tenant"
  }
  allow {
    kv "theirs" { scope = "principal" }
    kv "session" { scope = "session" }
  }
  run = <<JS
    const n = [await kv.theirs.incr("n"), await kv.session.incr("n").catch((e) => e.code)];
    return [input.tenant, agent.agent_id, agent.metadata.team, call.depth, ...n].join(" ");
  JS
}
policy "known" {
  tools  = ["top"]
  deny   = "!(principal.id == 'ada' && principal.kind == 'local' && principal.issuer == 'https://id.example' && 'orders' in principal.scopes && principal.claims.tenant == 't1' && source.ip == '10.0.0.7')"
  reason = "Not for you"
}
`

// Policies, limits, inputs and values use the original principal, at any depth.
func TestNested_caller(t *testing.T) {
	s := server(t, engine.Options{
		Files: engine.Files{
			Tools:  files("tower.hcl", recursiveTool),
			Config: files("mcpd.hcl", "limit \"each\" {\n  tools = [\"top\"]\n  key = \"principal.id\"\n  rate = \"2/h\"\n}\n"),
		},
	})
	ada := identity.Caller{
		Principal: identity.Principal{
			ID: "ada", Kind: identity.KindLocal, Issuer: "https://id.example",
			Scopes: []string{"orders"}, Groups: []string{}, Claims: map[string]any{"tenant": "t1"},
		},
		Agent:  identity.Agent{AgentID: "claude", Metadata: map[string]string{"team": "blue"}},
		Source: identity.Source{Session: "s1", IP: "10.0.0.7"},
	}
	bob, elsewhere := ada.Clone(), ada.Clone()
	bob.Principal.ID = "bob"
	elsewhere.Source.IP = "10.0.0.8"
	for _, test := range []struct {
		who  identity.Caller
		left int
		want string
	}{
		{ada, 0, `"t1 claude blue 1 1 1"`},
		{ada, 6, `"t1 claude blue 7 2 2"`},
		{ada, 6, "EXECUTION_ERROR: over the limit of 2 calls an hour; try again in 1800 s"},
		{bob, 6, "EXECUTION_ERROR: Not for you"},
		{elsewhere, 6, "EXECUTION_ERROR: Not for you"},
		{anonymous(), 6, "EXECUTION_ERROR: Not for you"},
	} {
		r := s.Execute(t.Context(), call.Request{Name: "deeper", Arguments: json.RawMessage(fmt.Sprintf(`{"left":%d}`, test.left)), Caller: test.who})
		got := string(r.Value)
		if r.Err != nil {
			got = r.Err.Error()
		}
		if got != test.want {
			t.Errorf("%s at %q and depth %d: got %s, want %s", test.who.Principal.ID, test.who.Source.IP, test.left+1, got, test.want)
		}
	}
}
