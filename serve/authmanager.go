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

// access lets in whom the auth blocks of the snapshot do that serves: a request is
// never judged by those of an older one.
type authManager struct {
	// Fixed at creation.
	engine    *engine.Server
	registry  *authn.Registry
	providers *idpTransport

	// guarded says that strangers reach the listener: who proves nothing stays out,
	// whatever a reload says.
	requireCredentials atomic.Bool

	// listener is the address that is listened on, as it was configured.
	listener atomic.Pointer[string]

	appliedSnapshot atomic.Pointer[engine.Snapshot]

	rejectionLog, mismatchLog authn.LogLimiter // bound what is logged of those

	// mu is held while blocks are applied, and guards what follows.
	mu          sync.Mutex
	lastFailure applyFailure
}

// failure is that of applying the blocks of a snapshot.
type applyFailure struct {
	snapshot *engine.Snapshot
	err      error
	retryAt  time.Time // when to try again
}

// applyAgain is how long it takes until blocks that could not be applied are again.
const applyRetryInterval = time.Second

func newAuthManager(e *engine.Server) *authManager {
	p := newIDPTransport(e.Snapshot, e.Logger())
	return &authManager{engine: e, providers: p, registry: authn.NewRegistry(authn.RegistryOptions{
		Protocol: protocolOf(e), Client: p.client(), Logger: e.Logger(),
		OnKeyEvent: func(k authn.KeyEvent) { e.Audit(k.Name, map[string]string{"key": k.Key, "principal": k.Principal}) },
	})}
}

// protocolOf returns what reads the documents of identity providers; nil for an engine
// without extensions/oidc.
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

// door returns the door of all HTTP transports.
func (a *authManager) middleware() authn.Middleware {
	return authn.Middleware{Authenticator: a.authenticate, Source: a.source, Logger: a.engine.Logger(), LogLimiter: &a.rejectionLog, OnAgentConflict: a.onConnectionMismatch}
}

// source says where a request came in: by no listener of the front where a program
// serves its handler by itself.
func (a *authManager) source(r *http.Request) identity.Source {
	s := authn.RemoteSource(r)
	if listener := a.listener.Load(); listener != nil {
		s.Listener = *listener
	}
	return s
}

// authenticate is the [authn.Authenticator] of the server.
func (a *authManager) authenticate(r *http.Request) (identity.Principal, error) {
	// What cannot be applied lets nobody in, and has been told.
	_ = a.sync()
	return a.registry.Authenticate(r)
}

// follow applies the auth blocks of the snapshot that serves, unless it has. Where
// that fails, nobody is let in until it succeeds, which is tried again each second.
func (a *authManager) sync() error {
	if a.engine.Snapshot() == a.appliedSnapshot.Load() {
		return nil
	}
	return a.resync()
}

// renew is follow where there is something to apply.
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
		a.engine.Logger().Error("the auth blocks cannot be applied: nobody is let in", slog.String("error", err.Error()))
	}
	a.lastFailure = applyFailure{now, err, time.Now().Add(applyRetryInterval)}
	return errors.Join(err, a.registry.Apply(authn.Options{}))
}

// apply applies the auth blocks of a snapshot. What would let strangers in who prove
// nothing is not applied: the blocks from before stay in force.
func (a *authManager) apply(s *engine.Snapshot) error {
	switch {
	case s == nil:
		return a.registry.Apply(authn.Options{}) // nothing says who may enter
	case a.requireCredentials.Load() && !requiresCredentials(s.Auths()):
		a.engine.Logger().Error("the auth blocks let in who proves nothing, on an address that strangers reach: those from before stay in force until a restart")
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

// guard has who proves nothing kept out from now on, whatever a reload says, where
// strangers reach the listener and everybody has to prove who they are now. It reports
// whether that is so.
func (a *authManager) enforceCredentials(strangers bool) bool {
	now := a.engine.Snapshot()
	demands := requiresCredentials(now.Auths())
	a.requireCredentials.Store(demands && (strangers || usesPeerAuth(now)))
	return demands
}

// demanding reports whether by auth blocks nobody enters without a credential.
func requiresCredentials(blocks []engine.Auth) bool {
	return len(blocks) > 0 && !slices.ContainsFunc(blocks, func(b engine.Auth) bool { return b.Kind == anonymous })
}

// anonymous is the kind of the auth block that lets in who carries no credential.
const anonymous = "anonymous"

// knowsPeers reports whether users of the machine are told apart on a socket.
func usesPeerAuth(s *engine.Snapshot) bool {
	return slices.ContainsFunc(s.Auths(), func(b engine.Auth) bool { return b.Peers != nil })
}

// knows reports whether a request comes from somebody who may enter.
func (a *authManager) isAuthenticated(r *http.Request) bool {
	_, err := a.authenticate(r)
	return err == nil
}

// scopeMetrics is the scope of credentials by which metrics are read.
const scopeMetrics = "mcpd:metrics"

// watchers lets those through to a handler who may see what all others do: where
// credentials are demanded the user of this machine, and who has a scope for that.
func (a *authManager) requireMetricsScope(h http.Handler) http.Handler {
	door := a.middleware()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, _, _, err := door.Authenticate(r)
		if err != nil {
			status, message := door.Reject(w.Header(), r, err)
			http.Error(w, message, status)
			return
		}
		open := len(a.engine.Snapshot().Auths()) == 0
		if !open && p.Kind != identity.KindLocal && !slices.Contains(p.Scopes, scopeMetrics) {
			http.Error(w, "metrics tell of all callers; send a credential of the scope "+scopeMetrics, http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// metadata answers with the metadata of the server as a protected resource (RFC 9728).
func (a *authManager) metadata(w http.ResponseWriter, r *http.Request) {
	_ = a.sync()
	a.registry.ServeMetadata(w, r)
}

// methodsOf returns what auth blocks say as methods.
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

// providers is how the documents of identity providers are read: by the doors that the
// requests of scripts pass. No proxy of the environment comes between, and each address
// is judged when it is dialled. A host that the operator names as an issuer may have a
// private one; a host that only a provider names, for its keys, may not.
type idpTransport struct {
	snapshot func() *engine.Snapshot
	pool     *egress.Pool
}

const (
	// documentBytes bounds a document of a provider.
	maxDocumentBytes = 1 << 20
	// documentTime bounds the time of a request for one.
	documentTimeout = 10 * time.Second
)

func newIDPTransport(snapshot func() *engine.Snapshot, log *slog.Logger) *idpTransport {
	return &idpTransport{snapshot: snapshot, pool: egress.New(egress.Options{Logger: log})}
}

// client follows no redirect, as the pool does not.
func (p *idpTransport) client() *http.Client {
	return &http.Client{Transport: p, Timeout: documentTimeout}
}

// RoundTrip sends a request to the host of its URL.
func (p *idpTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	g := grant.HTTP{Name: "provider", Hosts: []string{grant.HostOf(r.URL)}, MaxResponse: maxDocumentBytes}
	g.PrivateNetworks = p.isConfiguredIssuer(g.Hosts[0])
	return p.pool.RoundTripper(g).RoundTrip(r)
}

// named reports whether the operator names a host, with its port, as an issuer.
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

// agentContradicted is the event of the audit log that a request was refused which two
// agents would have made: agent is the one that the credential of principal is bound to,
// claimed the other one, and by says what of the request names that: its claim, or its
// connection.
const eventAgentMismatch = "agent.contradicted"

// contradicted has it logged and written down who claims to be another agent than its
// credential is bound to.
func (a *authManager) onClaimMismatch(c mcp.AgentMismatch) {
	about := map[string]string{
		"claimed": c.Caller.Agent.AgentID, "by": "claim",
		"method": c.Method, "name": truncateName(c.Name), "trace_id": traceOf(c.Trace),
	}
	a.reportAgentMismatch(c.Caller.Principal, c.Caller.Source, c.Caller.Agent.RequestID, about)
}

// conflicted is contradicted for who comes by the connection of another agent.
func (a *authManager) onConnectionMismatch(r *http.Request, c authn.AgentConflict) {
	a.reportAgentMismatch(c.Principal, c.Source, c.RequestID, map[string]string{
		"claimed": c.Agent, "by": "connection", "path": truncateName(r.URL.Path), "trace_id": traceOf(mcp.TraceOf(r.Header)),
	})
}

// tellContradiction has a request logged, sparingly, and written down each time.
func (a *authManager) reportAgentMismatch(p identity.Principal, from identity.Source, request string, about map[string]string) {
	maps.Copy(about, map[string]string{"principal": p.ID, "kind": string(p.Kind), "issuer": p.Issuer, "agent": p.Agent, "ip": from.IP, "listener": from.Listener, "request_id": request})
	maps.DeleteFunc(about, func(_, value string) bool { return value == "" })
	a.engine.Audit(eventAgentMismatch, about)
	withheld, tell := a.mismatchLog.Allow(time.Now())
	if !tell {
		return
	}
	var attributes []slog.Attr
	for _, name := range slices.Sorted(maps.Keys(about)) {
		attributes = append(attributes, slog.String(name, about[name]))
	}
	if withheld > 0 {
		attributes = append(attributes, slog.Int("not_logged_before", withheld))
	}
	a.engine.Logger().LogAttrs(context.Background(), slog.LevelWarn, "a caller claims to be another agent than its credential is bound to", attributes...)
}

// traceOf returns the id of the trace that a request comes from, "" for none.
func traceOf(t call.Trace) string {
	return cmp.Or(observe.Parent(t.Parent, "").Trace(), observe.Parent(t.CarrierParent, "").Trace())
}

// cut returns the beginning of what a caller calls something. A request that is refused may
// name it by as much text as a message holds, and the log, unlike the audit log, has no bound
// of its own.
func truncateName(name string) string {
	left := 256 // characters
	for i := range name {
		if left == 0 {
			return name[:i] + "…"
		}
		left--
	}
	return name
}
