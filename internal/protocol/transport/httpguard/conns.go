package httpguard

import (
	"container/list"
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/workqueue"
)

// The defaults of [ConnLimits].
const (
	DefaultMaxConns         = 4096
	DefaultMaxIdlePerClient = 1024
)

// ConnLimits bound the open connections. 0 means the default.
type ConnLimits struct {
	// Total bounds all connections. A sixteenth is for connections not in use.
	Total int
	// IdlePerClient bounds the connections of one client that are not in use. A
	// client is an address, or the principal of the last request on the
	// connection.
	IdlePerClient int
}

// smallShare is the number of connections that a client may use regardless of
// what others use.
const smallShare = 16

// defaultWriteTimeout bounds a write without a deadline.
const defaultWriteTimeout = 30 * time.Second

// LimitListener returns a listener that bounds its connections. A write without
// a deadline on its connections ends after 30 s. The connections have a NetConn
// method like [crypto/tls.Conn].
//
// A connection is in use while it serves a request that has passed [Admit], or
// after it was hijacked. A new connection is always accepted while another is
// not in use: at the limit, LimitListener closes the longest idle connection of
// the client with most idle ones. A [Budget] bounds how many a client may use
// at once. [ConfigureServer] must have prepared the server.
func LimitListener(l net.Listener, c ConnLimits) net.Listener {
	if c.Total <= 0 {
		c.Total = DefaultMaxConns
	}
	if c.IdlePerClient <= 0 {
		c.IdlePerClient = DefaultMaxIdlePerClient
	}
	used := max(int64(c.Total-c.Total/16), 1)
	return &limitListener{
		Listener: l, limits: c, idle: map[workqueue.Client]*list.List{},
		inUse: &Budget{size: used, small: min(smallShare, max(used/16, 1)), accounts: map[workqueue.Client]*account{}},
	}
}

type limitListener struct {
	net.Listener
	limits ConnLimits
	inUse  *Budget

	mu    sync.Mutex
	total int
	// idle holds the connections that are not in use, longest idle first.
	idle map[workqueue.Client]*list.List
}

// Accept returns the next connection. If the system has no file descriptor for
// it, Accept closes a connection that is not in use, so that the next try may
// succeed.
func (l *limitListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
			l.mu.Lock()
			evicted := l.evict()
			l.mu.Unlock()
			closeAll(evicted)
		}
		if err != nil {
			return nil, err
		}
		if conn := l.admit(c); conn != nil {
			return conn, nil
		}
		_ = c.Close()
	}
}

// admit counts a connection. It returns nil if all others are in use.
func (l *limitListener) admit(c net.Conn) *limitedConn {
	conn := &limitedConn{Conn: c, listener: l, client: clientOfConn(c), hold: Hold{budget: l.inUse}}
	l.mu.Lock()
	var evicted []*limitedConn
	if l.total >= l.limits.Total {
		evicted = l.evict()
	}
	if l.total >= l.limits.Total {
		l.mu.Unlock()
		return nil
	}
	l.total++
	evicted = append(evicted, l.addIdle(conn)...)
	l.mu.Unlock()
	closeAll(evicted)
	return conn
}

// evict removes the longest idle connection of the client with most idle ones,
// for the caller to close; none if all are in use. The caller holds mu.
func (l *limitListener) evict() []*limitedConn {
	var oldest *limitedConn
	count := 0
	for _, of := range l.idle {
		first := of.Front().Value.(*limitedConn)
		if of.Len() > count || of.Len() == count && first.idleSince.Before(oldest.idleSince) {
			oldest, count = first, of.Len()
		}
	}
	if oldest == nil {
		return nil
	}
	l.uncount(oldest)
	return []*limitedConn{oldest}
}

// addIdle marks a connection as not in use. It returns the connections to
// close, because their client has too many. The caller holds mu.
func (l *limitListener) addIdle(c *limitedConn) (evicted []*limitedConn) {
	conns := l.idle[c.client]
	if conns == nil {
		conns = list.New()
		l.idle[c.client] = conns
	}
	c.idleSince = time.Now()
	c.idleElement = conns.PushBack(c)
	if conns.Len() > l.limits.IdlePerClient {
		first := conns.Front().Value.(*limitedConn)
		l.uncount(first)
		evicted = append(evicted, first)
	}
	return evicted
}

// removeIdle marks a connection as in use. The caller holds mu.
func (l *limitListener) removeIdle(c *limitedConn) {
	if c.idleElement == nil {
		return
	}
	conns := l.idle[c.client]
	if conns.Remove(c.idleElement); conns.Len() == 0 {
		delete(l.idle, c.client)
	}
	c.idleElement = nil
}

// uncount stops counting a connection. The caller holds mu.
func (l *limitListener) uncount(c *limitedConn) {
	if !c.uncounted {
		c.uncounted = true
		l.total--
	}
	l.removeIdle(c)
}

func closeAll(conns []*limitedConn) {
	for _, c := range conns {
		// Not the TLS connection above it, which would first send a close
		// notification.
		_ = c.Conn.Close()
	}
}

// limitedConn is a connection that counts until it is closed.
type limitedConn struct {
	net.Conn
	listener *limitListener
	// hasDeadline is true if a write deadline is set.
	hasDeadline atomic.Bool

	// guarded by listener.mu
	client      workqueue.Client
	idleElement *list.Element // in the list of idle connections; nil if in use or uncounted
	idleSince   time.Time     // start of the idle time
	uncounted   bool

	hold Hold // of the client that uses it
}

// startUse marks the connection as in use by a client. It returns false if the
// client uses too many.
func (c *limitedConn) startUse(client workqueue.Client) bool {
	l := c.listener
	c.hold.ReleaseAll()
	c.hold.client = client
	if !c.hold.Take(1) {
		return false
	}
	l.mu.Lock()
	l.removeIdle(c)
	c.client = client
	uncounted := c.uncounted
	l.mu.Unlock()
	if uncounted {
		c.hold.ReleaseAll()
	}
	return true
}

// endUse marks the connection as not in use.
func (c *limitedConn) endUse() {
	c.hold.ReleaseAll()
	l := c.listener
	l.mu.Lock()
	var evicted []*limitedConn
	if l.removeIdle(c); !c.uncounted {
		evicted = l.addIdle(c)
	}
	l.mu.Unlock()
	closeAll(evicted)
}

// uncount stops counting the connection.
func (c *limitedConn) uncount() {
	l := c.listener
	l.mu.Lock()
	l.uncount(c)
	l.mu.Unlock()
	c.hold.ReleaseAll()
}

// Write writes within the deadline, or within defaultWriteTimeout.
func (c *limitedConn) Write(p []byte) (int, error) {
	if !c.hasDeadline.Load() {
		if err := c.Conn.SetWriteDeadline(time.Now().Add(defaultWriteTimeout)); err != nil {
			return 0, err
		}
	}
	return c.Conn.Write(p)
}

// SetWriteDeadline sets the deadline for writes; the zero time restores
// defaultWriteTimeout for each write.
func (c *limitedConn) SetWriteDeadline(t time.Time) error {
	c.hasDeadline.Store(!t.IsZero())
	return c.Conn.SetWriteDeadline(t)
}

// SetDeadline sets the deadlines for reads and writes.
func (c *limitedConn) SetDeadline(t time.Time) error {
	c.hasDeadline.Store(!t.IsZero())
	return c.Conn.SetDeadline(t)
}

// Close closes the connection.
func (c *limitedConn) Close() error {
	defer c.uncount()
	return c.Conn.Close()
}

// NetConn returns the underlying connection.
func (c *limitedConn) NetConn() net.Conn { return c.Conn }

// Abort closes a connection and all connections below it at once, without
// waiting for a write.
func Abort(c net.Conn) {
	for {
		inner, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			_ = c.Close()
			return
		}
		c = inner.NetConn()
	}
}

// connKey is the context key of a request's connection.
type connKey struct{}

// limitedConnOf returns the limitedConn below a connection; nil for none.
func limitedConnOf(c net.Conn) *limitedConn {
	for {
		switch inner := c.(type) {
		case *limitedConn:
			return inner
		case interface{ NetConn() net.Conn }:
			c = inner.NetConn()
		default:
			return nil
		}
	}
}

// trackConns makes a server track the use of its connections, and add them to
// the contexts of requests.
func trackConns(s *http.Server) {
	connContext, changed := s.ConnContext, s.ConnState
	s.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		if conn := limitedConnOf(c); conn != nil {
			ctx = context.WithValue(ctx, connKey{}, conn)
		}
		if connContext == nil {
			return ctx
		}
		return connContext(ctx, c)
	}
	s.ConnState = func(c net.Conn, state http.ConnState) {
		if conn := limitedConnOf(c); conn != nil && state == http.StateIdle {
			conn.endUse()
		}
		if changed != nil {
			changed(c, state)
		}
	}
}

// ClientOf returns the client that sent a request as the principal, or without
// one if p is nil. All peers of a Unix socket without a credential are one
// client.
func ClientOf(r *http.Request, p *identity.Principal) workqueue.Client {
	peer, _ := netip.ParseAddrPort(r.RemoteAddr)
	return workqueue.ClientOf(p, peer.Addr(), "")
}

// clientOfConn returns the client of a connection before authentication.
func clientOfConn(c net.Conn) workqueue.Client {
	tcp, ok := c.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return workqueue.Client{}
	}
	return workqueue.ClientOf(nil, tcp.AddrPort().Addr(), "")
}

// TooManyInUse is the message for a request that [Admit] rejects, with the
// status 503.
const TooManyInUse = "this client has too many requests and streams open; try again in a second"

// Admit counts a request and its connection for the client that sent it as the
// principal, until the request has been served. It returns false if the client
// has too many open requests and streams. It must be called before the body is
// read.
func Admit(r *http.Request, p *identity.Principal) (workqueue.Client, bool) {
	c := ClientOf(r, p)
	if body, ok := r.Body.(*limitedBody); ok {
		body.hold.client = c
	}
	if conn, ok := r.Context().Value(connKey{}).(*limitedConn); ok && !conn.startUse(c) {
		return c, false
	}
	return c, true
}
