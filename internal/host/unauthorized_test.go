package host

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/host/oauth"
	"github.com/mcpd/mcpd/internal/host/secrets"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/scripting"
)

// A host rejects the tokens of two users; one of them is the caller.
func TestUserToken_unauthorized(t *testing.T) {
	said := 0
	crm := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		said++
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(crm.Close)
	store := state.NewMemory(state.Options{})
	open := func() (state.Store, error) { return store, nil }
	brokers := NewBrokers(Options{OpenStore: open})
	t.Cleanup(func() { _ = brokers.Close() })
	def := secrets.Definition{Name: "token", OAuth: &oauth.Client{AuthorizeURL: "https://login.example.com/a", RedirectURL: "https://mcp.example.com/oauth/crm"}}
	brokers.Secrets.Set([]secrets.Definition{def})
	vault := newVaultFunc(open, func(string) {})(def.Key())
	for _, name := range []string{"ada", "grace"} {
		user := principalKey(identity.Principal{ID: name, Kind: identity.KindKey})
		if err := vault.Put(user, fmt.Appendf(nil, `{"access":"of-%s","end":%q}`, name, time.Now().Add(time.Hour).Format(time.RFC3339))); err != nil {
			t.Fatal(err)
		}
	}
	get := func(name string) string {
		h := &RunHost{
			Brokers: brokers, Caller: identity.Caller{Principal: identity.Principal{ID: name, Kind: identity.KindKey}}, InputPolicy: InputPolicy{Client: call.Capabilities{Form: true}},
			Grants: &Grants{HTTP: map[string]grant.HTTP{"crm": {Name: "crm", Hosts: []string{strings.TrimPrefix(crm.URL, "http://")}, PrivateNetworks: true,
				Headers: []grant.Header{{Name: "Authorization", Value: grant.Value{Parts: []grant.Part{{Secret: "token"}}}}}}}},
		}
		_, err := h.Do(t.Context(), 1, "http.request", fmt.Appendf(nil, `{"grant":"crm","url":%q}`, crm.URL))
		var refused *scripting.HostError
		if err != nil && !errors.As(err, &refused) {
			t.Fatal(err)
		}
		if refused != nil {
			return refused.Code
		}
		return "sent"
	}
	if got := get("ada") + " " + get("ada") + " " + get("grace"); got != "sent CONSENT sent" || said != 2 {
		t.Errorf("after %d refusals: %s", said, got)
	}
}
