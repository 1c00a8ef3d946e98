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

// tokensOnly applies only the tokens of the provider, and waits for the fetch
// of its keys.
func (s *site) tokensOnly() {
	s.t.Helper()
	s.apply(Options{Tokens: []TokenOptions{s.tokens()}})
	for _, i := range s.registry.issuers {
		i.fetchers.Wait()
	}
}

// status returns the status for a token; 200 if it is accepted.
func (s *site) status(token string) int {
	s.t.Helper()
	_, err := s.registry.Authenticate(bearing(token))
	var rejection *AuthError
	switch {
	case err == nil:
		return http.StatusOK
	case errors.As(err, &rejection):
		return rejection.Status
	}
	s.t.Fatal(err)
	return 0
}

func (s *site) want(what, token string, want int) {
	s.t.Helper()
	if got := s.status(token); got != want {
		s.t.Errorf("%s: status %d, want %d", what, got, want)
	}
}

func TestIssuer_rotatedKeys(t *testing.T) {
	s := newSite(t)
	s.tokensOnly()
	next := idptest.NewKey("two", "ES256")
	old, fresh := s.token(nil), idptest.Sign(next, nil, s.claims(nil))
	s.want("unpublished key", fresh, 401)
	s.clock.pass(minFetchInterval)
	s.provider.Rotate(s.key, next)
	s.want("new key", fresh, 200)
	s.want("old key", old, 200)
	s.clock.pass(minFetchInterval)
	s.provider.Rotate(next)
	s.want("withdrawn key before a fetch", old, 200)
	s.clock.pass(jwksStale)
	old, fresh = s.token(nil), idptest.Sign(next, nil, s.claims(nil))
	s.want("withdrawn key after an hour", old, 401)
	s.want("new key after an hour", fresh, 200)
}

// TestIssuer_replacedKey: a provider may replace a key under its id, or without
// one. Forged tokens cause no additional fetches.
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
		s.want("first key", sign(first), 200)
		s.want("unpublished second key", sign(second), 401)
		s.clock.pass(minFetchInterval)
		s.provider.Rotate(second)
		s.want("second key", sign(second), 200)
		s.want("withdrawn first key", sign(first), 401)
		asked := s.provider.Requests(idptest.KeysPath)
		for range 100 {
			s.want("withdrawn key", sign(first), 401)
		}
		if more := s.provider.Requests(idptest.KeysPath) - asked; more > 0 {
			t.Errorf("%d more requests to the provider", more)
		}
	}
}

func TestIssuer_minFetchInterval(t *testing.T) {
	s := newSite(t)
	s.tokensOnly()
	for range 100 {
		s.want("unknown key", idptest.Sign(s.key.WithID("x"), nil, s.claims(nil)), 401)
	}
	if n := s.provider.Requests(idptest.KeysPath); n != 1 {
		t.Errorf("%d requests to the provider", n)
	}
	s.clock.pass(minFetchInterval)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() { _, _ = s.registry.Authenticate(bearing(idptest.Sign(s.key.WithID("x"), nil, s.claims(nil)))) })
	}
	all.Wait()
	if n := s.provider.Requests(idptest.KeysPath); n != 2 {
		t.Errorf("%d requests to the provider", n)
	}
}

func TestIssuer_downAtStart(t *testing.T) {
	s := newSite(t)
	s.provider.SetHandler(idptest.Down)
	s.apply(s.options())
	for _, i := range s.registry.issuers {
		i.fetchers.Wait()
	}
	_, err := s.registry.Authenticate(bearing(s.token(nil)))
	h := http.Header{}
	status, _ := Middleware{}.Reject(h, request(), err)
	if status != 503 || h.Get("Retry-After") != "1" || h.Get("WWW-Authenticate") != "" {
		t.Errorf("status %d with %v", status, h)
	}
	s.want("token for another audience", s.token(map[string]any{"aud": "x"}), 401)
	s.provider.SetHandler(nil)
	s.want("before the next fetch", s.token(nil), 503)
	s.clock.pass(minFetchRetry)
	s.want("after the next fetch", s.token(nil), 200)
}

func TestIssuer_backoff(t *testing.T) {
	s := newSite(t)
	s.provider.SetHandler(idptest.Down)
	s.tokensOnly()
	for n, wait := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 60} {
		s.clock.pass(wait*time.Second - 1)
		s.want("just before the next fetch", s.token(nil), 503)
		if asked := s.provider.Requests(idptest.ConfigurationPath); asked != n+1 {
			t.Fatalf("%d requests, want %d", asked, n+1)
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
	s.want("known key after a day", s.token(nil), 200)
	s.want("unknown key", idptest.Sign(s.key.WithID("x"), nil, s.claims(nil)), 503)
	s.clock.pass(time.Second)
	s.want("known key after more than a day", s.token(nil), 503)
	s.provider.SetHandler(nil)
	s.clock.pass(maxFetchRetry)
	s.want("provider recovered", s.token(nil), 200)
}

func TestIssuer_invalidDocuments(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":        "",
		"no JSON":        "<html>",
		"not an object":  "[]",
		"other issuer":   `{"issuer":"https://evil.example.com","jwks_uri":"https://evil.example.com/keys"}`,
		"deep":           strings.Repeat("[", 1<<20),
		"long":           `{"a":"` + strings.Repeat("x", maxDocument) + `"}`,
		"invalid keys":   `{"keys":1}`,
		"file URL":       `{"issuer":"ISSUER","jwks_uri":"file:///etc/passwd"}`,
		"plain http URL": `{"issuer":"ISSUER","jwks_uri":"http://keys.example.com/"}`,
		"no keys member": `{"issuer":"ISSUER","jwks_uri":"ISSUER/keys"}`,
		"too many keys":  `{"issuer":"ISSUER","jwks_uri":"ISSUER/keys","keys":[` + strings.Repeat(`{},`, 100) + `{}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.tokensOnly()
			s.provider.SetHandler(idptest.RespondWith(strings.ReplaceAll(text, "ISSUER", s.provider.Issuer())))
			s.clock.pass(jwksStale + 1)
			s.want("known key", s.token(nil), 200)
			s.want("unknown key", idptest.Sign(s.key.WithID("x"), nil, s.claims(nil)), 503)
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
	s.want("known key meanwhile", s.token(nil), 200)
	close(answer)
	if got := <-held; got != 503 {
		t.Errorf("waiting request: status %d", got)
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
	s.registry.Close()
	s.want("a token", s.token(nil), 401)
	if err := s.registry.Apply(Options{Anonymous: true}); err == nil {
		t.Error("a closed registry accepted methods")
	}
}

func TestIssuer_unusableKeys(t *testing.T) {
	s := newSite(t)
	for name, key := range map[string]string{
		"symmetric key":             `{"kty":"oct","kid":"one","k":"c2VjcmV0"}`,
		"short RSA key":             `{"kty":"RSA","kid":"one","n":"` + strings.Repeat("_", 170) + `8","e":"AQAB"}`,
		"even exponent":             `{"kty":"RSA","kid":"one","n":"` + s.key.JWK()["n"] + `","e":"AQAC"}`,
		"encryption key":            `{"kty":"RSA","kid":"one","use":"enc","n":"` + s.key.JWK()["n"] + `","e":"AQAB"}`,
		"key for another algorithm": `{"kty":"RSA","kid":"one","alg":"RSA-OAEP","n":"` + s.key.JWK()["n"] + `","e":"AQAB"}`,
		"unknown key type":          `{"kty":"AKP","kid":"one"}`,
		"not a key":                 `1`,
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
