package hclfile

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
)

// authOfEachKind has every argument of auth blocks, and blocks with none.
const authOfEachKind = `
listen {
  address = "0.0.0.0:8443"
  tls {
    cert_file      = "server.pem"
    key_file       = "server.key"
    client_ca_file = "fleet.pem"
  }
}
auth "api_key" "ops" {
  file = "ops.json"
}
auth "api_key" "ci" {
}
auth "oidc" "corp" {
  issuer          = "https://login.example.com/"
  audience        = "https://mcp.example.com/mcp"
  resource        = "https://mcp.example.com/mcp"
  algorithms      = ["ES256"]
  id              = "email"
  scopes          = "permissions"
  groups          = "realm.roles"
  agent           = "client_id"
  required_scopes = ["mcp"]
  implied_scopes  = { admin = ["crm.write"], "crm.write" = ["crm.read"] }
  skew            = "30s"
}
auth "oidc" "dev" {
  issuer   = "http://localhost:9000"
  audience = "mcp"
}
auth "mtls" "fleet" {
  allow = ["spiffe://fleet/*"]
  agent = true
}
auth "unix" "admins" {
  uids = [0, 1000]
  gids = [4294967294]
}
auth "anonymous" "public" {
}
`

func TestAuthBlocksAreDecodedWhole(t *testing.T) {
	c, problems := decodeConfig(t, authOfEachKind, definition.VarValues{})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	want := []definition.Auth{
		{Kind: "api_key", Name: "ops", Keys: &definition.AuthKeys{File: "ops.json"}},
		{Kind: "api_key", Name: "ci", Keys: &definition.AuthKeys{File: "keys.json"}},
		{Kind: "oidc", Name: "corp", Tokens: &definition.AuthTokens{
			Issuer: "https://login.example.com/", Audience: "https://mcp.example.com/mcp", Resource: "https://mcp.example.com/mcp",
			Algorithms: []string{"ES256"}, ID: "email", Scopes: "permissions", Groups: "realm.roles", Agent: "client_id",
			RequiredScopes: []string{"mcp"}, ImpliedScopes: map[string][]string{"admin": {"crm.write"}, "crm.write": {"crm.read"}}, Skew: 30 * time.Second,
		}},
		{Kind: "oidc", Name: "dev", Tokens: &definition.AuthTokens{Issuer: "http://localhost:9000", Audience: "mcp", Skew: time.Minute}},
		{Kind: "mtls", Name: "fleet", Certificates: &definition.AuthCertificates{Allow: []string{"spiffe://fleet/*"}, Agent: true}},
		{Kind: "unix", Name: "admins", Peers: &definition.AuthPeers{UIDs: []uint32{0, 1000}, GIDs: []uint32{4294967294}}},
		{Kind: "anonymous", Name: "public"},
	}
	if diff := cmp.Diff(want, c.Auths, cmpopts.IgnoreTypes(diag.Range{}), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	tls := &definition.ListenTLS{CertFile: "server.pem", KeyFile: "server.key", ClientCAFile: "fleet.pem"}
	if diff := cmp.Diff(tls, c.Listen.TLS, cmpopts.IgnoreTypes(diag.Range{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
