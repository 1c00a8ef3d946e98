package authn

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/identity"
)

// TestTokenOptions checks the effect of each option on principal and error.
func TestTokenOptions(t *testing.T) {
	s := newSite(t)
	now := s.clock.now().Unix()
	who := func(id string, scopes, groups []string) identity.Principal {
		return identity.Principal{ID: id, Kind: identity.KindToken, Issuer: s.provider.Issuer(), Scopes: scopes, Groups: groups}
	}
	ada := who("ada", []string{"mcp", "crm:read"}, []string{})
	for name, r := range map[string]struct {
		set    func(*TokenOptions)
		claims map[string]any
		want   identity.Principal
		reason error
	}{
		"defaults":                 {set: func(*TokenOptions) {}, want: ada},
		"algorithms":               {set: func(o *TokenOptions) { o.Algorithms = []string{"RS256"} }, want: ada},
		"algorithms, others":       {set: func(o *TokenOptions) { o.Algorithms = []string{"PS256", "ES256"} }, reason: errAlgorithm},
		"id":                       {set: func(o *TokenOptions) { o.ID = "email" }, claims: map[string]any{"email": "ada@example.com"}, want: who("ada@example.com", ada.Scopes, ada.Groups)},
		"id, that is missing":      {set: func(o *TokenOptions) { o.ID = "email" }, reason: errSubject},
		"groups":                   {set: func(*TokenOptions) {}, claims: map[string]any{"groups": []string{"ops"}}, want: who("ada", ada.Scopes, []string{"ops"})},
		"groups, of another claim": {set: func(o *TokenOptions) { o.Groups = "realm.roles" }, claims: map[string]any{"groups": "root", "realm": map[string]any{"roles": "ops"}}, want: who("ada", ada.Scopes, []string{"ops"})},
		"scopes":                   {set: func(o *TokenOptions) { o.Scopes = "permissions" }, claims: map[string]any{"scope": "root", "permissions": "mcp"}, want: who("ada", []string{"mcp"}, ada.Groups)},
		"scopes, of another claim": {set: func(o *TokenOptions) { o.Scopes = "permissions" }, reason: new(scopeError)},
		"required scopes":          {set: func(o *TokenOptions) { o.RequiredScopes = []string{"mcp", "admin"} }, reason: new(scopeError)},
		"skew":                     {set: func(o *TokenOptions) { o.Skew = 30 * time.Second }, claims: map[string]any{"exp": now - 29}, want: ada},
		"skew, and more":           {set: func(o *TokenOptions) { o.Skew = 30 * time.Second }, claims: map[string]any{"exp": now - 30}, reason: errExpired},
		"no skew":                  {set: func(o *TokenOptions) { o.Skew = -1 }, claims: map[string]any{"exp": now}, reason: errExpired},
	} {
		o := s.options()
		o.Tokens[0].Agent, o.Tokens[0].ImpliedScopes = "", nil
		r.set(&o.Tokens[0])
		s.apply(o)
		got, err := s.registry.Authenticate(bearing(s.token(r.claims)))
		if got.Claims = nil; (err == nil) != (r.reason == nil) || err != nil && !strings.HasSuffix(err.Error(), r.reason.Error()) {
			t.Errorf("%s: got error %v, want %v", name, err, r.reason)
		}
		if diff := cmp.Diff(r.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}
