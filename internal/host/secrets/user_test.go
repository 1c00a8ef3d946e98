package secrets

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcpd/mcpd/internal/host/oauth"
)

// safe is a vault in which each user has a token valid for a year.
type safe struct{}

func (safe) Get(user string) ([]byte, error) {
	end := time.Now().AddDate(1, 0, 0).Format(time.RFC3339)
	return fmt.Appendf(nil, `{"access":"token-of-%s","renew":%q,"end":%q}`, user, end, end), nil
}

func (safe) Put(string, []byte) error { return nil }

func (safe) Replace(string, []byte, func([]byte) bool) (bool, error) { return true, nil }

// Their calls run concurrently.
func TestRedact_userTokens(t *testing.T) {
	tokens := oauth.New(oauth.Options{})
	t.Cleanup(tokens.Close)
	s := New(Options{Tokens: tokens, NewVault: func(string) oauth.Vault { return safe{} }})
	s.Set([]Definition{{Name: "crm", OAuth: &oauth.Client{AuthorizeURL: "https://login.example.com/a", RedirectURL: "https://mcp.example.com/oauth/crm"}}})
	said := ""
	for i := range 100 {
		user := fmt.Sprintf("user-%03d", i)
		token, err := s.Resolve(oauth.WithCaller(t.Context(), oauth.Caller{User: user}), "crm")
		if want := "token-of-" + user; token != want || err != nil {
			t.Fatalf("%s has %q, %v", user, token, err)
		}
		said += token + " "
	}
	if shown := s.Redact(said); strings.Contains(shown, "token-of") {
		t.Errorf("shown is %s", shown)
	}
}

// A token may come through an old definition.
func TestRedact_userTokensLRU(t *testing.T) {
	tokens := oauth.New(oauth.Options{})
	t.Cleanup(tokens.Close)
	s := New(Options{Tokens: tokens, NewVault: func(string) oauth.Vault { return safe{} }})
	old := Definition{Name: "crm", OAuth: &oauth.Client{AuthorizeURL: "https://login.example.com/a", RedirectURL: "https://mcp.example.com/oauth/crm"}}
	current := Definition{Name: "crm", OAuth: &oauth.Client{AuthorizeURL: "https://login.example.com/b", RedirectURL: "https://mcp.example.com/oauth/crm"}}
	s.Set([]Definition{old})
	s.Set([]Definition{current})
	come := func(d Definition, user string) {
		t.Helper()
		who := oauth.Caller{User: user, SupportsForms: true}
		if _, err := s.Resolve(oauth.WithCaller(t.Context(), who), d.Key()); err != nil {
			t.Fatal(err)
		}
	}
	come(old, "first")
	for i := range maxOldUserValues - 1 {
		come(current, fmt.Sprint(i))
	}
	before := s.redactor.Load()
	come(old, "first")
	if s.redactor.Load() != before {
		t.Error("the redactor is rebuilt for a token that it already replaces")
	}
	come(current, "one more")
	if got, want := s.Redact("token-of-first token-of-0 token-of-1 token-of-one more"), "[secret:crm] token-of-0 [secret:crm] [secret:crm]"; got != want {
		t.Errorf("shown as %q, want %q", got, want)
	}
	if n := len(s.values["crm"]); n != maxOldUserValues {
		t.Errorf("%d tokens stored, want %d", n, maxOldUserValues)
	}
}

// BenchmarkUserTokens has more users than redacted tokens, so that each call adds one.
func BenchmarkUserTokens(b *testing.B) {
	for _, size := range []int{40, 1000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			s := New(Options{})
			e := &entry{def: Definition{Name: "crm"}, users: &oauth.UserTokens{}}
			s.entries["crm"] = e
			tokens := make([]string, 300)
			for i := range tokens {
				tokens[i] = fmt.Sprintf("%03d-%s", i, strings.Repeat("x/", size/2))
				s.store(e, tokens[i])
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				s.store(e, tokens[i%len(tokens)])
			}
		})
	}
}
