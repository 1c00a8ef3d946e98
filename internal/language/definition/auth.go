package definition

import (
	"time"

	"github.com/mcpd/mcpd/diag"
)

// Auth is an auth block: a way in which callers prove who they are. It holds the
// one of Keys, Tokens, Certificates and Peers that its kind says; none of them
// lets in callers without a credential.
type Auth struct {
	// Kind is "api_key", "oidc", "mtls", "unix" or "anonymous".
	Kind, Name string
	APIKeys    *AuthAPIKeys
	JWT        *AuthJWT
	MTLS       *AuthMTLS
	UnixPeers  *AuthUnixPeers
	Range      diag.Range
}

// AuthKeys lets the holders of API keys in.
type AuthAPIKeys struct {
	// File is a path, relative to the folder of the operator's file.
	File string
}

// AuthTokens lets in whom an identity provider has issued a token to.
type AuthJWT struct {
	// Issuer is an https URL, or an http one of this machine.
	Issuer   string
	Audience string
	// Resource is the URL of this server, "" for the audience.
	Resource string
	// Algorithms is nil for the usual ones.
	Algorithms []string
	// ID, Scopes, Groups and Agent name claims, "" for the usual ones.
	ID, Scopes, Groups, Agent string
	RequiredScopes            []string
	// ImpliedScopes are the scopes that a broader one implies.
	ImpliedScopes map[string][]string
	// Skew is how far the clocks may differ.
	Skew time.Duration
}

// AuthCertificates lets the holders of client certificates in.
type AuthMTLS struct {
	// Allow are patterns of names; nil is every name.
	Allow []string
	// Agent binds a certificate to the agent of its name.
	Agent bool
}

// AuthPeers lets users of this machine in.
type AuthUnixPeers struct{ UIDs, GIDs []uint32 }

// Secret is a secret block. Exactly one of Env, File, Command and OAuth is set.
type Secret struct {
	Name    string
	Env     string
	File    string
	Command []string
	OAuth   *OAuth
	// Reveal lets scripts read the value that are granted it.
	Reveal bool
	Range  diag.Range
}

// Unsaid reports whether the block does not say where the secret comes from.
func (s *Secret) HasNoSource() bool {
	return s.Env == "" && s.File == "" && s.Command == nil && s.OAuth == nil
}

// OAuth is an oauth block: how this server gets tokens for itself, by the grant
// of client credentials (RFC 6749 section 4.4), or for single users, by that of
// an authorization code (section 4.1).
type OAuth struct {
	// AuthorizeURL is where users let the server have tokens of theirs, and
	// RedirectURL the place to which they come back: an http URL of this machine, or
	// an https one of this server, below /oauth/. Both are empty when the server asks
	// for itself.
	AuthorizeURL, RedirectURL string
	// TokenURL is an https URL, or an http one of this machine.
	TokenURL string
	ClientID string
	// ClientSecret is the name of the secret that proves the client, "" of one that
	// is proved by nothing, as it may be where users are asked.
	ClientSecret string
	Scopes       []string
	// Params are sent beside what the grant sends; the audience is one of them.
	Params map[string]string
	// InBody sends id and secret in the body of the request, and not in its
	// Authorization header.
	CredentialsInBody bool
	// PrivateNetworks lets the host be at a private, loopback or link-local address.
	PrivateNetworks bool

	SecretRange, RedirectRange diag.Range
}
