package serve

import (
	"reflect"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/auth/authn"
)

// everySetting has every argument of auth blocks, with another value than without it.
const everySetting = `
listen {
  tls {
    cert_file      = "server.pem"
    key_file       = "server.key"
    client_ca_file = "fleet.pem"
  }
}
auth "api_key" "ops" {
  file = "ops.json"
}
auth "oidc" "corp" {
  issuer          = "https://login.example.com/"
  audience        = "crm"
  resource        = "https://mcp.example.com/mcp"
  algorithms      = ["ES256"]
  id              = "email"
  scopes          = "permissions"
  groups          = "realm.roles"
  agent           = "client_id"
  required_scopes = ["mcp"]
  implied_scopes  = { admin = ["crm.write"] }
  skew            = "30s"
}
auth "mtls" "fleet" {
  allow = ["spiffe://fleet/*"]
  agent = true
}
auth "unix" "admins" {
  uids = [1000]
  gids = [27]
}
auth "anonymous" "public" {}
`

// TestEverySettingOfAnAuthBlockIsApplied: a setting that is lost on the way lets in whom
// the operator keeps out.
func TestEverySettingOfAnAuthBlockIsApplied(t *testing.T) {
	s, err := engine.New(engine.Options{Name: "test", ConfigPath: "/etc/mcpd/mcpd.hcl", Config: fstest.MapFS{"mcpd.hcl": {Data: []byte(everySetting), Mode: 0o644}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := methodsOf(s.Snapshot().Auths())
	want := authn.Options{
		Keys: []authn.KeyOptions{{File: "/etc/mcpd/ops.json"}},
		Tokens: []authn.TokenOptions{{
			Issuer: "https://login.example.com/", Audience: "crm", Resource: "https://mcp.example.com/mcp", Algorithms: []string{"ES256"},
			ID: "email", Scopes: "permissions", Groups: "realm.roles", Agent: "client_id", RequiredScopes: []string{"mcp"},
			ImpliedScopes: map[string][]string{"admin": {"crm.write"}}, Skew: 30 * time.Second,
		}},
		Certificates: []authn.CertificateOptions{{Allow: []string{"spiffe://fleet/*"}, Agent: true}},
		Peers:        []authn.PeerOptions{{UIDs: []uint32{1000}, GIDs: []uint32{27}}},
		Anonymous:    true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for _, method := range []any{want.Keys[0], want.Tokens[0], want.Certificates[0], want.Peers[0]} {
		v := reflect.ValueOf(method)
		for i := range v.NumField() {
			if v.Field(i).IsZero() {
				t.Errorf("the test sets no %s of %T", v.Type().Field(i).Name, method)
			}
		}
	}
}
