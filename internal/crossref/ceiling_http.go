package crossref

import (
	"fmt"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/grant"
)

// httpCeiling checks which hosts a definition in a tool file reaches, and which
// of them at private addresses.
func (c *checker) httpCeiling(kind, name string, granted grant.Set, ranges map[string]diag.Range) {
	for _, http := range granted.HTTP {
		private, reaches := ranges["http."+http.Name+".private_networks"]
		for i, host := range http.Hosts {
			where := ranges[fmt.Sprintf("http.%s.hosts.%d", http.Name, i)]
			c.within(c.config.Ceiling.HTTPHosts, host, where, fmt.Sprintf("%s %q grants the host %q", kind, name, host),
				"use a host of ceiling.http_hosts, or ask the operator to add this one")
			if reaches {
				c.within(c.config.Ceiling.PrivateNetworks, host, private, fmt.Sprintf("%s %q grants the host %q in private networks", kind, name, host),
					"remove private_networks, or ask the operator to add the host to ceiling.private_networks")
			}
		}
	}
}
