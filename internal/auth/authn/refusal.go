package authn

import (
	"errors"
	"net/http"
	"time"

	"github.com/mcpd/mcpd/internal/base/httpheader"
)

// Refusal is why a request may not enter, and what its caller is told.
type Refusal struct {
	// Status is 400, 401, 403 or 503.
	Status int
	// Challenge is the WWW-Authenticate header (RFC 6750 section 3, RFC 9728
	// section 5.1), empty for none.
	Challenge string
	// RetryAfter is when to come back with a 503.
	RetryAfter time.Duration

	reason error
	// keysOnly says that the server takes API keys and no tokens.
	keysOnly bool
}

// Error returns the reason, for the operator. It holds no credential.
func (r *Refusal) Error() string {
	if r.reason == nil {
		return "no reason is given"
	}
	return r.reason.Error()
}

// Unwrap returns the reason.
func (r *Refusal) Unwrap() error { return r.reason }

// message returns what the caller is told.
func (r *Refusal) message() string {
	switch r.Status {
	case http.StatusBadRequest:
		return "the request has more than one credential; send one, in one header"
	case http.StatusForbidden:
		return "the credential does not allow this request"
	case http.StatusServiceUnavailable:
		return "the credential cannot be checked now; try again later"
	}
	switch {
	case r.keysOnly && (errors.Is(r.reason, errAbsent) || errors.Is(r.reason, errScheme)):
		return "this server takes API keys: send one as Authorization: Bearer KEY"
	case r.keysOnly && errors.Is(r.reason, errNoTokens):
		return "this server takes API keys, and no tokens: send a key as Authorization: Bearer KEY"
	case errors.Is(r.reason, errAbsent):
		return "no credential was sent, and this server lets in nobody without one"
	}
	return "the credential was not accepted"
}

func (r *Refusal) setHeaders(h http.Header) {
	if r.Challenge != "" {
		h.Set("WWW-Authenticate", r.Challenge)
	}
	if r.RetryAfter > 0 {
		httpheader.SetRetryAfter(h, r.RetryAfter)
	}
}

// unavailableError says that nothing is known of a credential for now.
type unavailableError struct {
	wait time.Duration
	// cause is nil where the wait was not over.
	cause error
}

func (e *unavailableError) Error() string {
	if e.cause == nil {
		return "the identity provider did not answer a short while ago"
	}
	return "the identity provider does not answer: " + e.cause.Error()
}

func (e *unavailableError) Unwrap() error { return e.cause }

// scopeError says that a credential proves somebody who lacks a scope.
type scopeError struct {
	// challenge names the scopes that are needed.
	challenge string
}

func (e *scopeError) Error() string { return "the token lacks a scope that is required" }
