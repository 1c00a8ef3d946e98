package gate

import (
	"net"
	"net/http"
	"net/netip"

	"github.com/mcpd/mcpd/identity"
)

// Client is what a [Budget] counts by: the principal of a request that has proved who
// sent it, and otherwise the address that it came from. The zero Client stands for
// peers without an address, as on a Unix socket.
type Client struct {
	kind       identity.Kind
	issuer, id string
	address    netip.Addr // an IPv4 address, or an IPv6 network of 64 bits
}

// ClientOf returns the client that has sent a request as the principal.
func ClientOf(r *http.Request, p *identity.Principal) Client {
	if p.Kind != identity.KindAnonymous && p.ID != "" {
		return Client{kind: p.Kind, issuer: p.Issuer, id: p.ID}
	}
	return clientAt(r)
}

// clientAt returns the client of a request of which nothing is proved.
func clientAt(r *http.Request) Client {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return Client{}
	}
	return Client{address: network(peer.Addr())}
}

// proved reports whether the client has proved who it is.
func (c Client) proved() bool { return c.id != "" }

// clientOn returns the client of a connection of which nothing is proved yet.
func clientOn(c net.Conn) Client {
	tcp, ok := c.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return Client{}
	}
	return Client{address: network(tcp.AddrPort().Addr())}
}

// network returns what an address counts as: an IPv4 address as itself, also where it is
// mapped to IPv6, and an IPv6 address as its network of 64 bits, which one host may
// have to itself.
func network(ip netip.Addr) netip.Addr {
	ip = ip.Unmap().WithZone("")
	if !ip.Is6() {
		return ip
	}
	prefix, err := ip.Prefix(64)
	if err != nil {
		return ip
	}
	return prefix.Addr()
}

// TooManyInUse is what to answer when [Enter] refuses a request, with the status 503.
const TooManyInUse = "this client has too many requests and streams open; try again in a second"

// Enter counts a request, and its connection, for the client that has sent it as the
// principal, from now until it has been served. False means that the client has too many
// requests and streams open. It must be called before the body is read.
func Enter(r *http.Request, p *identity.Principal) (Client, bool) {
	c := ClientOf(r, p)
	if body, ok := r.Body.(*boundBody); ok {
		body.hold.client = c
	}
	if conn, ok := r.Context().Value(connKey{}).(*counted); ok && !conn.use(c) {
		return c, false
	}
	return c, true
}
