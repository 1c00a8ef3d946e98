package crossref

import (
	"fmt"
	"slices"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/grant"
	"github.com/mcpd/mcpd/internal/hclfile"
)

// domains judges the patterns of hosts that one definition is granted.
func (c *machine) domains(what string, granted grant.Set, ranges map[string]diag.Range) {
	for _, g := range granted.HTTP {
		for i, host := range g.Hosts {
			where, written := ranges[fmt.Sprintf("http.%s.hosts.%d", g.Name, i)]
			domain := grant.OpenDomain(host)
			if !written || domain == "" || c.isNamedHost(host) {
				continue
			}
			c.report(diag.Diagnostic{
				Code: "bad-grant", Range: where, Summary: fmt.Sprintf("%s is granted every host below %s, where anyone can have one", what, domain),
				Detail: `name the hosts, or a domain that has one owner, as in "*.example.com:443"; what is meant as it is, the operator names in ceiling.http_hosts`,
			})
		}
	}
}

// noCeiling reports whether the ceiling is not known, since the config could not
// be parsed as a whole. It may name anything then.
func (c *machine) noCeiling() bool { return c.config.Ceiling == nil && c.config.Incomplete }

// isNamedHost reports whether the ceiling names just these hosts.
func (c *machine) isNamedHost(host string) bool {
	return c.noCeiling() || c.config.Ceiling != nil && slices.ContainsFunc(c.config.Ceiling.HTTPHosts, func(n hclfile.Name) bool { return n.Text == host })
}
