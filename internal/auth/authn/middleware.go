package authn

import (
	"cmp"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/httpheader"
)

// Refusal is why a request may not enter, and what its caller is told.
type AuthError struct {
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
func (r *AuthError) Error() string {
	if r.reason == nil {
		return "no reason is given"
	}
	return r.reason.Error()
}

// Unwrap returns the reason.
func (r *AuthError) Unwrap() error { return r.reason }

// message returns what the caller is told.
func (r *AuthError) message() string {
	switch r.Status {
	case http.StatusBadRequest:
		return "the request has more than one credential; send one, in one header"
	case http.StatusForbidden:
		return "the credential does not allow this request"
	case http.StatusServiceUnavailable:
		return "the credential cannot be checked now; try again later"
	}
	switch {
	case r.keysOnly && (errors.Is(r.reason, errNoCredential) || errors.Is(r.reason, errScheme)):
		return "this server takes API keys: send one as Authorization: Bearer KEY"
	case r.keysOnly && errors.Is(r.reason, errNoTokens):
		return "this server takes API keys, and no tokens: send a key as Authorization: Bearer KEY"
	case errors.Is(r.reason, errNoCredential):
		return "no credential was sent, and this server lets in nobody without one"
	}
	return "the credential was not accepted"
}

func (r *AuthError) setHeaders(h http.Header) {
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

// Conflict is a request whose credential is bound to another agent than its connection.
type AgentConflict struct {
	// Principal is whom the credential proves, with the agent that it is bound to.
	Principal identity.Principal
	// Agent is the one that the connection is bound to.
	Agent  string
	Source identity.Source
	// RequestID names the request, in its answer too.
	RequestID string
}

// conflictError refuses a request for its [Conflict]. It is errTwoAgents, and says between
// whom.
type agentConflictError struct {
	principal identity.Principal
	agent     string
}

func (*agentConflictError) Error() string { return errAgentConflict.Error() }

func (*agentConflictError) Unwrap() error { return errAgentConflict }

// Sparing bounds how often something is told that anybody can make happen: who is
// flooded with requests has enough to do. The zero value is ready; it is safe for
// concurrent use.
type LogLimiter struct {
	mu         sync.Mutex
	start      time.Time // when the second began that is counted now
	logged     int       // in this second
	suppressed int       // since something was told
}

// tellings is how much is told in a second.
const logsPerSecond = 20

// Tell reports whether something is to be told that happens now, and of how much
// nothing was told since the last time.
func (s *LogLimiter) Allow(now time.Time) (withheld int, tell bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if age := now.Sub(s.start); age >= time.Second || age < 0 {
		s.start, s.logged = now, 0
	}
	if s.logged == logsPerSecond {
		s.suppressed++
		return 0, false
	}
	s.logged++
	withheld, s.suppressed = s.suppressed, 0
	return withheld, true
}

// Door tells an HTTP transport who sends a request, and where it came in. The
// zero Door lets everyone in as anonymous.
type Middleware struct {
	// Authenticate proves who sends a request. Nil stands for [Anonymous].
	Authenticator Authenticator
	// Source says where a request came in; nil tells the address of the peer.
	Source func(*http.Request) identity.Source
	// Logger is told why requests are refused. Nil is nobody.
	Logger *slog.Logger
	// Refusals bounds how often the logger is told of those. Nil stands for no bound.
	LogLimiter *LogLimiter
	// Conflicted is told of requests that are refused for their [Conflict]. Nil is nobody.
	OnAgentConflict func(*http.Request, AgentConflict)
}

// credentialHeaders are those that carry credentials, in canonical form.
var credentialHeaders = [...]string{"Authorization", "X-Api-Key"}

// Enter returns who sent the request, and takes its credential out. The pass says
// whether that still holds, once time has gone by. An error refuses the request;
// what to answer then, [Door.Refuse] says.
func (d Middleware) Authenticate(r *http.Request) (identity.Principal, identity.Source, *Access, error) {
	if d.Authenticator == nil {
		p, _ := Anonymous()(r)
		stripCredentials(r)
		return p, d.source(r), nil, nil
	}
	p, err := d.Authenticator(r)
	if err != nil {
		stripCredentials(r)
		return identity.Principal{}, identity.Source{}, nil, err
	}
	pass := newAccess(d, r, &p)
	stripCredentials(r)
	return p, d.source(r), pass, nil
}

func (d Middleware) source(r *http.Request) identity.Source {
	if d.Source == nil {
		return RemoteSource(r)
	}
	return d.Source(r)
}

// forget takes the credential out of a request: nobody behind the door has a use
// for it.
func stripCredentials(r *http.Request) {
	for _, name := range credentialHeaders {
		delete(r.Header, name)
	}
}

// Refuse prepares the answer to a request that [Door.Enter] refused with err: it
// sets the headers, tells the operator why, and returns the status and what the
// caller may know. The answer has the id of the request that the operator is told: its
// own, where it has one. Any error but a [*Refusal] is a 401 without a challenge.
func (d Middleware) Reject(h http.Header, r *http.Request, err error) (status int, message string) {
	refusal := &AuthError{Status: http.StatusUnauthorized, reason: err}
	errors.As(err, &refusal)
	refusal.setHeaders(h)
	id := cmp.Or(h.Get(httpheader.RequestID), httpheader.RequestIDOf(r.Header))
	if id == "" {
		id = httpheader.NewRequestID()
	}
	h.Set(httpheader.RequestID, id)
	var conflict *agentConflictError
	if errors.As(err, &conflict) && d.OnAgentConflict != nil {
		d.OnAgentConflict(r, AgentConflict{Principal: conflict.principal, Agent: conflict.agent, Source: d.source(r), RequestID: id})
	}
	d.logRejection(r, id, refusal)
	return refusal.Status, refusal.message()
}

// tell tells the operator of a refusal, unless there were too many of late.
func (d Middleware) logRejection(r *http.Request, id string, refusal *AuthError) {
	attributes := []slog.Attr{slog.Int("status", refusal.Status), slog.String("reason", refusal.Error())}
	if d.LogLimiter != nil {
		withheld, tell := d.LogLimiter.Allow(time.Now())
		if !tell {
			return
		}
		if withheld > 0 {
			attributes = append(attributes, slog.Int("not_logged_before", withheld))
		}
	}
	d.log(r, id, "a request was refused at the door", attributes...)
}

// log tells the operator of a request, which has an id unless that is empty.
func (d Middleware) log(r *http.Request, id, what string, attributes ...slog.Attr) {
	if d.Logger == nil {
		return
	}
	if id != "" {
		attributes = append(attributes, slog.String("request_id", id))
	}
	d.Logger.LogAttrs(r.Context(), slog.LevelWarn, what, append(attributes, slog.String("ip", RemoteSource(r).IP))...)
}

// Peer returns the address of who sent the request; that of nobody who came by a socket.
func RemoteSource(r *http.Request) identity.Source {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = ""
	}
	return identity.Source{IP: host}
}
