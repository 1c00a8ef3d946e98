package authn

import (
	"net/http"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/internal/auth/apikey"
	"github.com/mcpd/mcpd/internal/auth/authn/idptest"
)

func FuzzCredential(f *testing.F) {
	for _, text := range []string{"Bearer x", "bearer  x==", "Bearer", "Bearer a b", "Basic x", "Bearer " + apikey.New().Plaintext()} {
		f.Add(text, "")
		f.Add("", text)
	}
	f.Fuzz(func(t *testing.T, authorization, key string) {
		h := http.Header{}
		if authorization != "" {
			h.Set("Authorization", authorization)
		}
		if key != "" {
			h.Set("X-API-Key", key)
		}
		c, err := credentialOf(h)
		switch {
		case err == nil && (c.kind == noCredential) != (len(h) == 0):
			t.Error("a valid header was rejected")
		case err == nil && !strings.HasSuffix(authorization+key, c.text), len(c.text) > maxCredential:
			t.Error("the credential differs from the header")
		case len(h) == 2 && err == nil:
			t.Error("two headers were accepted")
		}
	})
}

func FuzzToken(f *testing.F) {
	s := newSite(f)
	s.tokensOnly()
	f.Add(s.token(nil))
	f.Add(idptest.Sign(s.key.None(), nil, s.claims(nil)))
	f.Add("a.b.c")
	valid := s.token(nil)
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := s.registry.Authenticate(bearing(text)); err == nil && text != valid {
			t.Errorf("FALSE ACCEPT")
		}
	})
}

func TestToken_sizes(t *testing.T) {
	s := newSite(t)
	s.tokensOnly()
	for size := 1; size <= 1_000_000; size *= 10 {
		for _, claims := range []string{
			strings.Repeat("[", size), strings.Repeat(`{"a":`, size), `{"aud":[` + strings.Repeat(`"a",`, size) + `"a"]}`, strings.Repeat("1", size),
		} {
			s.want("claims", idptest.SignText(s.key, `{"alg":"RS256"}`, claims), 401)
			s.want("header", idptest.SignText(s.key, claims, `{}`), 401)
		}
		s.want("dots", strings.Repeat(".", size), 401)
		s.want("letters", strings.Repeat("a", size), 401)
	}
}

func benchmark(b *testing.B, r *Registry, req *http.Request) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Authenticate(req); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkKey(b *testing.B) {
	s := newSite(b)
	k := s.apiKey(apikey.Record{})
	s.apply(s.options())
	benchmark(b, s.registry, bearing(k.Plaintext()))
}

func BenchmarkToken(b *testing.B) {
	for _, alg := range []string{"RS256", "ES256", "EdDSA"} {
		b.Run(alg, func(b *testing.B) {
			s := newSite(b)
			s.key = idptest.NewKey("k", alg)
			s.provider.Rotate(s.key)
			s.tokensOnly()
			benchmark(b, s.registry, bearing(s.token(nil)))
		})
	}
}

func TestAuthenticate_allocations(t *testing.T) {
	s := newSite(t)
	k := s.apiKey(apikey.Record{})
	token := s.token(nil)
	s.tokensOnly()
	s.apply(s.options())
	for _, row := range []struct {
		name string
		r    *http.Request
		most float64
	}{{"key", bearing(k.Plaintext()), 0}, {"token", bearing(token), 250}} {
		if n := testing.AllocsPerRun(100, func() {
			if _, err := s.registry.Authenticate(row.r); err != nil {
				t.Fatal(err)
			}
		}); n > row.most {
			t.Errorf("%s: %v allocations, want at most %v", row.name, n, row.most)
		}
	}
}
