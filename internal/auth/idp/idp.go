// Package idp is the seam between package authn and the library that reads what identity
// providers publish: a program has a [Protocol] only if it imports extensions/oidc.
package idp

import (
	"context"
	"net/http"
)

// Protocol reads what identity providers publish.
type Protocol interface {
	// KeysURL returns where the keys of an issuer are (OpenID Connect Discovery section 4).
	// The caller checks the URL.
	KeysURL(ctx context.Context, client *http.Client, issuer string) (string, error)
	// ParseKeys reads a set of keys (RFC 7517 section 5) for some algorithms. It leaves out
	// keys that are of no use.
	ParseKeys(issuer string, text []byte, algorithms []string) (Keys, error)
}

// KeyName is how a token names the key that has signed it.
type KeyName struct{ ID, Alg string }

// Keys check one algorithm with one key each, so that a token can never choose what its key
// is used for. A token without the id of a key is checked by the only key of its algorithm,
// if there is one only.
type Keys map[KeyName]Verifier

// Verifier checks the signatures of one key. Verifiers can be compared.
type Verifier interface {
	// Verify returns an error for a token that the key has not signed.
	Verify(ctx context.Context, token string) error
}
