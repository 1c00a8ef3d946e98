package pipeline

import (
	"net/netip"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/workqueue"
)

// ownerOf returns a number for the client for which a call takes room (see
// [workqueue.ClientOf]). The seed keeps callers from choosing whom they share a number with.
func (p *Pipeline) ownerOf(c *identity.Caller) uint64 {
	address, _ := netip.ParseAddr(c.Source.IP)
	return workqueue.ClientOf(&c.Principal, address, c.Source.Listener).Number(p.seed)
}
