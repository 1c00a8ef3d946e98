// Package authn proves who calls. An [Authenticator] turns a request into an
// [identity.Principal]; nothing else in the server makes one for a client. The
// HTTP transports share it as part of a [Door], which says what to answer when
// there is no proof.
//
// A [Roster] is the Authenticator of a server with credentials: API keys, tokens
// of identity providers, client certificates and the peers of a Unix socket, any
// of them at once. [Roster.Apply] replaces its methods as one; what they have
// read, such as the keys of a provider, lives on where nothing about it changed.
//
// A request carries one credential at most, in one header, and never in its URL.
// A connection may prove somebody too: by the certificate of its client, or by
// its user on a Unix socket. Then
//
//   - a credential of the request is the principal, and the connection only binds
//     it to an agent; both bound, they must name the same one;
//   - a request without a credential is who the connection proves;
//   - a request without either is anonymous where the options say so.
//
// A credential that proves nothing is refused, and is never anonymous; so is a
// certificate that no method takes. A user of a Unix socket whom no method names
// has merely proved nothing, as nobody can choose not to be one.
//
// What a connection was let in by may be gone before the connection is: a [Pass] is who has
// entered, judged again while a stream or a body lasts, and [TLS] has requests held to the
// authorities of client certificates that there are by then. Files of keys are looked at
// while they are used, and [RosterOptions].Keys is told of each [KeyEvent].
//
// Without a Roster a caller on HTTP is anonymous ([Anonymous]); the process on the
// other end of stdio is the operating-system user ([Local]). What a caller claims
// about itself, in headers or in a message, is never read here, but for the id of its
// request, which the log has: that is [identity.Agent]. Whether the claim fits the
// credential is [identity.Principal.Bind]; whether that of the connection does, is a
// [Conflict].
//
// The package decides nothing about a call, and tells a caller nothing of why it
// was refused beyond RFC 6750: the reason is the operator's, and holds no credential.
//
// Key sets are fetched by hand, beside go-oidc which verifies tokens: its own set keeps
// no keys while a provider is down, and bounds neither documents nor the rate of
// requests.
package authn

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/auth/idp"
)

// Authenticator proves who sent a request. An error means that the request
// carries a credential that proves nothing: it is refused, and is never
// treated as anonymous. An Authenticator is safe for concurrent use and does
// not change the request.
type Authenticator func(*http.Request) (identity.Principal, error)

// Anonymous returns the Authenticator of a server without credentials: nothing
// is proved about anyone.
func Anonymous() Authenticator {
	anonymous := identity.Anonymous()
	return func(*http.Request) (identity.Principal, error) { return anonymous, nil }
}

// Local returns the principal of the operating-system user who holds the other
// end of stdio or types the command line. The id is the name, or the uid when
// the name is not known; the claims hold both. Neither given, the id is "local".
func LocalPrincipal(uid, name string) identity.Principal {
	p := identity.Anonymous()
	p.Kind = identity.KindLocal
	p.ID = "local"
	for _, claim := range []struct{ key, value string }{{"uid", uid}, {"name", name}} {
		if claim.value == "" {
			continue
		}
		p.ID = claim.value
		p.Claims[claim.key] = claim.value
	}
	return p
}

// Check returns why methods could not be applied now, as the [Roster.Apply] of a program
// with extensions/oidc would. It reads the files of keys, and asks no identity provider.
func Check(o Options) error {
	b := &setBuilder{registry: NewRegistry(RegistryOptions{Protocol: noProtocol{}}), files: map[string]*keyFile{}, issuers: map[string]*issuer{}}
	if _, err := b.build(o); err != nil {
		return fmt.Errorf("check methods of authentication: %w", err)
	}
	return nil
}

// unasked is a protocol that nothing is read with.
type noProtocol struct{ idp.Protocol }

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
	AllowAll bool
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
	// ID, Scopes, Groups and Agent name the claims that hold the id of the principal, the
	// scopes, its groups and the agent that the token is bound to; a dot leads into an
	// object. Empty means "sub", "scope" or "scp", "groups" and no claim.
	ID, Scopes, Groups, Agent string
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
