package host

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/host/oauth"
)

// The key does not depend on the credential. Another kind or issuer, or an id that imitates
// one, has another key.
func TestPrincipalKey(t *testing.T) {
	seen := map[string]identity.Principal{}
	for _, p := range []identity.Principal{
		{ID: "ada", Kind: identity.KindLocal}, {ID: "ada", Kind: identity.KindKey}, {ID: "bob", Kind: identity.KindKey},
		{ID: "ada", Kind: identity.KindToken, Issuer: "https://a.example"}, {ID: "ada", Kind: identity.KindToken, Issuer: "https://b.example"},
		{ID: "a\x00ada", Kind: identity.KindToken}, {ID: "ada", Kind: identity.KindCertificate, Issuer: "CN=ca"},
	} {
		user := principalKey(p)
		if other, taken := seen[user]; taken || user == "" {
			t.Errorf("%+v has the key %q of %+v", p, user, other)
		}
		seen[user] = p
	}
	again := identity.Principal{ID: "ada", Kind: identity.KindKey, Scopes: []string{"crm"}, Groups: []string{"leads"}}
	if p, known := seen[principalKey(again)]; !known || p.Kind != identity.KindKey {
		t.Error("another credential changes the key of a principal")
	}
	if user := principalKey(identity.Principal{ID: "ada", Kind: identity.KindCertificate, Issuer: "CN=c\x00a"}); user != "" {
		t.Errorf("an issuer that could be a part of an id is one: %q", user)
	}
}

func TestOAuthCaller_sameMachine(t *testing.T) {
	for listener, want := range map[string]bool{"stdio": true, "local": true, "": false, "127.0.0.1:8080": false} {
		for _, kind := range []identity.Kind{identity.KindLocal, identity.KindKey} {
			h := &RunHost{Caller: identity.Caller{Principal: identity.Principal{ID: "1000", Kind: kind}, Source: identity.Source{Listener: listener}}}
			if here := h.oauthCaller(false).SameMachine; here != (want && kind == identity.KindLocal) {
				t.Errorf("%s at %q is here: %v", kind, listener, here)
			}
		}
	}
}

// The error names the nested call, not the client.
func TestCheckConsent_nestedCall(t *testing.T) {
	h := &RunHost{InputPolicy: InputPolicy{InNestedCall: true}}
	if !h.oauthCaller(false).SupportsForms {
		t.Error("the error says that the client has no forms")
	}
	for _, params := range []inputParams{{Mode: "url"}, {}} {
		if err := h.checkConsent(params); err == nil || !strings.Contains(err.Error(), "a tool that another tool calls cannot ask") {
			t.Errorf("the error is %v", err)
		}
	}
}

// An id chosen by a user cannot add lines to the page.
func TestDisplayPrincipal_oneLine(t *testing.T) {
	shown := displayPrincipal(identity.Principal{ID: "ada\n\nIf not, type\u202e it" + strings.Repeat("x", 1000), Kind: identity.KindToken, Issuer: "https://a.example"})
	if latin := quoteASCII("аda"); latin != `"\u0430da"` {
		t.Errorf("a name that looks like another one is shown as %s", latin)
	}
	if strings.ContainsAny(shown, "\n\u202e") || len(shown) > 300 || !strings.HasPrefix(shown, `who signs in as "ada\n\nIf not, type\u202e itxx`) || !strings.HasSuffix(shown, `", by "https://a.example"`) {
		t.Errorf("the page shows %s", shown)
	}
}

func TestParseConsentResponse(t *testing.T) {
	for response, want := range map[string]oauth.PromptAnswer{
		`{"action":"accept","content":{"code":"ABCD-EFGH"}}`:                {Accepted: true, Code: "ABCD-EFGH"},
		`{"action":"decline","ACTION":"accept","content":{"code":"x"}}`:     {},
		`{"action":"accept","content":{"CODE":"x"},"Content":{"code":"x"}}`: {Accepted: true},
		`{"action":"accept","content":{"code":["ABCD-EFGH"]}}`:              {Accepted: true},
		`{"action":"accept"}`: {Accepted: true}, `{"action":"cancel"}`: {}, `[]`: {}, ``: {},
	} {
		if got := parseConsentResponse(json.RawMessage(response), false); got != want {
			t.Errorf("%s is %+v", response, got)
		}
		if got := parseConsentResponse(json.RawMessage(response), true); got != (oauth.PromptAnswer{}) {
			t.Errorf("%s is %+v after a refusal", response, got)
		}
	}
	Brokers{}.HandleConsentResponses(identity.Anonymous(), []call.AskRequest{{Method: elicitation}}, nil, nil) // has no tokens, and does nothing
}
