package authn

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/auth/apikey"
)

var (
	errAbsent     = errors.New("the request has no credential, and anonymous callers are not let in")
	errNoKeys     = errors.New("the request has an API key, and none are taken")
	errNoTokens   = errors.New("the request has a token, and none are taken")
	errTwoAgents  = errors.New("the credential of the request and that of the connection are bound to different agents")
	errBadAPIKeys = errors.New("no file of keys knows the key")
)

// set are the methods by which callers prove who they are. It is immutable.
type set struct {
	keys         []*keyFile
	tokens       []*tokenMethod
	certificates []certificateMethod
	peers        []PeerOptions
	anonymous    bool
	open         bool
	now          func() time.Time
	// resource is the URL of this server, empty when it has none that clients
	// could ask tokens for.
	resource string
	metadata []byte
	// challenge is what a caller without a credential is told, and refused what
	// one with a bad credential is: both empty where no header could help.
	challenge, refused, repeated string
}

// authenticate is the [Authenticator] of the set. Its errors are [*Refusal].
func (s *set) authenticate(r *http.Request) (identity.Principal, error) {
	if s.open {
		return identity.Anonymous(), nil
	}
	return s.prove(r)
}

// prove is authenticate for a server that is not open. It is apart from it since open
// streams keep the stack that this takes.
func (s *set) prove(r *http.Request) (identity.Principal, error) {
	c, err := credentialOf(r.Header)
	if err != nil {
		return identity.Principal{}, s.refuse(err)
	}
	connection, proved, err := s.connection(r)
	if err != nil {
		return identity.Principal{}, s.refuse(err)
	}
	if c.kind == noCredential {
		switch {
		case proved:
			return connection, nil
		case s.anonymous:
			return identity.Anonymous(), nil
		}
		return identity.Principal{}, s.refuse(errAbsent)
	}
	p, err := s.check(r, c)
	if err == nil {
		p, err = bind(p, connection.Agent)
	}
	if err != nil {
		return identity.Principal{}, s.refuse(err)
	}
	return p, nil
}

// connection returns who the connection of a request proves, if anybody.
func (s *set) connection(r *http.Request) (_ identity.Principal, proved bool, err error) {
	if leaf := leafOf(r.TLS); leaf != nil && len(s.certificates) > 0 {
		if err := vouched(r); err != nil {
			return identity.Principal{}, false, err
		}
		p, err := principalOf(leaf, s.certificates, s.now())
		return p, err == nil, err
	}
	p, proved := user(r.Context(), s.peers)
	return p, proved, nil
}

// check returns whom a credential proves.
func (s *set) check(r *http.Request, c credential) (identity.Principal, error) {
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
	why := errBadAPIKeys
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

// bind binds a principal to the agent of its connection, which must be its own
// when it has one.
func bind(p identity.Principal, agent string) (identity.Principal, error) {
	if agent == "" || agent == p.Agent {
		return p, nil
	}
	if p.Agent != "" {
		return identity.Principal{}, &conflictError{p, agent}
	}
	p.Agent = agent
	return p, nil
}

// refuse says what to answer to a request that proves nobody, or not enough.
func (s *set) refuse(err error) *Refusal {
	r := &Refusal{Status: http.StatusUnauthorized, Challenge: s.refused, reason: err, keysOnly: len(s.keys) > 0 && len(s.tokens) == 0}
	var unavailable *unavailableError
	var scope *scopeError
	switch {
	case errors.Is(err, errSeveral):
		r.Status, r.Challenge = http.StatusBadRequest, s.repeated
	case errors.Is(err, errTwoAgents):
		r.Status, r.Challenge = http.StatusForbidden, ""
	case errors.As(err, &scope):
		r.Status, r.Challenge = http.StatusForbidden, scope.challenge
	case errors.As(err, &unavailable):
		r.Status, r.Challenge, r.RetryAfter = http.StatusServiceUnavailable, "", max(unavailable.wait, time.Second)
	case errors.Is(err, errAbsent), errors.Is(err, errScheme):
		r.Challenge = s.challenge
	}
	return r
}

// challenges fills in what callers are told. The scopes are those that every
// token needs.
func (s *set) challenges() {
	if len(s.keys) == 0 && len(s.tokens) == 0 {
		// RFC 9110 section 15.5.2 has every 401 name a scheme, and none would help.
		// Bearer is named nevertheless: clients know it, and get the 401 that they expect.
		s.challenge, s.refused, s.repeated = bearer, bearer, bearer
		return
	}
	s.challenge = s.challengeOf("", s.scopes())
	s.refused = s.challengeOf("invalid_token", s.scopes())
	s.repeated = s.challengeOf("invalid_request", nil)
	for _, t := range s.tokens {
		t.lacking = &scopeError{challenge: s.challengeOf("insufficient_scope", t.RequiredScopes)}
	}
}

// bearer is a challenge that says no more than its scheme.
const bearer = `Bearer realm="mcpd"`

// challengeOf writes a challenge (RFC 6750 section 3).
func (s *set) challengeOf(code string, scopes []string) string {
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
