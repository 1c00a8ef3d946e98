package pipeline

import (
	"hash/maphash"
	"net/netip"

	"github.com/mcpd/mcpd/identity"
)

// ownerOf tells for whom a call takes room: the principal, by how it was proved, its issuer
// and its id, or of a caller that nothing was proved about the address, of which IPv6 counts
// by /64, as one host may have all of these. Callers without an address are told apart by
// where they came in. The seed keeps callers from choosing whom they share a number with.
func (p *Pipeline) ownerOf(c *identity.Caller) uint64 {
	var h maphash.Hash
	h.SetSeed(p.seed)
	add := func(text string) {
		maphash.WriteComparable(&h, len(text))
		_, _ = h.WriteString(text) // never fails
	}
	who := &c.Principal
	add(string(who.Kind))
	switch {
	case who.Kind != identity.KindAnonymous && who.Kind != "":
		add(who.Issuer)
		add(who.ID)
	case c.Source.IP != "":
		addAddress(&h, c.Source.IP)
	default:
		add(c.Source.Listener)
	}
	return h.Sum64()
}

// addAddress adds an address, or the network of one that is of IPv6.
func addAddress(h *maphash.Hash, text string) {
	address, err := netip.ParseAddr(text)
	if err != nil {
		_, _ = h.WriteString(text) // never fails
		return
	}
	address = address.Unmap().WithZone("")
	network := address.AsSlice()
	if address.Is6() {
		network = network[:8]
	}
	_, _ = h.Write(network) // never fails
}
