package authn

import (
	"errors"
	"net/http"
	"strings"

	"github.com/mcpd/mcpd/internal/auth/apikey"
)

// maxCredential bounds a credential in bytes.
const maxCredential = 16 << 10

var (
	errSeveral   = errors.New("the request has more than one credential")
	errScheme    = errors.New("the scheme of the Authorization header is not Bearer")
	errMalformed = errors.New("the credential is malformed")
)

// credentialKind tells what a credential looks like.
type credentialKind int

const (
	noCredential credentialKind = iota
	keyCredential
	tokenCredential
)

// credential is what a request carries to prove who sends it.
type credential struct {
	kind credentialKind
	text string
}

// credentialOf returns the credential of a request: the one of the header
// Authorization (RFC 6750 section 2.1) or of X-API-Key. Both, or one of them
// twice, is [errSeveral]. URL and body are not looked at.
func credentialOf(h http.Header) (credential, error) {
	bearers, keys := h["Authorization"], h["X-Api-Key"]
	switch len(bearers) + len(keys) {
	case 0:
		return credential{}, nil
	case 1:
	default:
		return credential{}, errSeveral
	}
	if len(keys) == 1 {
		if !isToken68(keys[0]) {
			return credential{}, errMalformed
		}
		return credential{keyCredential, keys[0]}, nil
	}
	scheme, text, _ := strings.Cut(bearers[0], " ")
	text = strings.TrimLeft(text, " ")
	switch {
	case !strings.EqualFold(scheme, "Bearer"):
		return credential{}, errScheme
	case !isToken68(text):
		return credential{}, errMalformed
	case strings.HasPrefix(text, apikey.Prefix):
		return credential{keyCredential, text}, nil
	}
	return credential{tokenCredential, text}, nil
}

// isToken68 reports whether a text has the form of a credential (RFC 9110
// section 11.2), within its bound.
func isToken68(text string) bool {
	body := strings.TrimRight(text, "=")
	if body == "" || len(text) > maxCredential {
		return false
	}
	for i := range len(body) {
		c := body[i]
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !letter && strings.IndexByte("-._~+/", c) < 0 {
			return false
		}
	}
	return true
}
