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

// DefaultMaxResponse is the default bound of a response body, in bytes.
const DefaultMaxResponse = grant.DefaultMaxResponse

// unused is how long a client stays open when nobody asks for it.
const idleTimeout = 60 * time.Second

// Options configure a [Pool].
type Options struct {
	// Resolve returns the value of a secret. Its error is for the operator's
	// log. Nil means that there are no secrets.
	Resolve func(ctx context.Context, secret string) (string, error)
	// Refused is told of each secret with which a host has refused a request
	// (401), by the context of the request. Nil means that nobody is.
	OnUnauthorized func(ctx context.Context, secret string)
	// Propagate returns the traceparent (W3C Trace Context) that the requests of a context
	// carry on, which is empty for none; nil means none. There is no tracestate: it would
	// be text of whoever calls, sent to hosts that a grant names.
	Traceparent func(context.Context) (traceparent string)
	// Logger gets what the operator should know. Nil discards it.
	Logger *slog.Logger
	// MaxResponse bounds a response body, in bytes, where the grant does not.
	// 0 means [DefaultMaxResponse].
	MaxResponse int64
	// Redact takes what no script may see out of an answer, before it is
	// encoded. Nil takes nothing out.
	Redact func([]byte) []byte
	// TLS is the base of the configuration of TLS connections, to which
	// TLS 1.2 is the least. Nil trusts the certificates that the system trusts.
	TLS *tls.Config
}

// Pool sends the requests of all grants of a server. Requests under grants
// that say the same share a client with its connections; requests under
// others never do. A Pool is safe for concurrent use.
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

// Do sends the request that payload describes under the grant g and returns
// the answer, both JSON:
//
//	{"method","url","headers":{name: value},"body": text | "body64": base64,"timeout_ms"}
//	{"status","headers":{lower-case name: value},"body": text | "body64": base64,"url"}
//
// The error is always a [*scripting.HostError]: INVALID for what is malformed,
// NOT_GRANTED and DENIED for what the grant does not cover, TOO_LARGE,
// TIMEOUT, and UNAVAILABLE for a host that gives no answer.
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

// Check refuses what [Pool.Do] would refuse under the grant before it connects
// to anything. Mocks ask it, so that a test does not pass with a request that
// could never be made.
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

// lease returns the client of a grant. It stays open until it has been
// released by everyone for the time unused.
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
		return // release sets the clock again
	}
	c.close()
	delete(p.clients, key)
}
