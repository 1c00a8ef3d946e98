package authn

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpd/mcpd/internal/auth/authn/idptest"
	"github.com/mcpd/mcpd/internal/auth/oidc"
)

// tokensOnly applies the tokens of the provider, and waits until its keys are
// read or cannot be.
func (s *site) tokensOnly() {
	s.t.Helper()
	s.apply(Options{Tokens: []TokenOptions{s.tokens()}})
	for _, i := range s.roster.issuers {
		i.fetchers.Wait()
	}
}

// status is that of a token, 200 for one that is let in.
func (s *site) status(token string) int {
	s.t.Helper()
	_, err := s.roster.Authenticate(bearing(token))
	var refusal *AuthError
	switch {
	case err == nil:
		return http.StatusOK
	case errors.As(err, &refusal):
		return refusal.Status
	}
	s.t.Fatal(err)
	return 0
}

func (s *site) want(what, token string, want int) {
	s.t.Helper()
	if got := s.status(token); got != want {
		s.t.Errorf("%s: the status is %d, want %d", what, got, want)
	}
}

func TestIssuer_rotatedKeys(t *testing.T) {
	s := newSite(t)
	s.tokensOnly()
	next := idptest.NewKey("two", "ES256")
	old, fresh := s.token(nil), idptest.Sign(next, nil, s.claims(nil))
	s.want("a key that is not published yet", fresh, 401)
	s.clock.pass(minFetchInterval)
	s.provider.Rotate(s.key, next)
	s.want("a new key", fresh, 200)
	s.want("the old key beside it", old, 200)
	s.clock.pass(minFetchInterval)
	s.provider.Rotate(next)
	s.want("a withdrawn key, as long as nobody has asked", old, 200)
	s.clock.pass(jwksStale)
	old, fresh = s.token(nil), idptest.Sign(next, nil, s.claims(nil))
	s.want("a withdrawn key, an hour later", old, 401)
	s.want("the new key", fresh, 200)
}

// TestIssuer_replacedKey, or where keys have none, and who forges tokens has the
// provider asked no more often for that.
func TestIssuer_replacedKey(t *testing.T) {
	for _, name := range []string{"one", ""} {
		s := newSite(t)
		first, second := idptest.NewKey(name, "ES256"), idptest.NewKey(name, "ES256")
		sign := func(k *idptest.Key) string {
			if name == "" {
				return idptest.Sign(k, map[string]any{"kid": nil}, s.claims(nil))
			}
			return idptest.Sign(k, nil, s.claims(nil))
		}
		s.provider.Rotate(first)
		s.tokensOnly()
		s.want("the first key", sign(first), 200)
		s.want("the second key, which is not published yet", sign(second), 401)
		s.clock.pass(minFetchInterval)
		s.provider.Rotate(second)
		s.want("the second key", sign(second), 200)
		s.want("the first key, which is withdrawn", sign(first), 401)
		asked := s.provider.Requests(idptest.KeysPath)
		for range 100 {
			s.want("a withdrawn key", sign(first), 401)
		}
		if more := s.provider.Requests(idptest.KeysPath) - asked; more > 0 {
			t.Errorf("the provider was asked %d times more", more)
		}
	}
}

func TestIssuer_minFetchInterval(t *testing.T) {
	s := newSite(t)
	s.tokensOnly()
	for range 100 {
		s.want("an unknown key", idptest.Sign(s.key.WithID("x"), nil, s.claims(nil)), 401)
	}
	if n := s.provider.Requests(idptest.KeysPath); n != 1 {
		t.Errorf("the provider was asked %d times", n)
	}
	s.clock.pass(minFetchInterval)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() { _, _ = s.roster.Authenticate(bearing(idptest.Sign(s.key.WithID("x"), nil, s.claims(nil)))) })
	}
	all.Wait()
	if n := s.provider.Requests(idptest.KeysPath); n != 2 {
		t.Errorf("the provider was asked %d times", n)
	}
}

func TestIssuer_downAtStart(t *testing.T) {
	s := newSite(t)
	s.provider.SetHandler(idptest.Down)
	s.apply(s.options())
	for _, i := range s.roster.issuers {
		i.fetchers.Wait()
	}
	_, err := s.roster.Authenticate(bearing(s.token(nil)))
	h := http.Header{}
	status, _ := Middleware{}.Reject(h, request(), err)
	if status != 503 || h.Get("Retry-After") != "1" || h.Get("WWW-Authenticate") != "" {
		t.Errorf("status %d with %v", status, h)
	}
	s.want("a token for another", s.token(map[string]any{"aud": "x"}), 401)
	s.provider.SetHandler(nil)
	s.want("before it is time to ask again", s.token(nil), 503)
	s.clock.pass(minFetchRetry)
	s.want("after it", s.token(nil), 200)
}

func TestIssuer_backoff(t *testing.T) {
	s := newSite(t)
	s.provider.SetHandler(idptest.Down)
	s.tokensOnly()
	for n, wait := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 60} {
		s.clock.pass(wait*time.Second - 1)
		s.want("just before", s.token(nil), 503)
		if asked := s.provider.Requests(idptest.ConfigurationPath); asked != n+1 {
			t.Fatalf("it was asked %d times, want %d", asked, n+1)
		}
		s.clock.pass(1)
		s.want("then", s.token(nil), 503)
	}
}

func TestIssuer_jwksMaxAge(t *testing.T) {
	s := newSite(t)
	s.tokensOnly()
	s.provider.SetHandler(idptest.Down)
	s.clock.pass(jwksMaxAge)
	s.want("a known key after a day", s.token(nil), 200)
	s.want("an unknown key", idptest.Sign(s.key.WithID("x"), nil, s.claims(nil)), 503)
	s.clock.pass(time.Second)
	s.want("a known key after more", s.token(nil), 503)
	s.provider.SetHandler(nil)
	s.clock.pass(maxFetchRetry)
	s.want("a provider that is back", s.token(nil), 200)
}

func TestIssuer_invalidDocuments(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":             "",
		"no JSON":             "<html>",
		"no object":           "[]",
		"another issuer":      `{"issuer":"https://evil.example.com","jwks_uri":"https://evil.example.com/keys"}`,
		"deep":                strings.Repeat("[", 1<<20),
		"long":                `{"a":"` + strings.Repeat("x", maxDocument) + `"}`,
		"keys that are none":  `{"keys":1}`,
		"a place that is not": `{"issuer":"ISSUER","jwks_uri":"file:///etc/passwd"}`,
		"a place beyond":      `{"issuer":"ISSUER","jwks_uri":"http://keys.example.com/"}`,
		"no keys member":      `{"issuer":"ISSUER","jwks_uri":"ISSUER/keys"}`,
		"too many keys":       `{"issuer":"ISSUER","jwks_uri":"ISSUER/keys","keys":[` + strings.Repeat(`{},`, 100) + `{}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.tokensOnly()
			s.provider.SetHandler(idptest.RespondWith(strings.ReplaceAll(text, "ISSUER", s.provider.Issuer())))
			s.clock.pass(jwksStale + 1)
			s.want("a known key", s.token(nil), 200)
			s.want("an unknown key", idptest.Sign(s.key.WithID("x"), nil, s.claims(nil)), 503)
		})
	}
}

func TestIssuer_slowProvider(t *testing.T) {
	s := newSite(t)
	s.tokensOnly()
	asked, answer := make(chan struct{}), make(chan struct{})
	s.provider.SetHandler(func(w http.ResponseWriter, r *http.Request) {
		close(asked)
		<-answer
		idptest.Down(w, r)
	})
	s.clock.pass(minFetchInterval)
	held := make(chan int)
	go func() { held <- s.status(idptest.Sign(s.key.WithID("x"), nil, s.claims(nil))) }()
	<-asked
	s.want("a known key meanwhile", s.token(nil), 200)
	close(answer)
	if got := <-held; got != 503 {
		t.Errorf("who waited: the status is %d", got)
	}
}

func TestRegistry_closeCancelsFetch(t *testing.T) {
	s := newSite(t)
	asked := make(chan struct{})
	s.provider.SetHandler(func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
	})
	s.apply(s.options())
	<-asked
	s.roster.Close()
	s.want("a token", s.token(nil), 401)
	if err := s.roster.Apply(Options{Anonymous: true}); err == nil {
		t.Error("a closed roster takes methods")
	}
}

func TestIssuer_unusableKeys(t *testing.T) {
	s := newSite(t)
	for name, key := range map[string]string{
		"a secret":               `{"kty":"oct","kid":"one","k":"c2VjcmV0"}`,
		"a short RSA key":        `{"kty":"RSA","kid":"one","n":"` + strings.Repeat("_", 170) + `8","e":"AQAB"}`,
		"an even exponent":       `{"kty":"RSA","kid":"one","n":"` + s.key.JWK()["n"] + `","e":"AQAC"}`,
		"a key for encryption":   `{"kty":"RSA","kid":"one","use":"enc","n":"` + s.key.JWK()["n"] + `","e":"AQAB"}`,
		"a key for another":      `{"kty":"RSA","kid":"one","alg":"RSA-OAEP","n":"` + s.key.JWK()["n"] + `","e":"AQAB"}`,
		"a kind that is unknown": `{"kty":"AKP","kid":"one"}`,
		"no key at all":          `1`,
	} {
		set, err := oidc.Protocol{}.ParseKeys("https://idp.example.com", []byte(`{"keys":[`+key+`]}`), TokenAlgorithms())
		if err != nil || len(set) != 0 {
			t.Errorf("%s: %d verifiers, %v", name, len(set), err)
		}
	}
}

func TestIssuer_algorithms(t *testing.T) {
	for _, alg := range []string{"RS256", "PS256", "ES256", "EdDSA"} {
		s := newSite(t)
		s.key = idptest.NewKey("k", alg)
		s.provider.Rotate(s.key)
		s.tokensOnly()
		s.want(alg, s.token(nil), 200)
	}
}

func TestIssuer_noKeyID(t *testing.T) {
	s := newSite(t)
	s.provider.Rotate(s.key, idptest.NewKey("two", "RS256"))
	s.tokensOnly()
	s.want("one of two keys", idptest.Sign(s.key, map[string]any{"kid": nil}, s.claims(nil)), 401)
}
