package authn

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"time"
)

// Options say how callers may prove who they are. Zero Options let nobody in.
type Options struct {
	Keys         []KeyOptions
	Tokens       []TokenOptions
	Certificates []CertificateOptions
	Peers        []PeerOptions
	// Anonymous lets in who carries no credential.
	Anonymous bool
	// Open lets everybody in as anonymous, and looks at no credential: it is what a
	// server without methods is, and stands beside none.
	Open bool
}

// KeyOptions let the holders of API keys in.
type KeyOptions struct {
	// File is the path of a file of keys; see package apikey.
	File string
}

// TokenOptions let in whom an identity provider has issued an access token to
// (RFC 9068, OpenID Connect Core).
type TokenOptions struct {
	// Issuer is the URL of the provider, exactly as its tokens name it.
	Issuer string
	// Audience is what the tokens must be meant for.
	Audience string
	// Resource is the URL of this server, which clients ask tokens for (RFC 9728);
	// empty means the audience, where that is a URL. It is one for all methods.
	Resource string
	// Algorithms are those that tokens may be signed by; empty means RS256, PS256,
	// ES256 and EdDSA. All are asymmetric; see [TokenAlgorithms].
	Algorithms []string
	// ID, Groups and Agent name the claims that hold the id of the principal, its
	// groups and the agent that the token is bound to; a dot leads into an object.
	// Empty means "sub", "groups" and no claim.
	ID, Groups, Agent string
	// Scopes names the claim of the scopes; empty means "scope" or "scp".
	Scopes string
	// RequiredScopes are scopes that every token must have.
	RequiredScopes []string
	// ImpliedScopes are the scopes that a broader one implies, and those imply in turn:
	// who has it has them (2026-07-28 basic/authorization, Step-Up Authorization Flow).
	ImpliedScopes map[string][]string
	// Skew is how far the clocks may differ, a minute at most. 0 means a minute,
	// less than 0 none.
	Skew time.Duration
}

// CertificateOptions let the holders of client certificates in, which the
// connection has verified; see [NewTLS].
type CertificateOptions struct {
	// Allow are patterns of names, in which * matches any run of characters. An entry
	// matches names of one type: the one before it, as in "uri:", "dns:", "email:" and
	// "ip:", or else that of its form. "*" and an empty list mean every name that is no
	// IP address.
	Allow []string
	// Agent binds the certificate to the agent of its name.
	Agent bool
}

// PeerOptions let users of this machine in through a Unix socket; see [ConnContext].
type PeerOptions struct {
	// UIDs and GIDs are those that may enter: one of them is enough.
	UIDs, GIDs []uint32
}

// maxSkew bounds how far the clocks of issuer and server may differ.
const maxSkew = time.Minute

// TokenAlgorithms returns the algorithms that tokens may be signed by (RFC 7518,
// RFC 8037). None of them can be checked with a secret, or with nothing.
func TokenAlgorithms() []string {
	return []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
}

// withDefaults returns the options with what is absent filled in, or what is
// wrong with them.
func (o TokenOptions) withDefaults() (TokenOptions, error) {
	if len(o.Algorithms) == 0 {
		o.Algorithms = []string{"RS256", "PS256", "ES256", "EdDSA"}
	}
	for _, name := range o.Algorithms {
		if !slices.Contains(TokenAlgorithms(), name) {
			return o, fmt.Errorf("algorithm %q is not one that tokens may be signed by", name)
		}
	}
	if o.ID == "" {
		o.ID = "sub"
	}
	if o.Groups == "" {
		o.Groups = "groups"
	}
	switch {
	case o.Skew == 0:
		o.Skew = maxSkew
	case o.Skew < 0:
		o.Skew = 0
	}
	if o.Resource == "" && isResource(o.Audience) {
		o.Resource = o.Audience
	}
	switch {
	case !isProvider(o.Issuer):
		return o, errors.New("the issuer is not an https URL without query and fragment")
	case o.Skew > maxSkew:
		return o, errors.New("the skew is more than a minute")
	case o.Audience == "":
		return o, errors.New("there is no audience")
	case o.Resource != "" && !isResource(o.Resource):
		return o, errors.New("the resource is not a URL without query and fragment")
	}
	for _, scope := range o.RequiredScopes {
		if !isScope(scope) {
			return o, errors.New("a required scope has characters that no scope has")
		}
	}
	for broad, narrower := range o.ImpliedScopes {
		if !isScope(broad) || slices.ContainsFunc(narrower, func(scope string) bool { return !isScope(scope) }) {
			return o, errors.New("an implied scope has characters that no scope has")
		}
	}
	return o, nil
}

// isProvider reports whether a text is the URL of an identity provider: https,
// or http on this machine.
func isProvider(text string) bool {
	u, err := url.Parse(text)
	if err != nil || !isResource(text) {
		return false
	}
	return u.Scheme == "https" || isLoopback(u.Hostname())
}

// isResource reports whether a text is the URL of a protected resource (RFC 9728
// section 1.2), http allowed.
func isResource(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Hostname() != "" && u.User == nil &&
		u.RawQuery == "" && !u.ForceQuery && u.Fragment == "" && isQuotable(text)
}

// isQuotable reports whether a text may stand between quotes in a header.
func isQuotable(text string) bool {
	for i := range len(text) {
		if c := text[i]; c <= ' ' || c >= 0x7f || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// isScope reports whether a text is a scope (RFC 6749 section 3.3).
func isScope(text string) bool { return text != "" && isQuotable(text) }

// isLoopback reports whether a host is this machine by its name.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
