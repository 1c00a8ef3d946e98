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

// AuthError is the reason for a rejected request, and its response.
type AuthError struct {
	// Status is 400, 401, 403 or 503.
	Status int
	// Challenge is the WWW-Authenticate header (RFC 6750 section 3, RFC 9728
	// section 5.1); empty for none.
	Challenge string
	// RetryAfter is the delay before a retry after a 503.
	RetryAfter time.Duration

	reason error
	// keysOnly is true if the server accepts API keys but no tokens.
	keysOnly bool
}

// Error returns the reason, for the operator. It contains no credential.
func (e *AuthError) Error() string {
	if e.reason == nil {
		return "no reason"
	}
	return e.reason.Error()
}

// Unwrap returns the reason.
func (e *AuthError) Unwrap() error { return e.reason }

// message returns the message for the caller.
func (e *AuthError) message() string {
	switch e.Status {
	case http.StatusBadRequest:
		return "the request has more than one credential; send one, in one header"
	case http.StatusForbidden:
		return "the credential does not allow this request"
	case http.StatusServiceUnavailable:
		return "the credential cannot be checked now; try again later"
	}
	switch {
	case e.keysOnly && (errors.Is(e.reason, errNoCredential) || errors.Is(e.reason, errScheme)):
		return "this server takes API keys: send one as Authorization: Bearer KEY"
	case e.keysOnly && errors.Is(e.reason, errNoTokens):
		return "this server takes API keys, and no tokens: send a key as Authorization: Bearer KEY"
	case errors.Is(e.reason, errNoCredential):
		return "no credential was sent, and this server requires one"
	}
	return "the credential was not accepted"
}

func (e *AuthError) setHeaders(h http.Header) {
	if e.Challenge != "" {
		h.Set("WWW-Authenticate", e.Challenge)
	}
	if e.RetryAfter > 0 {
		httpheader.SetRetryAfter(h, e.RetryAfter)
	}
}

// unavailableError reports that a credential cannot be checked now.
type unavailableError struct {
	wait time.Duration
	// cause is nil before the next fetch is due.
	cause error
}

func (e *unavailableError) Error() string {
	if e.cause == nil {
		return "the identity provider did not answer a short while ago"
	}
	return "the identity provider does not answer: " + e.cause.Error()
}

func (e *unavailableError) Unwrap() error { return e.cause }

// scopeError reports that a valid token lacks a scope.
type scopeError struct {
	// challenge names the required scopes.
	challenge string
}

func (e *scopeError) Error() string { return "the token lacks a required scope" }

// AgentConflict is a request with a credential and a connection that are bound
// to different agents.
type AgentConflict struct {
	// Principal is the principal of the credential, with its agent.
	Principal identity.Principal
	// Agent is the agent of the connection.
	Agent  string
	Source identity.Source
	// RequestID identifies the request, in its response too.
	RequestID string
}

// agentConflictError is an errAgentConflict with the two agents.
type agentConflictError struct {
	principal identity.Principal
	agent     string
}

func (*agentConflictError) Error() string { return errAgentConflict.Error() }

func (*agentConflictError) Unwrap() error { return errAgentConflict }

// LogLimiter limits log messages that any client can cause, so that a flood of
// requests does not flood the log. The zero value is ready for use; it is safe
// for concurrent use.
type LogLimiter struct {
	mu         sync.Mutex
	start      time.Time // start of the present second
	logged     int       // in this second
	suppressed int       // since the last message
}

// logsPerSecond is the maximum number of messages per second.
const logsPerSecond = 20

// Allow reports whether a message may be logged now, and how many were
// suppressed since the last one.
func (l *LogLimiter) Allow(now time.Time) (suppressed int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if age := now.Sub(l.start); age >= time.Second || age < 0 {
		l.start, l.logged = now, 0
	}
	if l.logged == logsPerSecond {
		l.suppressed++
		return 0, false
	}
	l.logged++
	suppressed, l.suppressed = l.suppressed, 0
	return suppressed, true
}

// Middleware authenticates the requests of an HTTP transport. The zero
// Middleware accepts every request as anonymous.
type Middleware struct {
	// Authenticator authenticates requests. Nil means [Anonymous].
	Authenticator Authenticator
	// Source returns the source of a request; nil means its remote address.
	Source func(*http.Request) identity.Source
	// Logger logs rejected requests; nil discards the records.
	Logger *slog.Logger
	// LogLimiter limits the log messages; nil means no limit.
	LogLimiter *LogLimiter
	// OnAgentConflict is called for requests rejected for an [AgentConflict]. It
	// may be nil.
	OnAgentConflict func(*http.Request, AgentConflict)
}

// credentialHeaders are the headers that carry credentials, in canonical form.
var credentialHeaders = [...]string{"Authorization", "X-Api-Key"}

// Authenticate returns the sender of the request, and removes its credential.
// The Access reports later whether the sender may still continue. After an error,
// the transport calls [Middleware.Reject] and writes its response.
func (m Middleware) Authenticate(r *http.Request) (identity.Principal, identity.Source, *Access, error) {
	if m.Authenticator == nil {
		p, _ := Anonymous()(r)
		stripCredentials(r)
		return p, m.source(r), nil, nil
	}
	p, err := m.Authenticator(r)
	if err != nil {
		stripCredentials(r)
		return identity.Principal{}, identity.Source{}, nil, err
	}
	access := newAccess(m, r, &p)
	stripCredentials(r)
	return p, m.source(r), access, nil
}

func (m Middleware) source(r *http.Request) identity.Source {
	if m.Source == nil {
		return RemoteSource(r)
	}
	return m.Source(r)
}

// stripCredentials removes the credential from a request: no later handler
// needs it.
func stripCredentials(r *http.Request) {
	for _, name := range credentialHeaders {
		delete(r.Header, name)
	}
}

// Reject prepares the response to a request that [Middleware.Authenticate]
// rejected with err: it sets the headers, logs the reason, and returns the
// status and the message. The response and the log have the same request id,
// the client's if it sent one. Any error but an [*AuthError] is a 401 without a
// challenge.
func (m Middleware) Reject(h http.Header, r *http.Request, err error) (status int, message string) {
	rejection := &AuthError{Status: http.StatusUnauthorized, reason: err}
	errors.As(err, &rejection)
	rejection.setHeaders(h)
	id := cmp.Or(h.Get(httpheader.RequestID), httpheader.RequestIDOf(r.Header))
	if id == "" {
		id = httpheader.NewRequestID()
	}
	h.Set(httpheader.RequestID, id)
	var conflict *agentConflictError
	if errors.As(err, &conflict) && m.OnAgentConflict != nil {
		m.OnAgentConflict(r, AgentConflict{Principal: conflict.principal, Agent: conflict.agent, Source: m.source(r), RequestID: id})
	}
	m.logRejection(r, id, rejection)
	return rejection.Status, rejection.message()
}

// logRejection logs a rejected request, within the limit.
func (m Middleware) logRejection(r *http.Request, id string, rejection *AuthError) {
	attributes := []slog.Attr{slog.Int("status", rejection.Status), slog.String("reason", rejection.Error())}
	var claim *claimError
	if errors.As(rejection, &claim) {
		attributes = append(attributes, claim.logAttrs()...)
	}
	if m.LogLimiter != nil {
		suppressed, ok := m.LogLimiter.Allow(time.Now())
		if !ok {
			return
		}
		if suppressed > 0 {
			attributes = append(attributes, slog.Int("not_logged_before", suppressed))
		}
	}
	m.log(r, id, "reject request", attributes...)
}

// log logs a message about a request. id may be empty.
func (m Middleware) log(r *http.Request, id, message string, attributes ...slog.Attr) {
	if m.Logger == nil {
		return
	}
	if id != "" {
		attributes = append(attributes, slog.String("request_id", id))
	}
	m.Logger.LogAttrs(r.Context(), slog.LevelWarn, message, append(attributes, slog.String("ip", RemoteSource(r).IP))...)
}

// RemoteSource returns the remote address of a request; empty for a socket.
func RemoteSource(r *http.Request) identity.Source {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = ""
	}
	return identity.Source{IP: host}
}
