package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/auth/authn"
	"github.com/mcpd/mcpd/internal/auth/idp"
	"github.com/mcpd/mcpd/internal/base/observe"
	"github.com/mcpd/mcpd/internal/host/egress"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
)

// authManager authenticates requests with the auth blocks of the current
// snapshot, never with the settings of an older one.
type authManager struct {
	// Fixed at creation.
	engine    *engine.Server
	registry  *authn.Registry
	providers *idpTransport

	// requireCredentials is true if the listener is reachable from other
	// machines: requests without a credential are rejected, whatever a reload
	// says.
	requireCredentials atomic.Bool

	// listener is the configured listen address.
	listener atomic.Pointer[string]

	appliedSnapshot atomic.Pointer[engine.Snapshot]

	rejectionLog, mismatchLog authn.LogLimiter // limit the log messages of each kind

	// mu is held while blocks are applied, and guards the fields below.
	mu          sync.Mutex
	lastFailure applyFailure
}

// applyFailure is the error of applying the blocks of a snapshot.
type applyFailure struct {
	snapshot *engine.Snapshot
	err      error
	retryAt  time.Time // time of the next attempt
}

// applyRetryInterval is the delay before failed blocks are applied again.
const applyRetryInterval = time.Second

func newAuthManager(e *engine.Server) *authManager {
	p := newIDPTransport(e.Snapshot, e.Logger())
	return &authManager{engine: e, providers: p, registry: authn.NewRegistry(authn.RegistryOptions{
		Protocol: protocolOf(e), Client: p.client(), Logger: e.Logger(),
		OnKeyEvent: func(k authn.KeyEvent) { e.Audit(k.Name, map[string]string{"key": k.Key, "principal": k.Principal}) },
	})}
}

// protocolOf returns the reader of identity provider documents; nil for an
// engine without extensions/oidc.
func protocolOf(e *engine.Server) idp.Protocol {
	for _, x := range e.Extensions() {
		if p, ok := x.(idp.Protocol); ok {
			return p
		}
	}
	return nil
}

func (a *authManager) close() error {
	a.registry.Close()
	return a.providers.pool.Close()
}

// middleware returns the authentication middleware of all HTTP transports.
func (a *authManager) middleware() authn.Middleware {
	return authn.Middleware{Authenticator: a.authenticate, Source: a.source, Logger: a.engine.Logger(), LogLimiter: &a.rejectionLog, OnAgentConflict: a.onConnectionMismatch}
}

// source returns the source of a request. It has no listener if the program
// itself serves the handler.
func (a *authManager) source(r *http.Request) identity.Source {
	s := authn.RemoteSource(r)
	if listener := a.listener.Load(); listener != nil {
		s.Listener = *listener
	}
	return s
}

// authenticate is the [authn.Authenticator] of the server.
func (a *authManager) authenticate(r *http.Request) (identity.Principal, error) {
	// After an error no request is accepted; resync has logged it.
	_ = a.sync()
	return a.registry.Authenticate(r)
}

// sync applies the auth blocks of the current snapshot, if they changed. On an
// error, all requests are rejected until a later attempt succeeds; sync retries
// each second.
func (a *authManager) sync() error {
	if a.engine.Snapshot() == a.appliedSnapshot.Load() {
		return nil
	}
	return a.resync()
}

// resync is sync for a changed snapshot.
func (a *authManager) resync() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.engine.Snapshot()
	if now == a.appliedSnapshot.Load() {
		return nil
	}
	last := a.lastFailure
	if last.snapshot == now && time.Now().Before(last.retryAt) {
		return last.err
	}
	err := a.apply(now)
	if err == nil {
		a.lastFailure = applyFailure{}
		a.appliedSnapshot.Store(now)
		return nil
	}
	if last.snapshot != now || last.err.Error() != err.Error() {
		a.engine.Logger().Error("apply auth blocks, rejecting all requests", slog.String("error", err.Error()))
	}
	a.lastFailure = applyFailure{now, err, time.Now().Add(applyRetryInterval)}
	return errors.Join(err, a.registry.Apply(authn.Options{}))
}

// apply applies the auth blocks of a snapshot. It does not apply blocks that
// would accept requests without a credential from other machines: the previous
// blocks remain.
func (a *authManager) apply(s *engine.Snapshot) error {
	switch {
	case s == nil:
		return a.registry.Apply(authn.Options{}) // without a snapshot no request is accepted
	case a.requireCredentials.Load() && !requiresCredentials(s.Auths()):
		a.engine.Logger().Error("keep previous auth blocks until restart",
			slog.String("reason", "the new blocks accept requests without a credential on an address that is not loopback"))
		return nil
	}
	o := authn.Options{AllowAll: true}
	if blocks := s.Auths(); len(blocks) > 0 {
		o = authnOptions(blocks)
	}
	if err := a.registry.Apply(o); err != nil {
		return fmt.Errorf("apply auth blocks: %w", err)
	}
	return nil
}

// enforceCredentials makes credentials required from now on, whatever a reload
// says, if remote is true and the present blocks require them. It reports
// whether they do.
func (a *authManager) enforceCredentials(remote bool) bool {
	now := a.engine.Snapshot()
	demands := requiresCredentials(now.Auths())
	a.requireCredentials.Store(demands && (remote || usesPeerAuth(now)))
	return demands
}

// requiresCredentials reports whether auth blocks reject every request without
// a credential.
func requiresCredentials(blocks []engine.Auth) bool {
	return len(blocks) > 0 && !slices.ContainsFunc(blocks, func(b engine.Auth) bool { return b.Kind == anonymous })
}

// anonymous is the kind of the auth block that accepts requests without a
// credential.
const anonymous = "anonymous"

// usesPeerAuth reports whether users are authenticated by their socket.
func usesPeerAuth(s *engine.Snapshot) bool {
	return slices.ContainsFunc(s.Auths(), func(b engine.Auth) bool { return b.Peers != nil })
}

// isAuthenticated reports whether a request is accepted.
func (a *authManager) isAuthenticated(r *http.Request) bool {
	_, err := a.authenticate(r)
	return err == nil
}

// scopeMetrics is the scope for reading metrics.
const scopeMetrics = "mcpd:metrics"

// requireMetricsScope restricts a handler that shows data of all callers: if
// credentials are required, to the local user and to principals with the scope.
func (a *authManager) requireMetricsScope(h http.Handler) http.Handler {
	middleware := a.middleware()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, _, _, err := middleware.Authenticate(r)
		if err != nil {
			status, message := middleware.Reject(w.Header(), r, err)
			http.Error(w, message, status)
			return
		}
		open := len(a.engine.Snapshot().Auths()) == 0
		if !open && p.Kind != identity.KindLocal && !slices.Contains(p.Scopes, scopeMetrics) {
			http.Error(w, "metrics cover all callers; send a credential with the scope "+scopeMetrics, http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// metadata serves the protected resource metadata of the server (RFC 9728).
func (a *authManager) metadata(w http.ResponseWriter, r *http.Request) {
	_ = a.sync()
	a.registry.ServeMetadata(w, r)
}

// authnOptions converts auth blocks to authentication methods.
func authnOptions(blocks []engine.Auth) (o authn.Options) {
	for _, b := range blocks {
		switch {
		case b.Keys != nil:
			o.Keys = append(o.Keys, authn.KeyOptions(*b.Keys))
		case b.Tokens != nil:
			o.Tokens = append(o.Tokens, authn.TokenOptions(*b.Tokens))
		case b.Certificates != nil:
			o.Certificates = append(o.Certificates, authn.CertificateOptions(*b.Certificates))
		case b.Peers != nil:
			o.Peers = append(o.Peers, authn.PeerOptions(*b.Peers))
		case b.Kind == anonymous:
			o.Anonymous = true
		}
	}
	return o
}

// idpTransport fetches the documents of identity providers, with the egress
// rules of script requests. It uses no proxy from the environment, and checks
// each address when it connects. A host that the operator configured as an
// issuer may have a private address; a host that only a provider names, for its
// keys, may not.
type idpTransport struct {
	snapshot func() *engine.Snapshot
	pool     *egress.Pool
}

const (
	// maxDocumentBytes bounds a document of a provider.
	maxDocumentBytes = 1 << 20
	// documentTimeout bounds a request for a document.
	documentTimeout = 10 * time.Second
)

func newIDPTransport(snapshot func() *engine.Snapshot, log *slog.Logger) *idpTransport {
	return &idpTransport{snapshot: snapshot, pool: egress.New(egress.Options{Logger: log})}
}

// client does not follow redirects, because the pool does not.
func (p *idpTransport) client() *http.Client {
	return &http.Client{Transport: p, Timeout: documentTimeout}
}

// RoundTrip sends a request to the host of its URL.
func (p *idpTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	g := grant.HTTP{Name: "provider", Hosts: []string{grant.HostOf(r.URL)}, MaxResponse: maxDocumentBytes}
	g.PrivateNetworks = p.isConfiguredIssuer(g.Hosts[0])
	return p.pool.Transport(g).RoundTrip(r)
}

// isConfiguredIssuer reports whether an auth block names the host, with its
// port, as an issuer.
func (p *idpTransport) isConfiguredIssuer(host string) bool {
	now := p.snapshot()
	if now == nil {
		return false
	}
	for _, b := range now.Auths() {
		if b.Tokens == nil {
			continue
		}
		if issuer, err := url.Parse(b.Tokens.Issuer); err == nil && grant.HostOf(issuer) == host {
			return true
		}
	}
	return false
}

// eventAgentMismatch is the audit event for a request that was rejected because
// it names two agents. agent is bound to the credential of principal, claimed
// is the other one, and by is its source: the claim, or the connection.
const eventAgentMismatch = "agent.contradicted"

// onClaimMismatch logs and audits a claim of another agent than the credential
// is bound to.
func (a *authManager) onClaimMismatch(c mcp.AgentMismatch) {
	fields := map[string]string{
		"claimed": c.Caller.Agent.AgentID, "by": "claim",
		"method": c.Method, "name": truncateName(c.Name), "trace_id": traceOf(c.Trace),
	}
	a.reportAgentMismatch(c.Caller.Principal, c.Caller.Source, c.Caller.Agent.RequestID, fields)
}

// onConnectionMismatch is onClaimMismatch for the agent of a connection.
func (a *authManager) onConnectionMismatch(r *http.Request, c authn.AgentConflict) {
	a.reportAgentMismatch(c.Principal, c.Source, c.RequestID, map[string]string{
		"claimed": c.Agent, "by": "connection", "path": truncateName(r.URL.Path), "trace_id": traceOf(mcp.TraceOf(r.Header)),
	})
}

// reportAgentMismatch audits a rejected request, and logs it within the limit.
func (a *authManager) reportAgentMismatch(p identity.Principal, from identity.Source, request string, fields map[string]string) {
	maps.Copy(fields, map[string]string{"principal": p.ID, "kind": string(p.Kind), "issuer": p.Issuer, "agent": p.Agent, "ip": from.IP, "listener": from.Listener, "request_id": request})
	maps.DeleteFunc(fields, func(_, value string) bool { return value == "" })
	a.engine.Audit(eventAgentMismatch, fields)
	suppressed, ok := a.mismatchLog.Allow(time.Now())
	if !ok {
		return
	}
	var attributes []slog.Attr
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		attributes = append(attributes, slog.String(name, fields[name]))
	}
	if suppressed > 0 {
		attributes = append(attributes, slog.Int("not_logged_before", suppressed))
	}
	a.engine.Logger().LogAttrs(context.Background(), slog.LevelWarn, "reject request of mismatched agent", attributes...)
}

// traceOf returns the trace id of a request; "" for none.
func traceOf(t call.Trace) string {
	return cmp.Or(observe.Parent(t.Parent, "").Trace(), observe.Parent(t.CarrierParent, "").Trace())
}

// truncateName returns the start of a name from a caller. The name of a
// rejected request may be as long as a message, and the log, unlike the audit
// log, has no limit.
func truncateName(name string) string {
	remaining := 256 // characters
	for i := range name {
		if remaining == 0 {
			return name[:i] + "…"
		}
		remaining--
	}
	return name
}
