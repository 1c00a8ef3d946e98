// Package idptest is a small identity provider for tests: an OpenID Connect
// provider on loopback that signs any token, including invalid ones.
//
// A [Provider] publishes its present keys. [Provider.Rotate] replaces them;
// [Provider.SetHandler] makes it fail, delay, or send garbage. [Sign] creates a
// token from any header, claims and [Key], with only the standard library, so
// that it repeats no mistake of the library under test.
package idptest

import (
	"cmp"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// Provider is an identity provider on loopback. It is safe for concurrent use.
type Provider struct {
	server *httptest.Server // fixed at creation

	// Guarded by mu.
	mu       sync.Mutex
	keys     []*Key
	handler  http.HandlerFunc
	requests map[string]int
}

// The paths that a provider serves.
const (
	ConfigurationPath = "/.well-known/openid-configuration"
	KeysPath          = "/keys"
)

// New returns a provider that publishes the keys until the test ends.
func New(t testing.TB, keys ...*Key) *Provider {
	p := &Provider{keys: keys, requests: map[string]int{}}
	p.server = httptest.NewServer(p)
	t.Cleanup(p.server.Close)
	return p
}

// Issuer returns the URL of the provider.
func (p *Provider) Issuer() string { return p.server.URL }

// Client returns a client whose connections end with the test.
func (p *Provider) Client() *http.Client { return p.server.Client() }

// Rotate replaces the published keys.
func (p *Provider) Rotate(keys ...*Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys = keys
}

// SetHandler makes h answer all requests; nil restores the default.
func (p *Provider) SetHandler(h http.HandlerFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.handler = h
}

// Down answers as a proxy in front of a provider that is down.
func Down(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }

// RespondWith returns a handler that answers every request with a text.
func RespondWith(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) }
}

// Requests returns the number of requests for a path.
func (p *Provider) Requests(path string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests[path]
}

// ServeHTTP serves one request.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.requests[r.URL.Path]++
	answer, keys := p.handler, p.keys
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

// Key signs tokens with a key id.
type Key struct {
	ID, Algorithm string
	signer        crypto.Signer
	secret        []byte
}

// NewKey returns a new key for RS256, PS256, ES256 or EdDSA. RSA keys have 2048
// bits.
func NewKey(id, algorithm string) *Key {
	k := &Key{ID: id, Algorithm: algorithm}
	var err error
	switch algorithm {
	case "ES256":
		k.signer, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "EdDSA":
		_, k.signer, err = ed25519.GenerateKey(rand.Reader)
	default:
		k.signer, err = rsa.GenerateKey(rand.Reader, 2048)
	}
	if err != nil {
		panic(err) // the random number generator is broken
	}
	return k
}

// Confused returns a key for HS256 with the public key of k as its secret: an
// attack on verifiers that let tokens choose their algorithm.
func (k *Key) Confused() *Key {
	published := k.public()
	return &Key{ID: k.ID, Algorithm: "HS256", secret: []byte(cmp.Or(published["n"], published["x"]))}
}

// None returns a key for the algorithm "none", which does not sign.
func (k *Key) None() *Key { return &Key{ID: k.ID, Algorithm: "none"} }

// WithAlgorithm returns the key with another algorithm in its header.
func (k *Key) WithAlgorithm(algorithm string) *Key {
	other := *k
	other.Algorithm = algorithm
	return &other
}

// WithID returns the key with another id.
func (k *Key) WithID(id string) *Key {
	other := *k
	other.ID = id
	return &other
}

// public returns the members of the published key (RFC 7518 section 6, RFC 8037
// section 2).
func (k *Key) public() map[string]string {
	switch key := k.signer.Public().(type) {
	case *rsa.PublicKey:
		return map[string]string{"kty": "RSA", "n": encode(key.N.Bytes()), "e": "AQAB"}
	case *ecdsa.PublicKey:
		point, err := key.Bytes()
		if err != nil {
			panic(err) // the curve has points
		}
		return map[string]string{"kty": "EC", "crv": "P-256", "x": encode(point[1:33]), "y": encode(point[33:])}
	case ed25519.PublicKey:
		return map[string]string{"kty": "OKP", "crv": "Ed25519", "x": encode(key)}
	}
	return nil
}

// JWK returns the published form of the key.
func (k *Key) JWK() map[string]string {
	published := k.public()
	published["use"], published["kid"], published["alg"] = "sig", k.ID, k.Algorithm
	return published
}

// Sign returns a token of the claims, signed by a key. header overrides the
// members "alg", "kid", and "typ" (default "at+jwt"); nil removes one.
func Sign(k *Key, header, claims map[string]any) string {
	h := map[string]any{"alg": k.Algorithm, "kid": k.ID, "typ": "at+jwt"}
	for name, value := range header {
		if h[name] = value; value == nil {
			delete(h, name)
		}
	}
	return SignText(k, text(h), text(claims))
}

// SignText is Sign for a header and claims that may not be JSON.
func SignText(k *Key, header, claims string) string {
	signed := encode([]byte(header)) + "." + encode([]byte(claims))
	return signed + "." + encode(k.sign([]byte(signed)))
}

func (k *Key) sign(signed []byte) []byte {
	if k.signer == nil {
		if k.secret == nil {
			return nil
		}
		mac := hmac.New(sha256.New, k.secret)
		mac.Write(signed)
		return mac.Sum(nil)
	}
	sum := sha256.Sum256(signed)
	switch key := k.signer.(type) {
	case *ecdsa.PrivateKey:
		r, s, err := ecdsa.Sign(rand.Reader, key, sum[:])
		if err != nil {
			panic(err)
		}
		return append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
	case ed25519.PrivateKey:
		return ed25519.Sign(key, signed)
	}
	var o crypto.SignerOpts = crypto.SHA256
	if strings.HasPrefix(k.Algorithm, "PS") {
		o = &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: crypto.SHA256}
	}
	signature, err := k.signer.Sign(rand.Reader, sum[:], o)
	if err != nil {
		panic(err)
	}
	return signature
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // the test passed a value that is not JSON
	}
	return string(b)
}
