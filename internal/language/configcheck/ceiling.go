package configcheck

import (
	"fmt"
	"slices"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/internal/language/hclfile"
)

// ceiling checks the grants of a definition in a tool file against what the
// operator allows at most.
func (c *checker) ceiling(kind, name string, granted grant.Set, ranges map[string]diag.Range) {
	ceiling := c.config.Ceiling
	if ceiling == nil {
		return
	}
	c.httpCeiling(kind, name, granted, ranges)
	for _, module := range granted.Modules {
		if where, written := ranges["modules."+module.Name]; written {
			c.within(ceiling.Modules, module.Name, where, fmt.Sprintf("%s %q grants the module %q", kind, name, module.Name), "remove it, or ask the operator to add it to ceiling.modules")
		}
	}
	c.kvCeiling(kind, name, granted, ranges)
	c.sqlCeiling(kind, name, granted, ranges)
	for _, asked := range granted.Ask.Names() {
		where, written := ranges["ask."+asked]
		if !written {
			continue // whoever decoded the file has told
		}
		c.within(ceiling.Ask, asked, where, fmt.Sprintf("%s %q grants %q", kind, name, asked), "remove it, or ask the operator to add it to ceiling.ask")
	}
}

// bounds checks what a definition in a tool file writes of its calls against what
// the operator allows at most. What is not written is never more than that.
func (c *checker) bounds(kind, name string, b hclfile.Bounds) {
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
		c.report(diag.Diagnostic{
			Code: "over-ceiling", Range: where, Summary: fmt.Sprintf("%s %q has more %s than the operator's ceiling allows", kind, name, bound.name),
			Detail: "write at most what the ceiling says, or ask the operator to raise it",
			Notes:  []diag.Note{{Range: ceiling.Ranges[bound.name], Message: "the ceiling"}},
		})
	}
}

// hookCeiling checks a hook in a tool file.
func (c *checker) hookCeiling(h *hclfile.Hook) {
	c.ceiling("hook", h.Name, h.Grant, h.GrantRanges)
	if h.TimeoutRange != (diag.Range{}) {
		c.bounds("hook", h.Name, hclfile.Bounds{Timeout: h.Timeout, Ranges: map[string]diag.Range{"timeout": h.TimeoutRange}})
	}
}

// within reports what no name of a list covers. A ceiling without the list
// bounds nothing; one whose list is empty allows nothing.
func (c *checker) within(list []hclfile.Name, granted string, where diag.Range, summary, detail string) {
	if list == nil || slices.ContainsFunc(list, func(n hclfile.Name) bool { return n.Matches(granted) }) {
		return
	}
	c.report(diag.Diagnostic{
		Code: "over-ceiling", Range: where, Summary: summary + ", which the operator's ceiling does not allow", Detail: detail,
		Notes: []diag.Note{{Range: c.config.Ceiling.Range, Message: "the ceiling"}},
	})
}

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

// kvCeiling checks with whom a definition in a tool file shares values.
func (c *checker) kvCeiling(kind, name string, granted grant.Set, ranges map[string]diag.Range) {
	for _, kv := range granted.KV {
		where, written := ranges["kv."+kv.Name+".scope"]
		if !written {
			continue // whoever decoded the file has told
		}
		c.within(c.config.Ceiling.KV, kv.Scope, where, fmt.Sprintf("%s %q keeps values in the scope %q", kind, name, kv.Scope),
			"use a scope of ceiling.kv, or ask the operator to add this one")
	}
}

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
