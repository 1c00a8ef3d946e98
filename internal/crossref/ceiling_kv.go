package crossref

import (
	"fmt"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/grant"
)

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
