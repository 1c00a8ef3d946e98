package gate

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// The defaults of [Caps].
const (
	DefaultTotal      = 4096
	DefaultPerAddress = 1024
)

// Caps bound the connections that are open at once. 0 means the default.
type Caps struct {
	Total int
	// PerAddress counts by peer: by IPv4 address, by IPv6 network of 64 bits.
	// Peers without an address, as on a Unix socket, are not counted apart.
	PerAddress int
}

// writeTime is how long a write may take where nobody has set a deadline.
const writeTime = 30 * time.Second

// Limit returns a listener that closes connections beyond the caps as soon as
// they are made, and on whose connections no write takes for ever: what has no
// deadline of its own gets 30 s. They have a NetConn method like [crypto/tls.Conn].
func Limit(l net.Listener, c Caps) net.Listener {
	if c.Total <= 0 {
		c.Total = DefaultTotal
	}
	if c.PerAddress <= 0 {
		c.PerAddress = DefaultPerAddress
	}
	return &limited{Listener: l, caps: c, peers: map[netip.Addr]int{}}
}

type limited struct {
	net.Listener
	caps Caps

	mu    sync.Mutex
	total int
	peers map[netip.Addr]int
}

// Accept returns the next connection that is within the caps.
func (l *limited) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		peer := peerOf(c)
		if l.enter(peer) {
			return &counted{Conn: c, leave: sync.OnceFunc(func() { l.leave(peer) })}, nil
		}
		_ = c.Close()
	}
}

func (l *limited) enter(peer netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.total >= l.caps.Total || peer.IsValid() && l.peers[peer] >= l.caps.PerAddress {
		return false
	}
	l.total++
	if peer.IsValid() {
		l.peers[peer]++
	}
	return true
}

func (l *limited) leave(peer netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total--
	if l.peers[peer]--; l.peers[peer] <= 0 {
		delete(l.peers, peer)
	}
}

// peerOf returns whom a connection counts for; the zero Addr for nobody.
func peerOf(c net.Conn) netip.Addr {
	tcp, ok := c.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	ip := tcp.AddrPort().Addr().Unmap()
	if !ip.Is6() {
		return ip
	}
	network, err := ip.WithZone("").Prefix(64)
	if err != nil {
		return ip
	}
	return network.Addr()
}

// counted is a connection that counts until it is closed.
type counted struct {
	net.Conn
	leave func()
	// timed says that whoever writes has set a deadline.
	timed atomic.Bool
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
