package engine

import (
	"time"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
)

// Auth is an auth block of the operator's file: one way in which callers prove who they are.
// One of Keys, Tokens, Certificates and Peers is set, or none for the kind anonymous. Paths
// are as the process opens them.
type Auth struct {
	// Kind is "api_key", "oidc", "mtls", "unix" or "anonymous".
	Kind, Name string
	// Keys lets the holders of API keys in.
	Keys *struct{ File string }
	// Tokens lets in whom an identity provider has issued a token to.
	Tokens *AuthTokens
	// Certificates lets the holders of client certificates in.
	Certificates *struct {
		// Allow are patterns of names; nil is every name.
		Allow []string
		// Agent binds a certificate to the agent of its name.
		Agent bool
	}
	// Peers lets users of this machine in.
	Peers *struct{ UIDs, GIDs []uint32 }
	Range diag.Range
}

// AuthTokens are the arguments of an auth block of the kind "oidc".
type AuthTokens struct {
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

func authsOf(blocks []definition.Auth) []Auth {
	var auths []Auth
	for _, b := range blocks {
		auths = append(auths, Auth{
			Kind: b.Kind, Name: b.Name, Range: b.Range,
			Keys: (*struct{ File string })(b.Keys), Tokens: (*AuthTokens)(b.Tokens), Peers: (*struct{ UIDs, GIDs []uint32 })(b.Peers),
			Certificates: (*struct {
				Allow []string
				Agent bool
			})(b.Certificates),
		})
	}
	return auths
}

// ListenTLS says which files encrypted connections need. Paths are as the process
// opens them.
type ListenTLS struct {
	CertFile, KeyFile string
	// ClientCAFile is empty where clients show no certificates.
	ClientCAFile string
	Range        diag.Range
}

// Auths returns the auth blocks of the operator's file. Without any, nobody has to
// prove anything.
func (s *Snapshot) Auths() []Auth { return authsOf(s.catalog.Auths) }

// AuthsMended reports whether the last load found auth blocks that could not be applied,
// and now they can, as the files that they name have come or have changed: then it is
// worth to load again, though none of the server's own files has changed.
func (s *Server) AuthsUsable() bool {
	s.mu.Lock()
	refused := s.last.failedAuth
	s.mu.Unlock()
	return len(refused) > 0 && s.options.Front != nil && s.options.Front.CheckAuth(refused) == nil
}
