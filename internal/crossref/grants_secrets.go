package crossref

import (
	"fmt"
	"slices"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/grant"
	"github.com/mcpd/mcpd/internal/hclfile"
)

// revealed judges the secrets that one definition may read: the operator must
// have said of each that it may be read at all.
func (c *machine) revealed(what string, granted grant.Set, ranges map[string]diag.Range) {
	for _, name := range granted.Secrets {
		where, written := ranges["secrets."+name]
		i := slices.IndexFunc(c.config.Secrets, func(s hclfile.Secret) bool { return s.Name == name })
		if !written || i < 0 || c.config.Secrets[i].Reveal || c.config.Secrets[i].Range == (diag.Range{}) {
			continue // whoever decoded the files has told
		}
		c.report(diag.Diagnostic{
			Code: "over-ceiling", Range: where, Summary: fmt.Sprintf("%s is granted to read the secret %q, which the operator does not reveal", what, name),
			Detail: "use it in the header of a grant, or ask the operator to write reveal = true in its block",
			Notes:  []diag.Note{{Range: c.config.Secrets[i].Range, Message: "the secret"}},
		})
	}
}
