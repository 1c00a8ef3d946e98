package scripting

import (
	"slices"

	"github.com/mcpd/mcpd/diag"
)

// checkGroups tells calls of a group of tools as if it were one.
func (c *compilation) checkGroups(found *analysis) {
	if c.src.Kind != Code {
		return
	}
	for _, call := range found.grouped {
		group := c.sourceOf(call.Callee)
		if _, free := found.free(group); !free || found.assigned[group] {
			continue
		}
		written := group + ".NAME"
		if in := c.names().in(group); group != "tools" && (len(in) == 1 || slices.Contains(in, group)) {
			written = c.names().written(group, in[max(0, slices.Index(in, group))])
		}
		c.report(diag.Diagnostic{
			Severity: diag.Error, Code: "unknown-tool", Summary: group + " is a group of tools, and none of them", Detail: "write await " + written + "({ … })",
		}, call.Callee.Idx0(), call.Callee.Idx1())
	}
}
