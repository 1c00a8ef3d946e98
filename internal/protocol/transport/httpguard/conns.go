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

// The defaults of [Caps].
const (
	DefaultMaxConns         = 4096
	DefaultMaxIdlePerClient = 1024
)

// Caps bound the connections that are open at once. 0 means the default.
type ConnLimits struct {
	// Total bounds all connections. A sixteenth is for those that are not in use.
	Total int
	// IdlePerClient bounds the connections of one client that are not in use. A client is
	// an address, or the principal of the last request on a connection.
	IdlePerClient int
}

// smallUse is how many connections a client may have in use whatever the others use.
const smallShare = 16

// writeTime is how long a write may take where nobody has set a deadline.
const defaultWriteTimeout = 30 * time.Second

// Limit returns a listener that bounds its connections, and on whose connections no
// write takes for ever: what has no deadline of its own gets 30 s. They have a NetConn
// method like [crypto/tls.Conn].
//
// A connection is in use while a request is served on it that has passed [Enter], or
// once it was hijacked. A new connection always gets in as long as there is one that is
// not in use: where there are too many, that of the largest holder is closed which has
// been idle for longest. How many a client may use at once, a [Budget] says. The server
// must have been prepared by [Guard].
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
	// waiting holds the connections that are not in use, those that have waited for
	// longest first.
	idle map[workqueue.Client]*list.List
}

// Accept returns the next connection. Where the system has no file descriptor for it, one
// that is not in use is closed, so that the next try may succeed.
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

// enter counts a connection. It returns nil when all others are in use.
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

// evict takes out the connection of the largest holder that has waited for longest, which
// is to be closed; none where all are in use. mu is held.
func (l *limitListener) evict() []*limitedConn {
	var longest *limitedConn
	most := 0
	for _, of := range l.idle {
		first := of.Front().Value.(*limitedConn)
		if of.Len() > most || of.Len() == most && first.idleSince.Before(longest.idleSince) {
			longest, most = first, of.Len()
		}
	}
	if longest == nil {
		return nil
	}
	l.uncount(longest)
	return []*limitedConn{longest}
}

// wait notes that a connection is not in use from now on. It returns those that are to
// be closed, as their client has too many. mu is held.
func (l *limitListener) addIdle(c *limitedConn) (evicted []*limitedConn) {
	of := l.idle[c.client]
	if of == nil {
		of = list.New()
		l.idle[c.client] = of
	}
	c.idleSince = time.Now()
	c.idleElement = of.PushBack(c)
	if of.Len() > l.limits.IdlePerClient {
		first := of.Front().Value.(*limitedConn)
		l.uncount(first)
		evicted = append(evicted, first)
	}
	return evicted
}

// unwait takes a connection off those that are not in use. mu is held.
func (l *limitListener) removeIdle(c *limitedConn) {
	if c.idleElement == nil {
		return
	}
	of := l.idle[c.client]
	if of.Remove(c.idleElement); of.Len() == 0 {
		delete(l.idle, c.client)
	}
	c.idleElement = nil
}

// forget does not count a connection any more. mu is held.
func (l *limitListener) uncount(c *limitedConn) {
	if !c.uncounted {
		c.uncounted = true
		l.total--
	}
	l.removeIdle(c)
}

func closeAll(conns []*limitedConn) {
	for _, c := range conns {
		// Not the connection of TLS above it, which would say goodbye first.
		_ = c.Conn.Close()
	}
}

// counted is a connection that counts until it is closed.
type limitedConn struct {
	net.Conn
	listener *limitListener
	// timed says that whoever writes has set a deadline.
	hasDeadline atomic.Bool

	// guarded by listener.mu
	client      workqueue.Client
	idleElement *list.Element // among those not in use; nil for one in use or gone
	idleSince   time.Time     // when it was last not in use any more
	uncounted   bool

	hold Hold // of the client that uses it
}

// use notes that the connection is in use for a client from now on. False means that the
// client uses too many.
func (c *limitedConn) startUse(by workqueue.Client) bool {
	l := c.listener
	c.hold.ReleaseAll()
	c.hold.client = by
	if !c.hold.Take(1) {
		return false
	}
	l.mu.Lock()
	l.removeIdle(c)
	c.client = by
	gone := c.uncounted
	l.mu.Unlock()
	if gone {
		c.hold.ReleaseAll()
	}
	return true
}

// rest notes that the connection is not in use any more.
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

// leave does not count the connection any more.
func (c *limitedConn) uncount() {
	l := c.listener
	l.mu.Lock()
	l.uncount(c)
	l.mu.Unlock()
	c.hold.ReleaseAll()
}

// Write writes within the deadline that is set, or within writeTime.
func (c *limitedConn) Write(p []byte) (int, error) {
	if !c.hasDeadline.Load() {
		if err := c.Conn.SetWriteDeadline(time.Now().Add(defaultWriteTimeout)); err != nil {
			return 0, err
		}
	}
	return c.Conn.Write(p)
}

// SetWriteDeadline sets the deadline for writes; the zero time gives each its
// writeTime again.
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

// NetConn returns the connection itself.
func (c *limitedConn) NetConn() net.Conn { return c.Conn }

// Abort closes a connection at once, and all that is below it, without waiting for a
// write on it.
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

// connKey is that of the connection of a request, in its context.
type connKey struct{}

// countedOf returns the connection of a listener of ours below another one; nil for none.
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

// follow has a server tell when its connections are in use, and its requests carry them.
func trackConns(s *http.Server) {
	outer, changed := s.ConnContext, s.ConnState
	s.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		if conn := limitedConnOf(c); conn != nil {
			ctx = context.WithValue(ctx, connKey{}, conn)
		}
		if outer == nil {
			return ctx
		}
		return outer(ctx, c)
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

// ClientOf returns the client that has sent a request as the principal, or without one
// where p is nil. Peers of a Unix socket without a credential are one client.
func ClientOf(r *http.Request, p *identity.Principal) workqueue.Client {
	peer, _ := netip.ParseAddrPort(r.RemoteAddr)
	return workqueue.ClientOf(p, peer.Addr(), "")
}

// clientOn returns the client of a connection of which nothing is proved yet.
func clientOfConn(c net.Conn) workqueue.Client {
	tcp, ok := c.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return workqueue.Client{}
	}
	return workqueue.ClientOf(nil, tcp.AddrPort().Addr(), "")
}

// TooManyInUse is what to answer when [Enter] refuses a request, with the status 503.
const TooManyInUse = "this client has too many requests and streams open; try again in a second"

// Enter counts a request, and its connection, for the client that has sent it as the
// principal, from now until it has been served. False means that the client has too many
// requests and streams open. It must be called before the body is read.
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
