package configcheck

import (
	"fmt"
	"slices"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/grant"
)

// checkCeiling checks the grants of a definition in a tool file against the ceiling.
func (c *checker) checkCeiling(kind, name string, granted *grant.Set, ranges map[string]diag.Range) {
	ceiling := c.config.Ceiling
	if ceiling == nil {
		return
	}
	// A value without a range already has an error of the decoder.
	bound := func(key string, list []definition.Name, value, grants, detail string) {
		if where, written := ranges[key]; written {
			c.checkWithin(list, value, where, fmt.Sprintf("%s %q %s %q", kind, name, grants, value), detail)
		}
	}
	for _, http := range granted.HTTP {
		private, reaches := ranges["http."+http.Name+".private_networks"]
		for i, host := range http.Hosts {
			grants := fmt.Sprintf("%s %q grants the host %q", kind, name, host)
			c.checkWithin(ceiling.HTTPHosts, host, ranges[fmt.Sprintf("http.%s.hosts.%d", http.Name, i)], grants,
				"use a host of ceiling.http_hosts, or ask the operator to add this one")
			if reaches {
				c.checkWithin(ceiling.PrivateNetworks, host, private, grants+" in private networks",
					"remove private_networks, or ask the operator to add the host to ceiling.private_networks")
			}
		}
	}
	for _, module := range granted.Modules {
		bound("modules."+module.Name, ceiling.Modules, module.Name, "grants the module", "remove it, or ask the operator to add it to ceiling.modules")
	}
	for _, kv := range granted.KV {
		bound("kv."+kv.Name+".scope", ceiling.KV, kv.Scope, "stores values in the scope", "use a scope of ceiling.kv, or ask the operator to add this one")
	}
	for _, g := range granted.SQL {
		bound("sql."+g.Name+".driver", ceiling.SQLDrivers, g.Driver, "grants a database of the driver",
			"use a driver of ceiling.sql_drivers, or ask the operator to add this one")
		if g.Address != "" {
			bound("sql."+g.Name+".address", ceiling.SQLHosts, g.Address, "grants a database at",
				"use a host of ceiling.sql_hosts, or a dsn that is one secret, or ask the operator to add this one")
		}
	}
	for _, asked := range granted.Ask.Names() {
		bound("ask."+asked, ceiling.Ask, asked, "grants", "remove it, or ask the operator to add it to ceiling.ask")
	}
}

// checkBounds checks the limits of a definition in a tool file against the ceiling. The default
// limits never exceed it.
func (c *checker) checkBounds(kind, name string, b definition.Bounds) {
	ceiling := c.config.Ceiling
	if ceiling == nil {
		return
	}
	for _, bound := range []struct {
		name       string
		given, max int64
	}{
		{"timeout", int64(b.Timeout), int64(ceiling.Timeout)}, {"memory", b.Memory, ceiling.Memory},
		{"output", b.Output, ceiling.Output}, {"concurrency", int64(b.Concurrency), int64(ceiling.Concurrency)},
	} {
		where, written := b.Ranges[bound.name]
		if !written || bound.max == 0 || bound.given <= bound.max {
			continue
		}
		c.fail("over-ceiling", where, fmt.Sprintf("%s %q has more %s than the ceiling allows", kind, name, bound.name),
			"lower it to the ceiling, or ask the operator to raise the ceiling", diag.Note{Range: ceiling.Ranges[bound.name], Message: "the ceiling"})
	}
}

// hookCeiling checks a hook in a tool file.
func (c *checker) hookCeiling(h *definition.Hook) {
	c.checkCeiling("hook", h.Name, &h.Grant, h.GrantRanges)
	if h.TimeoutRange != (diag.Range{}) {
		c.checkBounds("hook", h.Name, definition.Bounds{Timeout: h.Timeout, Ranges: map[string]diag.Range{"timeout": h.TimeoutRange}})
	}
}

// checkWithin reports a value that no name of a list covers. A nil list means no limit; an
// empty list allows nothing.
func (c *checker) checkWithin(list []definition.Name, granted string, where diag.Range, summary, detail string) {
	if list == nil || slices.ContainsFunc(list, func(n definition.Name) bool { return n.Matches(granted) }) {
		return
	}
	c.fail("over-ceiling", where, summary+", which the ceiling does not allow", detail, diag.Note{Range: c.config.Ceiling.Range, Message: "the ceiling"})
}
