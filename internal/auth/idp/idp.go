// Package idp is the interface between package authn and the library that reads
// the documents of identity providers. A program has a [Protocol] only if it
// imports extensions/oidc.
package idp

import (
	"context"
	"net/http"
)

// Protocol reads the documents of identity providers.
type Protocol interface {
	// KeysURL returns the URL of an issuer's keys (OpenID Connect Discovery
	// section 4). The caller checks the URL.
	KeysURL(ctx context.Context, client *http.Client, issuer string) (string, error)
	// ParseKeys parses a key set (RFC 7517 section 5) for the algorithms. It
	// omits unusable keys.
	ParseKeys(issuer string, text []byte, algorithms []string) (Keys, error)
}

// KeyName identifies the key that has signed a token.
type KeyName struct{ ID, Alg string }

// Keys holds one verifier for each key and algorithm, so that a token cannot
// choose how a key is used. A name without an id is the only key of its
// algorithm, if there is only one.
type Keys map[KeyName]Verifier

// Verifier checks signatures by one key. Verifiers are comparable.
type Verifier interface {
	// Verify returns an error for a token that the key has not signed.
	Verify(ctx context.Context, token string) error
}
