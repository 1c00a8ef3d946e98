package authn

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/auth/apikey"
)

var (
	errNoCredential  = errors.New("the request has no credential, and anonymous callers are not allowed")
	errNoKeys        = errors.New("the request has an API key, but no method accepts keys")
	errNoTokens      = errors.New("the request has a token, but no method accepts tokens")
	errAgentConflict = errors.New("the credential and the connection are bound to different agents")
	errUnknownKey    = errors.New("the key is in no key file")
)

// methodSet holds the methods of authentication. It is immutable.
type methodSet struct {
	keys         []*keyFile
	tokens       []*tokenMethod
	certificates []certificateMethod
	peers        []PeerOptions
	anonymous    bool
	allowAll     bool
	now          func() time.Time
	// resource is the URL of this server; empty if clients cannot request tokens
	// for it.
	resource string
	metadata []byte
	// challenge is the challenge for a missing credential, invalidChallenge for
	// an invalid one, repeatedChallenge for several; each is empty if no header
	// could help.
	challenge, invalidChallenge, repeatedChallenge string
}

// authenticate is the [Authenticator] of the set. Its errors are [*AuthError].
func (s *methodSet) authenticate(r *http.Request) (identity.Principal, error) {
	if s.allowAll {
		return identity.Anonymous(), nil
	}
	return s.authenticateMethods(r)
}

// authenticateMethods is authenticate for a server with methods. It is a
// separate function because open streams keep the stack that it needs.
func (s *methodSet) authenticateMethods(r *http.Request) (identity.Principal, error) {
	c, err := credentialOf(r.Header)
	if err != nil {
		return identity.Principal{}, s.newAuthError(err)
	}
	connection, proved, err := s.authenticateConn(r)
	if err != nil {
		return identity.Principal{}, s.newAuthError(err)
	}
	if c.kind == noCredential {
		switch {
		case proved:
			return connection, nil
		case s.anonymous:
			return identity.Anonymous(), nil
		}
		return identity.Principal{}, s.newAuthError(errNoCredential)
	}
	p, err := s.checkCredential(r, c)
	if err == nil {
		p, err = bindAgent(p, connection.Agent)
	}
	if err != nil {
		return identity.Principal{}, s.newAuthError(err)
	}
	return p, nil
}

// authenticateConn returns the principal of the connection, if it has one.
func (s *methodSet) authenticateConn(r *http.Request) (_ identity.Principal, proved bool, err error) {
	if leaf := leafOf(r.TLS); leaf != nil && len(s.certificates) > 0 {
		if err := verifyClientCert(r); err != nil {
			return identity.Principal{}, false, err
		}
		p, err := principalOf(leaf, s.certificates, s.now())
		return p, err == nil, err
	}
	p, proved := peerPrincipal(r.Context(), s.peers)
	return p, proved, nil
}

func (s *methodSet) checkCredential(r *http.Request, c credential) (identity.Principal, error) {
	if c.kind == tokenCredential {
		return s.token(r, c.text)
	}
	if len(s.keys) == 0 {
		return identity.Principal{}, errNoKeys
	}
	k, err := apikey.Parse(c.text)
	if err != nil {
		return identity.Principal{}, err
	}
	why := errUnknownKey
	for _, file := range s.keys {
		p, err := file.check(k)
		if err == nil {
			return p, nil
		}
		if !errors.Is(err, apikey.ErrUnknown) {
			why = err
		}
	}
	return identity.Principal{}, why
}

// bindAgent binds a principal to the agent of its connection. If the principal
// has an agent, it must be the same.
func bindAgent(p identity.Principal, agent string) (identity.Principal, error) {
	if agent == "" || agent == p.Agent {
		return p, nil
	}
	if p.Agent != "" {
		return identity.Principal{}, &agentConflictError{p, agent}
	}
	p.Agent = agent
	return p, nil
}

// newAuthError returns the response to a request with a missing, invalid or
// insufficient credential.
func (s *methodSet) newAuthError(err error) *AuthError {
	e := &AuthError{Status: http.StatusUnauthorized, Challenge: s.invalidChallenge, reason: err, keysOnly: len(s.keys) > 0 && len(s.tokens) == 0}
	var unavailable *unavailableError
	var scope *scopeError
	switch {
	case errors.Is(err, errMultipleCredentials):
		e.Status, e.Challenge = http.StatusBadRequest, s.repeatedChallenge
	case errors.Is(err, errAgentConflict):
		e.Status, e.Challenge = http.StatusForbidden, ""
	case errors.As(err, &scope):
		e.Status, e.Challenge = http.StatusForbidden, scope.challenge
	case errors.As(err, &unavailable):
		e.Status, e.Challenge, e.RetryAfter = http.StatusServiceUnavailable, "", max(unavailable.wait, time.Second)
	case errors.Is(err, errNoCredential), errors.Is(err, errScheme):
		e.Challenge = s.challenge
	}
	return e
}

// setChallenges sets the challenges for clients. Their scopes are the scopes
// that every token needs.
func (s *methodSet) setChallenges() {
	if len(s.keys) == 0 && len(s.tokens) == 0 {
		// RFC 9110 section 15.5.2 requires a scheme in every 401, and none would
		// help. Bearer is used because clients know it and handle the 401.
		s.challenge, s.invalidChallenge, s.repeatedChallenge = bearer, bearer, bearer
		return
	}
	s.challenge = s.challengeHeader("", s.scopes())
	s.invalidChallenge = s.challengeHeader("invalid_token", s.scopes())
	s.repeatedChallenge = s.challengeHeader("invalid_request", nil)
	for _, t := range s.tokens {
		t.insufficientScope = &scopeError{challenge: s.challengeHeader("insufficient_scope", t.RequiredScopes)}
	}
}

// bearer is a challenge with only its scheme.
const bearer = `Bearer realm="mcpd"`

// challengeHeader returns a challenge (RFC 6750 section 3).
func (s *methodSet) challengeHeader(code string, scopes []string) string {
	text := bearer
	if code != "" {
		text += `, error="` + code + `"`
	}
	if len(scopes) > 0 {
		text += `, scope="` + strings.Join(scopes, " ") + `"`
	}
	if s.resource != "" {
		text += `, resource_metadata="` + metadataURL(s.resource) + `"`
	}
	return text
}

// maxCredential bounds a credential, in bytes.
const maxCredential = 16 << 10

var (
	errMultipleCredentials = errors.New("the request has more than one credential")
	errScheme              = errors.New("the scheme of the Authorization header is not Bearer")
	errMalformed           = errors.New("the credential is malformed")
)

// credentialKind is the kind of a credential, by its form.
type credentialKind int

const (
	noCredential credentialKind = iota
	keyCredential
	tokenCredential
)

// credential is the credential of a request.
type credential struct {
	kind credentialKind
	text string
}

// credentialOf returns the credential of a request: the header Authorization
// (RFC 6750 section 2.1) or X-API-Key. Both, or one of them twice, is
// [errMultipleCredentials]. It does not read the URL or the body.
func credentialOf(h http.Header) (credential, error) {
	bearers, keys := h["Authorization"], h["X-Api-Key"]
	switch len(bearers) + len(keys) {
	case 0:
		return credential{}, nil
	case 1:
	default:
		return credential{}, errMultipleCredentials
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
// section 11.2), within the limit.
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

// MetadataPath is the path of the metadata of a server at the root of its host.
// The metadata of a server at another path is below it (RFC 9728 section 3.1).
const MetadataPath = "/.well-known/oauth-protected-resource"

// metadataURL returns the URL of a resource's metadata.
func metadataURL(resource string) string {
	u, err := url.Parse(resource)
	if err != nil {
		return "" // the options are valid
	}
	u.Path, u.RawPath = metadataPath(u), ""
	return u.String()
}

func metadataPath(u *url.URL) string { return MetadataPath + strings.TrimSuffix(u.Path, "/") }

// setMetadata sets the resource of the tokens, and its metadata.
func (s *methodSet) setMetadata() error {
	for _, t := range s.tokens {
		if s.resource != "" && t.Resource != "" && t.Resource != s.resource {
			return errors.New("two methods name different resources; use the same resource in both")
		}
		if t.Resource != "" {
			s.resource = t.Resource
		}
	}
	if s.resource == "" {
		return nil
	}
	var issuers []string
	for _, t := range s.tokens {
		if !slices.Contains(issuers, t.Issuer) {
			issuers = append(issuers, t.Issuer)
		}
	}
	var err error
	s.metadata, err = json.Marshal(struct {
		Resource string   `json:"resource"`
		Servers  []string `json:"authorization_servers"`
		Scopes   []string `json:"scopes_supported,omitempty"`
		Methods  []string `json:"bearer_methods_supported"`
	}{s.resource, issuers, s.scopes(), []string{"header"}})
	if err != nil {
		return fmt.Errorf("encode metadata: %w", err)
	}
	return nil
}

func (s *methodSet) scopes() []string {
	var all []string
	for _, t := range s.tokens {
		for _, scope := range t.RequiredScopes {
			if !slices.Contains(all, scope) {
				all = append(all, scope)
			}
		}
	}
	return all
}

// Metadata returns the protected resource metadata of this server (RFC 9728
// section 2), as JSON. It is nil if no method accepts tokens, or if no resource
// is known.
func (r *Registry) Metadata() []byte { return r.set.Load().metadata }

// ServeMetadata serves [Registry.Metadata] at [MetadataPath], and below it at
// the path of the resource; it answers 404 elsewhere and without metadata. It
// requires no authentication.
func (r *Registry) ServeMetadata(w http.ResponseWriter, req *http.Request) {
	s := r.set.Load()
	u, err := url.Parse(s.resource)
	if err != nil || s.metadata == nil || req.URL.Path != MetadataPath && req.URL.Path != metadataPath(u) {
		http.NotFound(w, req)
		return
	}
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "max-age=300")
	_, _ = w.Write(s.metadata)
}
