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
	DefaultTotal         = 4096
	DefaultIdlePerClient = 1024
)

// Caps bound the connections that are open at once. 0 means the default.
type Caps struct {
	// Total bounds all connections. A sixteenth is for those that are not in use.
	Total int
	// IdlePerClient bounds the connections of one client that are not in use. A client is
	// an address, or the principal of the last request on a connection.
	IdlePerClient int
}

// smallUse is how many connections a client may have in use whatever the others use.
const smallUse = 16

// writeTime is how long a write may take where nobody has set a deadline.
const writeTime = 30 * time.Second

// Limit returns a listener that bounds its connections, and on whose connections no
// write takes for ever: what has no deadline of its own gets 30 s. They have a NetConn
// method like [crypto/tls.Conn].
//
// A connection is in use while a request is served on it that has passed [Enter], or
// once it was hijacked. A new connection always gets in as long as there is one that is
// not in use: where there are too many, that of the largest holder is closed which has
// been idle for longest. How many a client may use at once, a [Budget] says. The server
// must have been prepared by [Guard].
func Limit(l net.Listener, c Caps) net.Listener {
	if c.Total <= 0 {
		c.Total = DefaultTotal
	}
	if c.IdlePerClient <= 0 {
		c.IdlePerClient = DefaultIdlePerClient
	}
	used := max(int64(c.Total-c.Total/16), 1)
	return &limited{
		Listener: l, caps: c, waiting: map[workqueue.Client]*list.List{},
		inUse: &Budget{size: used, small: min(smallUse, max(used/16, 1)), accounts: map[workqueue.Client]*account{}},
	}
}

type limited struct {
	net.Listener
	caps  Caps
	inUse *Budget

	mu    sync.Mutex
	total int
	// waiting holds the connections that are not in use, those that have waited for
	// longest first.
	waiting map[workqueue.Client]*list.List
}

// Accept returns the next connection. Where the system has no file descriptor for it, one
// that is not in use is closed, so that the next try may succeed.
func (l *limited) Accept() (net.Conn, error) {
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
		if conn := l.enter(c); conn != nil {
			return conn, nil
		}
		_ = c.Close()
	}
}

// enter counts a connection. It returns nil when all others are in use.
func (l *limited) enter(c net.Conn) *counted {
	conn := &counted{Conn: c, listener: l, client: clientOn(c), using: Hold{budget: l.inUse}}
	l.mu.Lock()
	var evicted []*counted
	if l.total >= l.caps.Total {
		evicted = l.evict()
	}
	if l.total >= l.caps.Total {
		l.mu.Unlock()
		return nil
	}
	l.total++
	evicted = append(evicted, l.wait(conn)...)
	l.mu.Unlock()
	closeAll(evicted)
	return conn
}

// evict takes out the connection of the largest holder that has waited for longest, which
// is to be closed; none where all are in use. mu is held.
func (l *limited) evict() []*counted {
	var longest *counted
	most := 0
	for _, of := range l.waiting {
		first := of.Front().Value.(*counted)
		if of.Len() > most || of.Len() == most && first.since.Before(longest.since) {
			longest, most = first, of.Len()
		}
	}
	if longest == nil {
		return nil
	}
	l.forget(longest)
	return []*counted{longest}
}

// wait notes that a connection is not in use from now on. It returns those that are to
// be closed, as their client has too many. mu is held.
func (l *limited) wait(c *counted) (evicted []*counted) {
	of := l.waiting[c.client]
	if of == nil {
		of = list.New()
		l.waiting[c.client] = of
	}
	c.since = time.Now()
	c.place = of.PushBack(c)
	if of.Len() > l.caps.IdlePerClient {
		first := of.Front().Value.(*counted)
		l.forget(first)
		evicted = append(evicted, first)
	}
	return evicted
}

// unwait takes a connection off those that are not in use. mu is held.
func (l *limited) unwait(c *counted) {
	if c.place == nil {
		return
	}
	of := l.waiting[c.client]
	if of.Remove(c.place); of.Len() == 0 {
		delete(l.waiting, c.client)
	}
	c.place = nil
}

// forget does not count a connection any more. mu is held.
func (l *limited) forget(c *counted) {
	if !c.gone {
		c.gone = true
		l.total--
	}
	l.unwait(c)
}

func closeAll(conns []*counted) {
	for _, c := range conns {
		// Not the connection of TLS above it, which would say goodbye first.
		_ = c.Conn.Close()
	}
}

// counted is a connection that counts until it is closed.
type counted struct {
	net.Conn
	listener *limited
	// timed says that whoever writes has set a deadline.
	timed atomic.Bool

	// guarded by listener.mu
	client workqueue.Client
	place  *list.Element // among those not in use; nil for one in use or gone
	since  time.Time     // when it was last not in use any more
	gone   bool

	using Hold // of the client that uses it
}

// use notes that the connection is in use for a client from now on. False means that the
// client uses too many.
func (c *counted) use(by workqueue.Client) bool {
	l := c.listener
	c.using.Give()
	c.using.client = by
	if !c.using.Take(1) {
		return false
	}
	l.mu.Lock()
	l.unwait(c)
	c.client = by
	gone := c.gone
	l.mu.Unlock()
	if gone {
		c.using.Give()
	}
	return true
}

// rest notes that the connection is not in use any more.
func (c *counted) rest() {
	c.using.Give()
	l := c.listener
	l.mu.Lock()
	var evicted []*counted
	if l.unwait(c); !c.gone {
		evicted = l.wait(c)
	}
	l.mu.Unlock()
	closeAll(evicted)
}

// leave does not count the connection any more.
func (c *counted) leave() {
	l := c.listener
	l.mu.Lock()
	l.forget(c)
	l.mu.Unlock()
	c.using.Give()
}

// Write writes within the deadline that is set, or within writeTime.
func (c *counted) Write(p []byte) (int, error) {
	if !c.timed.Load() {
		if err := c.Conn.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
			return 0, err
		}
	}
	return c.Conn.Write(p)
}

// SetWriteDeadline sets the deadline for writes; the zero time gives each its
// writeTime again.
func (c *counted) SetWriteDeadline(t time.Time) error {
	c.timed.Store(!t.IsZero())
	return c.Conn.SetWriteDeadline(t)
}

// SetDeadline sets the deadlines for reads and writes.
func (c *counted) SetDeadline(t time.Time) error {
	c.timed.Store(!t.IsZero())
	return c.Conn.SetDeadline(t)
}

// Close closes the connection.
func (c *counted) Close() error {
	defer c.leave()
	return c.Conn.Close()
}

// NetConn returns the connection itself.
func (c *counted) NetConn() net.Conn { return c.Conn }

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
func countedOf(c net.Conn) *counted {
	for {
		switch inner := c.(type) {
		case *counted:
			return inner
		case interface{ NetConn() net.Conn }:
			c = inner.NetConn()
		default:
			return nil
		}
	}
}

// follow has a server tell when its connections are in use, and its requests carry them.
func follow(s *http.Server) {
	outer, changed := s.ConnContext, s.ConnState
	s.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		if conn := countedOf(c); conn != nil {
			ctx = context.WithValue(ctx, connKey{}, conn)
		}
		if outer == nil {
			return ctx
		}
		return outer(ctx, c)
	}
	s.ConnState = func(c net.Conn, state http.ConnState) {
		if conn := countedOf(c); conn != nil && state == http.StateIdle {
			conn.rest()
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
func clientOn(c net.Conn) workqueue.Client {
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
func Enter(r *http.Request, p *identity.Principal) (workqueue.Client, bool) {
	c := ClientOf(r, p)
	if body, ok := r.Body.(*boundBody); ok {
		body.hold.client = c
	}
	if conn, ok := r.Context().Value(connKey{}).(*counted); ok && !conn.use(c) {
		return c, false
	}
	return c, true
}
