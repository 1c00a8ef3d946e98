package httpguard

import (
	"net"
	"net/http"
	"net/netip"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/workqueue"
)

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
