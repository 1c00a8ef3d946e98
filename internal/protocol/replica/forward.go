package replica

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"syscall"
	"time"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/auth/authn"
	"github.com/mcpd/mcpd/internal/base/httpheader"
	"github.com/mcpd/mcpd/internal/base/observe"
	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpstream"
)

// Options configure a [Forwarder].
type Options struct {
	Keys *Keys
	// Process identifies this process: it owns the sessions of [Forwarder.NewSessionID].
	Process string
	// Replicas lists the replicas of the fleet.
	Replicas func() ([]state.Replica, error)
	// Middleware authenticates callers, and MaxMessage bounds the body of a request, as for a request
	// of a session of this process.
	authn.Middleware
	MaxMessage int
	// Draining is closed when streams without an end must end.
	Draining <-chan struct{}
	// Count counts a request by its outcome, a constant of package observe. Nil does not count.
	Count func(outcome string)
	// Log logs for the operator.
	Log *slog.Logger
}

// Forwarder sends requests for the sessions of other processes to their owner: a POST or DELETE at most
// once. It is safe for concurrent use.
type Forwarder struct {
	// fixed at creation
	options   Options
	addresses *addresses
	transport *http.Transport
	buffers   bufferPool
	logged    authn.LogLimiter
	// accept and watchEvery are acceptTimeout and watchEvery, except in tests.
	accept, watchEvery time.Duration
}

const (
	// acceptTimeout bounds the time for the owner to accept a connection.
	acceptTimeout = 2 * time.Second
	// watchEvery is the interval of looking up the owner of a session while a request waits for it.
	watchEvery = 5 * time.Second
	// idleTimeout is shorter than the timeout of the owner, so that a request rarely meets a connection that
	// is being closed.
	idleTimeout = 30 * time.Second
	// maxIdle bounds the connections to one owner that wait for a request.
	maxIdle = 64
	// maxResponseHeader bounds the header of a response, in bytes.
	maxResponseHeader = 256 << 10
)

// errClosed is the error of look-ups after [Forwarder.Close].
var errClosed = errors.New("the server is shutting down")

// NewForwarder returns a forwarder. The caller must close it.
func NewForwarder(o Options) *Forwarder {
	if o.Count == nil {
		o.Count = func(string) {}
	}
	f := &Forwarder{options: o, addresses: &addresses{list: o.Replicas, maxAge: addressMaxAge}, accept: acceptTimeout, watchEvery: watchEvery}
	f.transport = &http.Transport{
		DialTLSContext: f.dial, MaxIdleConnsPerHost: maxIdle, IdleConnTimeout: idleTimeout,
		DisableCompression: true, MaxResponseHeaderBytes: maxResponseHeader,
	}
	return f
}

// Close closes the connections that no request uses.
func (f *Forwarder) Close() {
	f.addresses.close()
	f.transport.CloseIdleConnections()
}

// NewSessionID returns the id of a new session of this process.
func (f *Forwarder) NewSessionID(p identity.Principal) string {
	id, ok := f.options.Keys.SealSessionID(f.options.Process, p)
	if !ok {
		panic("replica: the id of the process is empty or too long")
	}
	return id
}

// Wrap returns a handler that forwards requests for sessions of other processes, and passes all other
// requests to next, which is the handler of path. sessionOf returns the session that a request names, or
// "". If parameter is not empty, it is the URL parameter with the session.
//
// Next also gets requests for sessions whose owner is gone, and with ids that the caller did not get from
// this fleet: it answers as for any unknown session.
func (f *Forwarder) Wrap(path, parameter string, next http.Handler, sessionOf func(*http.Request) string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text := sessionOf(r)
		id, ok := SessionID{}, false
		if text != "" {
			id, ok = f.options.Keys.OpenSessionID(text)
		}
		if !ok || id.Owner == f.options.Process {
			next.ServeHTTP(w, r)
			return
		}
		one := &forwarding{Forwarder: f, w: w, r: r, next: next, id: id, target: url.URL{Scheme: "https", Path: path}, outcome: observe.ForwardedBroken}
		if parameter != "" {
			one.target.RawQuery = parameter + "=" + text // its characters need no escape
		}
		defer func() { f.options.Count(one.outcome) }() // also if the proxy panics to end a response
		one.serve()
	})
}

// HeaderEvidence carries the [authn.Evidence] of a forwarded request. Only the listener for replicas
// reads it.
const HeaderEvidence = "Mcpd-Forwarded-Evidence"

// forwarding is one request for a session of another process.
type forwarding struct {
	*Forwarder
	w        http.ResponseWriter
	r        *http.Request
	next     http.Handler
	id       SessionID
	target   url.URL
	original *http.Request // r with its credential, which authentication removes
	evidence string
	body     []byte
	outcome  string
}

// serve authenticates the request, and forwards it if the session is the caller's.
func (f *forwarding) serve() {
	f.original = f.r.Clone(f.r.Context())
	f.outcome = observe.ForwardedRejected
	caller, ok := httpstream.Authenticate(f.w, f.r, f.options.Middleware)
	if !ok {
		return
	}
	if !f.id.BelongsTo(caller.Peer.Principal) {
		f.serveHere()
		return
	}
	address, err := f.addresses.find(f.r.Context(), f.id.Owner)
	switch {
	case f.r.Context().Err() != nil:
		f.outcome = observe.ForwardedCanceled
		return
	case err != nil:
		f.outcome = observe.ForwardedUnavailable
		f.log("look up owner of session", err)
		f.unavailable("the server that has the session cannot be looked up now; try again in a second")
		return
	case address == "":
		f.outcome = observe.ForwardedGone
		f.serveHere()
		return
	}
	f.target.Host = address
	evidence, err := authn.EvidenceOf(f.r)
	var text []byte
	if err == nil {
		text, err = json.Marshal(evidence)
	}
	if err != nil {
		httpstream.WriteError(f.w, http.StatusBadRequest, err.Error())
		return
	}
	f.evidence = string(text)
	if f.r.Method == http.MethodPost {
		if f.body, ok = httpstream.Read(f.w, f.r, f.options.MaxMessage); !ok || !httpstream.CheckAccess(f.w, f.r, f.options.Middleware, caller.Access) {
			return
		}
	}
	f.send()
}

// serveHere answers the request as one for a session that this process does not know.
func (f *forwarding) serveHere() {
	f.r.Header = f.original.Header
	if f.body != nil {
		f.r.Body = io.NopCloser(bytes.NewReader(f.body))
	}
	f.next.ServeHTTP(f.w, f.r)
}

// send sends the request to the owner, and copies the response. It gives up when the owner is presumed
// dead: a broken network may not say so.
func (f *forwarding) send() {
	ctx, cancel := context.WithCancel(f.r.Context())
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	watching.Go(func() {
		defer cancel()
		f.watch(ctx)
	})
	f.outcome = observe.ForwardedServed
	proxy := httputil.ReverseProxy{
		Transport: f.transport, FlushInterval: -1, BufferPool: &f.buffers, Rewrite: f.rewrite,
		ErrorLog:     slog.NewLogLogger(f.options.Log.Handler(), slog.LevelDebug),
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) { f.fail(err) },
	}
	returned := false
	defer func() {
		switch {
		case f.outcome != observe.ForwardedServed: // fail has answered
		case f.ends():
			f.outcome = observe.ForwardedCanceled
		case !returned, ctx.Err() != nil: // the owner may end a response when its connection is closed
			f.outcome = observe.ForwardedBroken
		}
	}()
	proxy.ServeHTTP(f.w, f.original.WithContext(ctx))
	returned = true
}

// watch waits until the request must end.
func (f *forwarding) watch(ctx context.Context) {
	draining := f.options.Draining
	if f.r.Method != http.MethodGet {
		draining = nil // only streams do not end by themselves
	}
	tick := time.NewTicker(f.watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-draining:
			return
		case <-tick.C:
			if address, err := f.addresses.find(ctx, f.id.Owner); err == nil && address == "" {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// removed are headers of a request that are of no use to the owner. With Idempotency-Key, the transport
// would repeat a POST.
var removed = [...]string{"Connection", "Upgrade", "Te", "Expect", "Idempotency-Key", "X-Idempotency-Key"}

// rewrite makes the request for the owner. The client chooses neither its URL nor its evidence.
func (f *forwarding) rewrite(p *httputil.ProxyRequest) {
	out, target := p.Out, f.target
	out.URL, out.TransferEncoding = &target, nil
	for _, name := range removed {
		out.Header.Del(name)
	}
	out.Header.Set(HeaderEvidence, f.evidence)
	out.Body, out.ContentLength = nil, 0
	if len(f.body) > 0 {
		out.ContentLength = int64(len(f.body))
		out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(f.body)), nil }
		out.Body, _ = out.GetBody()
	}
}

// dialError means that there is no connection, so that nothing was sent.
type dialError struct{ error }

func (e dialError) Unwrap() error { return e.error }

// dial connects to another replica.
func (f *Forwarder) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, f.accept)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, dialError{err}
	}
	secure := tls.Client(conn, f.options.Keys.ClientTLS())
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, dialError{fmt.Errorf("recognize the replica at %s: %w", address, err)}
	}
	return secure, nil
}

// fail answers a request that got no response.
func (f *forwarding) fail(err error) {
	var dialing dialError
	if f.ends() {
		f.outcome = observe.ForwardedCanceled
		f.unavailable("the server is shutting down") // or the client is gone
		return
	}
	f.log("forward request", err)
	switch unsent := errors.As(err, &dialing); {
	case unsent && (errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, errStranger)):
		f.outcome = observe.ForwardedGone
		f.serveHere()
	case unsent:
		f.outcome = observe.ForwardedUnavailable
		f.unavailable("the server that has the session does not accept the request now; try again in a second")
	default:
		f.outcome = observe.ForwardedBroken
		httpstream.WriteError(f.w, http.StatusBadGateway, "the connection to the server that has the session broke; whether the request had effects is unknown")
	}
}

// ends reports whether the client is gone, or a stream must end because this process shuts down.
func (f *forwarding) ends() bool {
	if f.r.Context().Err() != nil {
		return true
	}
	select {
	case <-f.options.Draining:
		return f.r.Method == http.MethodGet
	default:
		return false
	}
}

func (f *forwarding) unavailable(reason string) {
	f.w.Header().Set("Retry-After", "1")
	httpstream.WriteError(f.w, http.StatusServiceUnavailable, reason)
}

// log logs a failure, within the limit. Any client can cause it.
func (f *forwarding) log(message string, err error) {
	suppressed, ok := f.logged.Allow(time.Now())
	if !ok {
		return
	}
	attributes := []slog.Attr{slog.String("process", f.id.Owner), slog.String("address", f.target.Host), slog.String("error", err.Error())}
	if id := httpheader.RequestIDOf(f.r.Header); id != "" {
		attributes = append(attributes, slog.String("request_id", id))
	}
	if suppressed > 0 {
		attributes = append(attributes, slog.Int("not_logged_before", suppressed))
	}
	f.options.Log.LogAttrs(f.r.Context(), slog.LevelWarn, message, attributes...)
}

// bufferPool has the buffers for copying responses.
type bufferPool struct{ pool sync.Pool }

// bufferBytes is the size of a buffer: most responses and events are shorter.
const bufferBytes = 8 << 10

func (p *bufferPool) Get() []byte {
	if b, ok := p.pool.Get().(*[]byte); ok {
		return *b
	}
	return make([]byte, bufferBytes)
}

func (p *bufferPool) Put(b []byte) { p.pool.Put(&b) }
