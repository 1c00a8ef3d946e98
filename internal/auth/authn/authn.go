// Package authn authenticates callers. An [Authenticator] turns a request into
// an [identity.Principal]; nothing else in the server creates one for a client.
// The HTTP transports share it as part of a [Middleware], which also writes the
// error response.
//
// A [Registry] is the Authenticator of a server with credentials: API keys,
// tokens of identity providers, client certificates and Unix socket peers, in
// any combination. [Registry.Apply] replaces all its methods at once. State of
// unchanged methods, such as the keys of a provider, is retained.
//
// A request carries at most one credential, in one header, and never in its
// URL. A connection may also authenticate its client: by a client certificate,
// or by the user of a Unix socket. Then
//
//   - a credential of the request determines the principal, and the connection only
//     binds it to an agent; if both are bound, they must name the same agent;
//   - a request without a credential has the principal of the connection;
//   - a request with neither is anonymous if the options allow it.
//
// A request with an invalid credential is rejected, and never anonymous; so is
// a certificate that no method accepts. A Unix socket user that no method names
// counts as no credential, because every such client has a user.
//
// Access may be revoked while a connection is open. An [Access] is checked
// again during a stream or a body, and [TLS] verifies client certificates
// against the present authorities. Key files are read again while they are in
// use, and [RegistryOptions].OnKeyEvent is called for each [KeyEvent].
//
// Without a Registry, an HTTP caller is anonymous ([Anonymous]), and the
// process at the other end of stdio is the operating-system user
// ([LocalPrincipal]). The package does not read what a caller claims about
// itself in headers or messages, except for the request id, which is logged:
// see [identity.Agent]. Whether the claim matches the credential is checked by
// [identity.Principal.Bind]. A credential and a connection bound to different
// agents are an [AgentConflict].
//
// The package makes no decision about a call. A rejected caller learns no more
// than RFC 6750 requires: the reason is logged for the operator, and contains
// no credential.
//
// The package fetches key sets itself and uses go-oidc only to verify tokens:
// the key set of go-oidc keeps no keys while a provider is down, and limits
// neither the size of documents nor the rate of requests.
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

// Authenticator returns the sender of a request. An error means that the
// request carries an invalid credential: it is rejected, and never treated as
// anonymous. An Authenticator is safe for concurrent use and does not modify
// the request.
type Authenticator func(*http.Request) (identity.Principal, error)

// Anonymous returns the Authenticator of a server without credentials: every
// caller is anonymous.
func Anonymous() Authenticator {
	anonymous := identity.Anonymous()
	return func(*http.Request) (identity.Principal, error) { return anonymous, nil }
}

// LocalPrincipal returns the principal of the operating-system user at the
// other end of stdio or at the command line. The id is the name, or the uid if
// the name is empty; the claims hold both. Without either, the id is "local".
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

// Check returns an error if [Registry.Apply] would now reject the methods, in a
// program with extensions/oidc. It reads the key files, but does not contact
// identity providers.
func Check(o Options) error {
	b := &setBuilder{registry: NewRegistry(RegistryOptions{Protocol: noProtocol{}}), files: map[string]*keyFile{}, issuers: map[string]*issuer{}}
	if _, err := b.build(o); err != nil {
		return fmt.Errorf("check authentication methods: %w", err)
	}
	return nil
}

// noProtocol is a protocol that reads nothing.
type noProtocol struct{ idp.Protocol }

// Options are the methods of authentication. Zero Options reject every request.
type Options struct {
	Keys         []KeyOptions
	Tokens       []TokenOptions
	Certificates []CertificateOptions
	Peers        []PeerOptions
	// Anonymous accepts requests without a credential.
	Anonymous bool
	// AllowAll accepts every request as anonymous and ignores credentials, as a
	// server without methods does. It excludes all other options.
	AllowAll bool
}

// KeyOptions accept API keys.
type KeyOptions struct {
	// File is the path of a key file; see package apikey.
	File string
}

// TokenOptions accept access tokens of an identity provider (RFC 9068, OpenID
// Connect Core).
type TokenOptions struct {
	// Issuer is the URL of the provider, exactly as in its tokens.
	Issuer string
	// Audience is the required audience of the tokens.
	Audience string
	// Resource is the URL of this server, for which clients request tokens (RFC
	// 9728); empty means the audience, if it is a URL. All methods must share one
	// resource.
	Resource string
	// Algorithms are the accepted signature algorithms; empty means RS256, PS256,
	// ES256 and EdDSA. All are asymmetric; see [TokenAlgorithms].
	Algorithms []string
	// ID, Scopes, Groups and Agent name the claims with the id of the principal,
	// the scopes, the groups and the agent that the token is bound to; a dot
	// leads into an object. Empty means "sub", "scope" or "scp", "groups" and no
	// claim.
	ID, Scopes, Groups, Agent string
	// RequiredScopes are the scopes that every token must have.
	RequiredScopes []string
	// ImpliedScopes maps a broader scope to the scopes that it implies,
	// transitively (2026-07-28 basic/authorization, Step-Up Authorization Flow).
	ImpliedScopes map[string][]string
	// Skew is the accepted clock difference, at most a minute. 0 means a minute,
	// a negative value means none.
	Skew time.Duration
}

// CertificateOptions accept client certificates that the connection has
// verified; see [NewTLS].
type CertificateOptions struct {
	// Allow are patterns of names, in which * matches any characters. An entry
	// matches names of one type: the type of its prefix "uri:", "dns:", "email:"
	// or "ip:", or else the type of its form. "*" and an empty list match every
	// name that is not an IP address.
	Allow []string
	// Agent binds the certificate to the agent with its name.
	Agent bool
}

// PeerOptions accept users of this machine through a Unix socket; see
// [ConnContext].
type PeerOptions struct {
	// UIDs and GIDs are the accepted users and groups; a peer needs one of them.
	UIDs, GIDs []uint32
}

// maxSkew bounds the accepted clock difference between issuer and server.
const maxSkew = time.Minute

// TokenAlgorithms returns the supported signature algorithms of tokens (RFC
// 7518, RFC 8037). None of them is symmetric or unsigned.
func TokenAlgorithms() []string {
	return []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
}

// withDefaults returns the options with defaults for empty fields, or an error
// if they are invalid.
func (o TokenOptions) withDefaults() (TokenOptions, error) {
	if len(o.Algorithms) == 0 {
		o.Algorithms = []string{"RS256", "PS256", "ES256", "EdDSA"}
	}
	for _, name := range o.Algorithms {
		if !slices.Contains(TokenAlgorithms(), name) {
			return o, fmt.Errorf("algorithm %q is not supported for tokens", name)
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
			return o, errors.New("a required scope has invalid characters")
		}
	}
	for broad, narrower := range o.ImpliedScopes {
		if !isScope(broad) || slices.ContainsFunc(narrower, func(scope string) bool { return !isScope(scope) }) {
			return o, errors.New("an implied scope has invalid characters")
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

// isResource reports whether a text is the URL of a protected resource (RFC
// 9728 section 1.2); http is allowed.
func isResource(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Hostname() != "" && u.User == nil &&
		u.RawQuery == "" && !u.ForceQuery && u.Fragment == "" && isQuotable(text)
}

// isQuotable reports whether a text may appear in quotes in a header.
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

// isLoopback reports whether the host name or address is this machine.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
