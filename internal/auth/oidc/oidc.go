// Package oidc reads the documents of identity providers, with go-oidc and
// go-jose.
package oidc

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"

	"github.com/mcpd/mcpd/internal/auth/idp"
)

const (
	maxKeys = 100
	// minRSA and maxRSA bound the length of an RSA key in bits: shorter keys are
	// insecure (RFC 7518 section 3.3), and longer ones cost too much time.
	minRSA, maxRSA = 2048, 8192
)

// Protocol is an [idp.Protocol].
type Protocol struct{}

// KeysURL fetches the URL from the provider.
func (Protocol) KeysURL(ctx context.Context, client *http.Client, issuer string) (string, error) {
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, client), issuer)
	if err != nil {
		return "", fmt.Errorf("read configuration: %w", err)
	}
	var metadata struct {
		Keys string `json:"jwks_uri"`
	}
	if err := provider.Claims(&metadata); err != nil {
		return "", errors.New("read configuration: jwks_uri is not an https URL")
	}
	return metadata.Keys, nil
}

// ParseKeys parses a key set and omits unusable keys (RFC 7517 section 5).
func (Protocol) ParseKeys(issuer string, text []byte, algorithms []string) (idp.Keys, error) {
	var document struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(text, &document); err != nil || document.Keys == nil {
		return nil, errors.New("read keys: the document is not a key set")
	}
	if len(document.Keys) > maxKeys {
		return nil, errors.New("read keys: more than 100 keys")
	}
	keys := idp.Keys{}
	of := map[string]int{}
	for _, raw := range document.Keys {
		var k jose.JSONWebKey
		if json.Unmarshal(raw, &k) != nil || k.Use != "" && k.Use != "sig" {
			continue
		}
		for _, alg := range algorithmsOf(k) {
			name := idp.KeyName{ID: k.KeyID, Alg: alg}
			if !slices.Contains(algorithms, alg) {
				continue
			}
			v := newVerifier(issuer, k.Key, alg)
			of[alg]++
			keys[idp.KeyName{Alg: alg}] = v
			if keys[name] == nil || k.KeyID == "" {
				keys[name] = v
			}
		}
	}
	for alg, n := range of {
		if n > 1 {
			delete(keys, idp.KeyName{Alg: alg})
		}
	}
	return keys, nil
}

// verifier checks signatures of one algorithm by one key.
type verifier struct{ *oidc.IDTokenVerifier }

// newVerifier returns a verifier. Package authn checks the audience and the
// times.
func newVerifier(issuer string, key crypto.PublicKey, alg string) verifier {
	return verifier{oidc.NewVerifier(issuer, &oidc.StaticKeySet{PublicKeys: []crypto.PublicKey{key}},
		&oidc.Config{SupportedSigningAlgs: []string{alg}, SkipClientIDCheck: true, SkipExpiryCheck: true})}
}

func (v verifier) Verify(ctx context.Context, token string) error {
	_, err := v.IDTokenVerifier.Verify(ctx, token)
	return err
}

// algorithmsOf returns the algorithms that a key may be used for: the one that
// it declares, if it fits. Private and symmetric keys have none.
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
