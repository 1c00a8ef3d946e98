package authn

import (
	"crypto/tls"
	"crypto/x509"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpd/mcpd/internal/auth/apikey"
	"github.com/mcpd/mcpd/internal/auth/authn/idptest"
	"github.com/mcpd/mcpd/internal/auth/oidc"
	"github.com/mcpd/mcpd/internal/auth/peercred"
)

const audience = "https://mcp.example.com/mcp"

// clock is a clock that tests advance.
type clock struct{ at atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.at.Store(time.Now().UnixNano())
	return c
}

func (c *clock) now() time.Time { return time.Unix(0, c.at.Load()) }

func (c *clock) pass(d time.Duration) { c.at.Add(int64(d)) }

// site is a registry with every method, and the credentials of its callers.
type site struct {
	t        testing.TB
	clock    *clock
	registry *Registry
	file     string
	provider *idptest.Provider
	key      *idptest.Key
	events   []KeyEvent // of its keys
}

func newSite(t testing.TB) *site {
	s := &site{t: t, clock: newClock(), file: filepath.Join(t.TempDir(), "keys.json"), key: idptest.NewKey("one", "RS256")}
	s.provider = idptest.New(t, s.key)
	s.registry = NewRegistry(RegistryOptions{Protocol: oidc.Protocol{}, Client: s.provider.Client(), Now: s.clock.now, OnKeyEvent: func(e KeyEvent) { s.events = append(s.events, e) }})
	t.Cleanup(s.registry.Close)
	s.apiKey(apikey.Record{})
	return s
}

// apiKey creates a key. Empty fields of the record have default values.
func (s *site) apiKey(r apikey.Record) apikey.Key {
	s.t.Helper()
	r.Name, r.Principal, r.Created = "ci", "ci", s.clock.now()
	k, err := apikey.Add(s.file, r)
	if err != nil {
		s.t.Fatal(err)
	}
	return k
}

func (s *site) apply(o Options) {
	s.t.Helper()
	if err := s.registry.Apply(o); err != nil {
		s.t.Fatal(err)
	}
}

// options returns the options of all methods.
func (s *site) options() Options {
	return Options{
		Keys:         []KeyOptions{{File: s.file}},
		Tokens:       []TokenOptions{s.tokens()},
		Certificates: []CertificateOptions{{Allow: []string{"spiffe://fleet/*"}, Agent: true}},
		Peers:        []PeerOptions{{UIDs: []uint32{1000}}},
	}
}

func (s *site) tokens() TokenOptions {
	return TokenOptions{Issuer: s.provider.Issuer(), Audience: audience, RequiredScopes: []string{"mcp"}, Agent: "agent",
		ImpliedScopes: map[string][]string{"all": {"crm"}, "crm": {"all", "mcp", "crm:read"}}}
}

// claims returns valid claims with some changes. Nil removes a claim.
func (s *site) claims(changed map[string]any) map[string]any {
	now := s.clock.now().Unix()
	claims := map[string]any{
		"iss": s.provider.Issuer(), "aud": audience, "sub": "ada", "scope": "mcp crm:read",
		"iat": now, "nbf": now, "exp": now + 300,
	}
	maps.Copy(claims, changed)
	maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
	return claims
}

func (s *site) token(changed map[string]any) string {
	return idptest.Sign(s.key, nil, s.claims(changed))
}

// request returns a request with headers, as alternating names and values.
func request(headers ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/mcp", nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

func bearing(token string) *http.Request { return request("Authorization", "Bearer "+token) }

// withCertificate returns r on a connection with a client certificate.
func withCertificate(r *http.Request, leaf *x509.Certificate) *http.Request {
	r.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{leaf}}, PeerCertificates: []*x509.Certificate{leaf}}
	return r
}

// fromUID returns r as received on a Unix socket.
func fromUID(r *http.Request, uid uint32) *http.Request {
	return r.WithContext(contextOf(peercred.Cred{UID: uid, GID: 7, PID: 4242}))
}
