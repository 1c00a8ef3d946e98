package hclfile

import (
	"net/netip"
	"strings"
)

// checkPattern refuses a pattern of hosts in a grant that reaches private
// networks: whoever owns the domain says where a name below it leads.
func (d *decoder) checkPattern(host element) {
	if strings.Contains(host.text, "*") {
		d.fail("bad-grant", d.f.rng(host.where), "a * together with private_networks reaches whatever the owner of the domain points a name at",
			"name each host that is in a private network, and grant the others of the domain in an http block of their own")
	}
}

// checkReach warns of a host that is private by its very name, in a grant that
// does not reach private networks.
func (d *decoder) checkReach(host element, private bool) {
	name, _, _ := cutPort(host.text)
	addr, _ := netip.ParseAddr(strings.Trim(name, "[]"))
	local := name == "localhost" || strings.HasSuffix(name, ".localhost")
	if !private && (local || addr.IsLoopback() || addr.IsPrivate() || addr.IsLinkLocalUnicast()) {
		d.warn("bad-grant", d.f.rng(host.where), "this host is in a private network, which the grant does not reach", "add private_networks = true to the grant")
	}
}
