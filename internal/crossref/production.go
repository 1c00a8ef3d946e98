package crossref

import (
	"fmt"
	"slices"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/hclfile"
)

// checkProduction refuses what production mode demands and the files lack.
func (c *checker) checkProduction(files []*hclfile.Definitions) {
	policies := slices.Clone(c.config.Policies)
	for _, f := range files {
		policies = append(policies, f.Policies...)
	}
	for _, f := range files {
		for i := range f.Tools {
			tool := &f.Tools[i]
			if !slices.ContainsFunc(policies, func(p hclfile.Policy) bool { return hclfile.Covers(p.Tools, tool.Name) }) {
				c.report(diag.Diagnostic{
					Code: "production-no-policy", Range: tool.NameRange,
					Summary: fmt.Sprintf("no policy covers tool %q, and production mode demands one", tool.Name),
					Detail:  "add a policy block whose tools match it",
				})
			}
			if tool.Output == nil {
				c.report(diag.Diagnostic{
					Code: "production-no-output", Range: tool.NameRange,
					Summary: fmt.Sprintf("tool %q declares no output, and production mode demands one", tool.Name),
					Detail:  "add output blocks for what it returns",
				})
			}
		}
	}
}
