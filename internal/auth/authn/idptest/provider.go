package idptest

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// Provider is an identity provider on loopback. It may be used together.
type Provider struct {
	server *httptest.Server // fixed at creation

	// Guarded by mu.
	mu     sync.Mutex
	keys   []*Key
	answer http.HandlerFunc
	asked  map[string]int
}

// The paths that a provider answers.
const (
	ConfigurationPath = "/.well-known/openid-configuration"
	KeysPath          = "/keys"
)

// New returns a provider that publishes some keys until the test ends.
func New(t testing.TB, keys ...*Key) *Provider {
	p := &Provider{keys: keys, asked: map[string]int{}}
	p.server = httptest.NewServer(p)
	t.Cleanup(p.server.Close)
	return p
}

// Issuer returns the URL of the provider.
func (p *Provider) Issuer() string { return p.server.URL }

// Client returns a client that leaves no connection behind the test.
func (p *Provider) Client() *http.Client { return p.server.Client() }

// Rotate replaces the keys that are published.
func (p *Provider) Rotate(keys ...*Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys = keys
}

// Answer has the provider answer otherwise; nil has it answer as it should.
func (p *Provider) Answer(otherwise http.HandlerFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = otherwise
}

// Down answers like a provider that is down, behind something that is not.
func Down(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }

// Says returns what answers every request with a text.
func Says(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) }
}

// Asked returns how often a path was asked for.
func (p *Provider) Asked(path string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked[path]
}

// ServeHTTP answers one request.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.asked[r.URL.Path]++
	answer, keys := p.answer, p.keys
	p.mu.Unlock()
	switch {
	case answer != nil:
		answer(w, r)
	case r.URL.Path == ConfigurationPath:
		_, _ = w.Write([]byte(text(map[string]string{"issuer": p.Issuer(), "jwks_uri": p.Issuer() + KeysPath})))
	case r.URL.Path == KeysPath:
		published := []map[string]string{}
		for _, k := range keys {
			published = append(published, k.JWK())
		}
		_, _ = w.Write([]byte(text(map[string]any{"keys": published})))
	default:
		http.NotFound(w, r)
	}
}
