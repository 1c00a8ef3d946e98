package engine

import (
	"time"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
)

// Auth is an auth block of mcpd.hcl: one way to authenticate callers. One of Keys, Tokens,
// Certificates and Peers is set, or none for the kind anonymous. Paths are resolved.
type Auth struct {
	// Kind is "api_key", "oidc", "mtls", "unix" or "anonymous".
	Kind, Name string
	// Keys accepts API keys.
	Keys *struct{ File string }
	// Tokens accepts tokens of an identity provider.
	Tokens *AuthTokens
	// Certificates accepts client certificates.
	Certificates *struct {
		// Allow has name patterns; nil accepts every name.
		Allow []string
		// Agent binds a certificate to the agent with its name.
		Agent bool
	}
	// Peers accepts users of this machine.
	Peers *struct{ UIDs, GIDs []uint32 }
	Range diag.Range
}

// AuthTokens are the arguments of an auth block of kind "oidc".
type AuthTokens struct {
	// Issuer is an https URL, or an http URL of this machine.
	Issuer string
	// Audience is the audience that a token must have.
	Audience string
	// Resource is the URL of this server; "" means the audience.
	Resource string
	// Algorithms is nil for the default list.
	Algorithms []string
	// ID, Scopes, Groups and Agent are claim names; "" means the default.
	ID, Scopes, Groups, Agent string
	// RequiredScopes are the scopes that a token must have.
	RequiredScopes []string
	// ImpliedScopes maps a scope to the scopes that it implies.
	ImpliedScopes map[string][]string
	// Skew is the accepted clock difference.
	Skew time.Duration
}

func authsOf(blocks []definition.Auth) []Auth {
	var auths []Auth
	for _, b := range blocks {
		auths = append(auths, Auth{
			Kind: b.Kind, Name: b.Name, Range: b.Range,
			Keys: (*struct{ File string })(b.APIKeys), Tokens: (*AuthTokens)(b.JWT), Peers: (*struct{ UIDs, GIDs []uint32 })(b.UnixPeers),
			Certificates: (*struct {
				Allow []string
				Agent bool
			})(b.MTLS),
		})
	}
	return auths
}

// ListenTLS has the files for encrypted connections. Paths are resolved.
type ListenTLS struct {
	// CertFile and KeyFile have the certificate chain and the private key of the server, in PEM.
	CertFile, KeyFile string
	// ClientCAFile is empty if client certificates are not used.
	ClientCAFile string
	Range        diag.Range
}

// Auths returns the auth blocks of mcpd.hcl. Without any, callers are not authenticated.
func (s *Snapshot) Auths() []Auth { return authsOf(s.catalog.Auths) }

// AuthsUsable reports whether auth blocks that the last load could not apply can be applied now, as
// their files were added or changed. A reload is then useful although no file of the server
// changed.
func (s *Server) AuthsUsable() bool {
	s.mu.Lock()
	failed := s.last.failedAuth
	s.mu.Unlock()
	return len(failed) > 0 && s.options.Front != nil && s.options.Front.CheckAuth(failed) == nil
}
