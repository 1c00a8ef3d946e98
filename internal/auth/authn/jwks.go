package authn

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
)

const (
	maxKeys     = 100
	maxDocument = 1 << 20 // bytes
	// minRSA and maxRSA bound the length of an RSA key in bits: shorter ones are no
	// proof (RFC 7518 section 3.3), and longer ones are work for nothing.
	minRSA, maxRSA = 2048, 8192
)

// keyName is how a token names what it is signed by.
type keyName struct{ id, alg string }

// keySet are the keys of a provider. It is immutable.
type keySet struct {
	// verifiers check one algorithm with one key each, so that a token can never
	// choose what its key is used for. A token without the id of a key is checked by
	// the only key of its algorithm, if there is one only.
	verifiers map[keyName]*oidc.IDTokenVerifier
	read      time.Time
}

// read asks the provider where its keys are (OpenID Connect Discovery section 4),
// and for these.
func (i *issuer) read(ctx context.Context) (*keySet, error) {
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, i.client), i.url)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	var said struct {
		Keys string `json:"jwks_uri"`
	}
	if err := provider.Claims(&said); err != nil || !isProvider(said.Keys) {
		return nil, errors.New("read configuration: jwks_uri is not an https URL")
	}
	text, err := i.get(ctx, said.Keys)
	if err != nil {
		return nil, fmt.Errorf("read keys: %w", err)
	}
	return i.parseKeys(text)
}

func (i *issuer) get(ctx context.Context, url string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Cache-Control", "no-cache")
	resp, err := i.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(resp.Body)
}

// parseKeys reads a set of keys (RFC 7517 section 5), which has passed the gate.
// Keys that are of no use here are left out, as section 5 says.
func (i *issuer) parseKeys(text []byte) (*keySet, error) {
	var document struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(text, &document); err != nil || document.Keys == nil {
		return nil, errors.New("read keys: the document is no set of keys")
	}
	if len(document.Keys) > maxKeys {
		return nil, errors.New("read keys: there are more than 100")
	}
	set := &keySet{verifiers: map[keyName]*oidc.IDTokenVerifier{}}
	of := map[string]int{}
	for _, raw := range document.Keys {
		var k jose.JSONWebKey
		if json.Unmarshal(raw, &k) != nil || k.Use != "" && k.Use != "sig" {
			continue
		}
		for _, alg := range algorithmsOf(k) {
			name := keyName{k.KeyID, alg}
			if !slices.Contains(i.algorithms, alg) {
				continue
			}
			v := i.verifierOf(k.Key, alg)
			of[alg]++
			set.verifiers[keyName{"", alg}] = v
			if set.verifiers[name] == nil || k.KeyID == "" {
				set.verifiers[name] = v
			}
		}
	}
	for alg, n := range of {
		if n > 1 {
			delete(set.verifiers, keyName{"", alg})
		}
	}
	return set, nil
}

// verifierOf returns what checks signatures of one algorithm by one key. Whom
// tokens are for and when is checked elsewhere.
func (i *issuer) verifierOf(key crypto.PublicKey, alg string) *oidc.IDTokenVerifier {
	return oidc.NewVerifier(i.url, &oidc.StaticKeySet{PublicKeys: []crypto.PublicKey{key}},
		&oidc.Config{SupportedSigningAlgs: []string{alg}, SkipClientIDCheck: true, SkipExpiryCheck: true})
}

// algorithmsOf returns what a key may be used for: what it says, if that fits. It
// is nothing for private and for symmetric keys.
func algorithmsOf(k jose.JSONWebKey) []string {
	var fit []string
	switch key := k.Key.(type) {
	case *rsa.PublicKey:
		if bits := key.N.BitLen(); bits >= minRSA && bits <= maxRSA && key.E >= 3 && key.E%2 == 1 {
			fit = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}
		}
	case *ecdsa.PublicKey:
		if alg := map[int]string{256: "ES256", 384: "ES384", 521: "ES512"}[key.Params().BitSize]; alg != "" {
			fit = []string{alg}
		}
	case ed25519.PublicKey:
		fit = []string{"EdDSA"}
	}
	switch {
	case k.Algorithm == "":
		return fit
	case slices.Contains(fit, k.Algorithm):
		return []string{k.Algorithm}
	}
	return nil
}

// documentsOnly returns a client whose answers are JSON documents of a bounded
// size that have passed the gate, with status 200: whatever else comes is an error
// that repeats nothing of it.
func documentsOnly(c *http.Client) *http.Client {
	only := *c
	only.Transport = documents{c.Transport}
	if c.Transport == nil {
		only.Transport = documents{http.DefaultTransport}
	}
	return &only
}
