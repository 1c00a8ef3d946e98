package serve

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/extensions/oidc"
	"github.com/mcpd/mcpd/internal/auth/authn/idptest"
)

// TestAProviderReachesNoOtherHostOfThisNetwork: what a provider names as the place of its
// keys is no way to what only this machine can reach.
func TestAProviderReachesNoOtherHostOfThisNetwork(t *testing.T) {
	var asked atomic.Int64
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer inside.Close()
	provider := idptest.New(t, idptest.NewKey("k1", "ES256"))
	config := fmt.Sprintf("auth \"oidc\" \"corp\" {\n  issuer   = %q\n  audience = \"https://mcp.example.com\"\n}\n", provider.Issuer())
	e, err := engine.New(engine.Options{
		Name: "test", Extensions: []engine.Extension{oidc.New()}, Tools: fstest.MapFS{}, Config: fstest.MapFS{"mcpd.hcl": {Data: []byte(config), Mode: 0o600}}, Front: Checks{},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.Close(context.Background()) }()
	if _, err := e.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	p := newProviders(e.Snapshot, e.Logger())
	defer func() { _ = p.pool.Close() }()
	for url, want := range map[string]bool{provider.Issuer() + "/.well-known/openid-configuration": true, inside.URL + "/keys": false} {
		response, err := p.client().Get(url)
		if err == nil {
			_ = response.Body.Close()
		}
		if got := err == nil && response.StatusCode == http.StatusOK; got != want {
			t.Errorf("%s is read: %v, want %v; %v", url, got, want, err)
		}
	}
	if asked.Load() != 0 {
		t.Error("a host that the operator does not name was asked")
	}
}
