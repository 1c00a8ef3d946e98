package definition

import (
	"time"

	"github.com/mcpd/mcpd/diag"
)

// Auth is an auth block, which configures one authentication method. Its kind decides which of
// APIKeys, JWT, MTLS and UnixPeers is set. None of them admits callers without a credential.
type Auth struct {
	// Kind is "api_key", "oidc", "mtls", "unix" or "anonymous".
	Kind, Name string
	APIKeys    *AuthAPIKeys
	JWT        *AuthJWT
	MTLS       *AuthMTLS
	UnixPeers  *AuthUnixPeers
	Range      diag.Range
}

// AuthAPIKeys authenticates callers by API keys.
type AuthAPIKeys struct {
	// File is a path, relative to the directory of the config file.
	File string
}

// AuthJWT authenticates callers by tokens of an identity provider.
type AuthJWT struct {
	// Issuer is an https URL, or an http URL of this machine.
	Issuer   string
	Audience string
	// Resource is the URL of this server; if empty, the audience is used.
	Resource string
	// Algorithms is nil for the default algorithms.
	Algorithms []string
	// ID, Scopes, Groups and Agent are the names of claims; empty means the default name.
	ID, Scopes, Groups, Agent string
	RequiredScopes            []string
	// ImpliedScopes maps a broad scope to the scopes that it implies.
	ImpliedScopes map[string][]string
	// Skew is the tolerated difference between clocks.
	Skew time.Duration
}

// AuthMTLS authenticates callers by client certificates.
type AuthMTLS struct {
	// Allow are patterns of names; nil allows every name.
	Allow []string
	// Agent means that a certificate also proves the agent of its name.
	Agent bool
}

// AuthUnixPeers authenticates users of this machine.
type AuthUnixPeers struct{ UIDs, GIDs []uint32 }

// Secret is a secret block. Exactly one of Env, File, Command and OAuth is set.
type Secret struct {
	Name    string
	Env     string
	File    string
	Command []string
	OAuth   *OAuth
	// Reveal permits scripts with a grant to read the value.
	Reveal bool
	Range  diag.Range
}

// HasNoSource reports whether the block lacks a source for the value.
func (s *Secret) HasNoSource() bool {
	return s.Env == "" && s.File == "" && s.Command == nil && s.OAuth == nil
}

// OAuth is an oauth block: it obtains tokens for this server by the client credentials grant
// (RFC 6749 section 4.4), or for users by the authorization code grant (section 4.1).
type OAuth struct {
	// AuthorizeURL is the page where users authorize the server. RedirectURL is the page to
	// which they return: an http URL of this machine, or an https URL of this server below
	// /oauth/. Both are empty if the server obtains tokens for itself.
	AuthorizeURL, RedirectURL string
	// TokenURL is an https URL, or an http URL of this machine.
	TokenURL string
	ClientID string
	// ClientSecret is the name of the secret that authenticates the client. It is empty for a
	// public client, which is possible only with AuthorizeURL.
	ClientSecret string
	Scopes       []string
	// Params are additional request parameters, including the audience.
	Params map[string]string
	// CredentialsInBody sends the id and secret in the request body instead of the
	// Authorization header.
	CredentialsInBody bool
	// PrivateNetworks permits private, loopback and link-local addresses.
	PrivateNetworks bool

	SecretRange, RedirectRange diag.Range
}
