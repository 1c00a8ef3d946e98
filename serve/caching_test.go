package serve_test

import (
	"context"
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/serve"
)

const kept = `
resource "motd" {
  uri  = "note://motd"
  text = "Hello"
}

resource "covered" {
  uri  = "note://covered"
  text = "Hello"
}

resource "computed" {
  uri = "note://computed"
  run = "return 'Hello';"
}

resource_template "note" {
  uri_template = "note://n/{id}"
  text         = "note {{id}}"
}

resource_folder "docs" {
  root       = "docs"
  uri_prefix = "docs://h/"
}

policy "covers" {
  resources = ["covered"]
  deny      = "agent.agent_id == 'stranger'"
  reason    = "not for strangers"
}
`

// TestOnlyWhatStandsInFilesIsKeptAndSharedWhereNoPolicyDecides reads resources
// as a modern client, whose intermediaries may keep what they are told that they may.
func TestOnlyWhatStandsInFilesIsKeptAndSharedWhereNoPolicyDecides(t *testing.T) {
	allow := func(engine.PolicyInput) engine.Decision { return engine.Allow() }
	const shared, private, anew = `60000 "public"`, `60000 "private"`, `0 "private"`
	for _, server := range []struct {
		name, config string
		policies     []engine.Policy
		want         map[string]string
	}{
		{"without more", "", nil, map[string]string{
			"note://motd": shared, "docs://h/a.md": shared, "note://covered": private, "note://computed": anew, "note://n/1": anew,
		}},
		{"with a policy in Go", "", []engine.Policy{allow}, map[string]string{"note://motd": private, "docs://h/a.md": private}},
		{"with a policy of the operator", "policy \"p\" {\n  deny   = \"agent.agent_id == 'x'\"\n  reason = \"no\"\n}\n", nil,
			map[string]string{"note://motd": private, "docs://h/a.md": private}},
	} {
		t.Run(server.name, func(t *testing.T) {
			s, err := engine.New(engine.Options{
				Name: "test", Policies: server.policies, Config: fstest.MapFS{"mcpd.hcl": {Data: []byte(server.config), Mode: 0o644}},
				Tools: fstest.MapFS{"t.hcl": {Data: []byte(kept), Mode: 0o644}, "docs/a.md": {Data: []byte("# A"), Mode: 0o644}},
			})
			if err != nil {
				t.Fatal(err)
			}
			front := serve.New(s, serve.Options{})
			t.Cleanup(func() { _ = front.Shutdown(context.Background()) })
			url := listen(t, front)
			for uri, want := range server.want {
				body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{%s,"uri":%q}}`, metaModern, uri)
				_, answer := post(t, url+"/mcp", body, map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "resources/read", "Mcp-Name": uri})
				var wire struct {
					Result struct {
						TTL   int    `json:"ttlMs"`
						Scope string `json:"cacheScope"`
					}
				}
				decode(t, answer, &wire)
				if got := fmt.Sprintf("%d %q", wire.Result.TTL, wire.Result.Scope); got != want {
					t.Errorf("%s: %s, want %s", uri, got, want)
				}
			}
		})
	}
}
