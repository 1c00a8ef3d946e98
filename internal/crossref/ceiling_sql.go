package crossref

import (
	"fmt"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/grant"
)

// sqlCeiling checks of which databases a definition in a tool file runs statements.
func (c *checker) sqlCeiling(kind, name string, granted grant.Set, ranges map[string]diag.Range) {
	ceiling := c.config.Ceiling
	for _, g := range granted.SQL {
		if where, written := ranges["sql."+g.Name+".driver"]; written {
			c.within(ceiling.SQLDrivers, g.Driver, where, fmt.Sprintf("%s %q grants a database of the driver %q", kind, name, g.Driver),
				"use a driver of ceiling.sql_drivers, or ask the operator to add this one")
		}
		if where, written := ranges["sql."+g.Name+".address"]; written && g.Address != "" {
			c.within(ceiling.SQLHosts, g.Address, where, fmt.Sprintf("%s %q grants a database at %q", kind, name, g.Address),
				"use a host of ceiling.sql_hosts, or a dsn that is one secret, or ask the operator to add this one")
		}
	}
}
