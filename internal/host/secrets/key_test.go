package secrets_test

import (
	"testing"

	"github.com/mcpd/mcpd/internal/host/oauth"
	"github.com/mcpd/mcpd/internal/host/secrets"
)

// A call from before a reload must not send the new secret to where only the old one was
// intended.
func TestKey_removedDefinition(t *testing.T) {
	store := secrets.New(secrets.Options{LookupEnv: func(name string) (string, bool) { return "value-of-" + name, true }})
	dev, prod := secrets.Definition{Name: "tok", Env: "DEV"}, secrets.Definition{Name: "tok", Env: "PROD"}
	store.Set([]secrets.Definition{dev})
	store.Set([]secrets.Definition{prod})
	for id, want := range map[string]string{dev.Key(): "value-of-DEV", prod.Key(): "value-of-PROD", "tok": "value-of-PROD"} {
		if got, err := store.Resolve(t.Context(), id); err != nil || got != want {
			t.Errorf("%s is %q, %v; want %q", id, got, err, want)
		}
	}
	for range 20 {
		store.Set(nil)
	}
	if _, err := store.Resolve(t.Context(), dev.Key()); err == nil {
		t.Error("a removed definition is never forgotten")
	}
}

// Stored user tokens are found by this key: it must not change.
func TestKey_isStable(t *testing.T) {
	d := secrets.Definition{Name: "mail", Env: "E", File: "f", Command: []string{"c", "d"}, ScriptReadable: true, OAuth: &oauth.Client{
		AuthorizeURL: "https://a.example/authorize", RedirectURL: "http://127.0.0.1:1/", TokenURL: "https://a.example/token", ID: "id", Secret: "s",
		Scopes: []string{"read"}, Params: map[string]string{"audience": "x"}, InBody: true, PrivateNetworks: true,
	}}
	if got := d.Key(); got != "mail#10f370c5ecbcf007" {
		t.Errorf("key %s", got)
	}
}
