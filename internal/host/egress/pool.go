package egress

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/scripting"
)

// DefaultMaxResponse is the default limit of a response body, in bytes.
const DefaultMaxResponse = grant.DefaultMaxResponse

// idleTimeout is how long an unused client stays open.
const idleTimeout = 60 * time.Second

// Options configure a [Pool].
type Options struct {
	// Resolve returns the value of a secret. Its error is logged for the operator. Nil means
	// that there are no secrets.
	Resolve func(ctx context.Context, secret string) (string, error)
	// OnUnauthorized receives each secret that a host rejects with 401, with the context of the
	// request. Nil ignores them.
	OnUnauthorized func(ctx context.Context, secret string)
	// Traceparent returns the traceparent (W3C Trace Context) for requests in a context, or "".
	// If nil, none is sent. There is no tracestate: it would be text of the caller, sent to
	// hosts of a grant.
	Traceparent func(context.Context) (traceparent string)
	// Logger receives messages for the operator. Nil discards them.
	Logger *slog.Logger
	// MaxResponse limits a response body, in bytes, unless the grant does. 0 means
	// [DefaultMaxResponse].
	MaxResponse int64
	// Redact redacts a response before it is encoded. Nil redacts nothing.
	Redact func([]byte) []byte
	// TLS is the base of the TLS configuration; the minimum version is TLS 1.2. Nil trusts the
	// certificates of the system.
	TLS *tls.Config
}

// Pool sends the requests of all grants of a server. Equal grants share a client and its
// connections; different grants never do. A Pool is safe for concurrent use.
type Pool struct {
	options  Options
	network  addressClassifier
	resolver *net.Resolver // nil means the system's

	mu      sync.Mutex
	clients map[[sha256.Size]byte]*grantClient
	closed  bool
}

// New returns a Pool. Close it when the server stops.
func New(o Options) *Pool {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.MaxResponse <= 0 {
		o.MaxResponse = DefaultMaxResponse
	}
	if o.Redact == nil {
		o.Redact = func(b []byte) []byte { return b }
	}
	if o.OnUnauthorized == nil {
		o.OnUnauthorized = func(context.Context, string) {}
	}
	if o.Traceparent == nil {
		o.Traceparent = func(context.Context) string { return "" }
	}
	if o.Resolve == nil {
		o.Resolve = func(context.Context, string) (string, error) { return "", errNoSecrets }
	}
	return &Pool{options: o, network: newAddressClassifier(), clients: map[[sha256.Size]byte]*grantClient{}}
}

// Do sends the request in payload under the grant g and returns the response, both JSON:
//
//	{"method","url","headers":{name: value},"body": text | "body64": base64,"timeout_ms"}
//	{"status","headers":{lower-case name: value},"body": text | "body64": base64,"url"}
//
// The error is always a [*scripting.HostError]: INVALID for a malformed request, NOT_GRANTED
// and DENIED for a request outside of the grant, TOO_LARGE, TIMEOUT, and UNAVAILABLE if the
// host gives no response.
func (p *Pool) Do(ctx context.Context, g grant.HTTP, payload []byte) ([]byte, error) {
	r, err := parseRequest(payload)
	if err != nil {
		return nil, err
	}
	c, release, ok := p.lease(g)
	if !ok {
		return nil, newHostError(scripting.Unavailable, "the server is stopping")
	}
	defer release()
	return c.do(ctx, r)
}

// Check makes the checks of [Pool.Do] that need no connection. Mocks use it, so that a test
// cannot pass with a request that would be refused.
func (p *Pool) Check(g grant.HTTP, payload []byte) error {
	r, err := parseRequest(payload)
	if err != nil {
		return err
	}
	if err := checkHeaders(r.headers, g); err != nil {
		return err
	}
	return newAllowlist(g).check(r.method, r.to)
}

// Close closes all connections and refuses further requests.
func (p *Pool) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for key, c := range p.clients {
		c.idle.Stop()
		c.close()
		delete(p.clients, key)
	}
	return nil
}

// lease returns the client of a grant. It stays open for idleTimeout after its last release.
func (p *Pool) lease(g grant.HTTP) (c *grantClient, release func(), ok bool) {
	key := g.Hash()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, nil, false
	}
	c, found := p.clients[key]
	if !found {
		c = newClient(g, p.options, p.network, p.resolver)
		c.idle = time.AfterFunc(idleTimeout, func() { p.closeIdle(key, c) })
		p.clients[key] = c
	}
	c.leases++
	return c, func() { p.release(c) }, true
}

func (p *Pool) release(c *grantClient) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.leases--
	switch {
	case p.closed:
		c.close()
	case c.leases == 0:
		c.idle.Reset(idleTimeout)
	}
}

func (p *Pool) closeIdle(key [sha256.Size]byte, c *grantClient) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.leases > 0 || p.closed {
		return // release resets the timer
	}
	c.close()
	delete(p.clients, key)
}
