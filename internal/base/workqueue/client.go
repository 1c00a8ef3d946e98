package workqueue

import (
	"hash/maphash"
	"net/netip"

	"github.com/mcpd/mcpd/identity"
)

// Client is whom room is shared out to: a principal that has proved who it is, or else the
// address of a caller. Clients can be compared, and are keys of maps. The zero Client
// stands for callers without a credential and without an address.
type Client struct {
	kind       identity.Kind
	issuer, id string
	address    netip.Addr // an IPv4 address, or an IPv6 network of 64 bits
	listener   string     // where callers without an address came in
}

// ClientOf returns the client that a principal is, by its kind, issuer and id. A caller of
// which nothing is proved is its address: an IPv4 address counts as itself, also where it
// is mapped to IPv6, and an IPv6 address as its network of 64 bits, which one host may have
// to itself. Without an address it is the listener.
func ClientOf(p *identity.Principal, address netip.Addr, listener string) Client {
	if p != nil && p.Kind != identity.KindAnonymous && p.ID != "" {
		return Client{kind: p.Kind, issuer: p.Issuer, id: p.ID}
	}
	if !address.IsValid() {
		return Client{listener: listener}
	}
	address = address.Unmap().WithZone("")
	if address.Is6() {
		address = netip.PrefixFrom(address, 64).Masked().Addr()
	}
	return Client{address: address}
}

// Proved reports whether the client has proved who it is.
func (c Client) Proved() bool { return c.id != "" }

// Number returns a number for the client, the same for the same seed. Callers who do not
// know the seed cannot choose whom they share a number with. It allocates nothing.
func (c Client) Number(seed maphash.Seed) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for _, text := range [...]string{string(c.kind), c.issuer, c.id, c.listener} {
		maphash.WriteComparable(&h, len(text))
		_, _ = h.WriteString(text) // never fails
	}
	address := c.address.As16() // that of no address is all zeros
	_, _ = h.Write(address[:])  // never fails
	return h.Sum64()
}
