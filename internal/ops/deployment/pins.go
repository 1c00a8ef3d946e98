package deployment

import (
	"fmt"
	"slices"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/federation/lockfile"
	"github.com/mcpd/mcpd/internal/language/hclfile"
	"github.com/mcpd/mcpd/internal/language/privdiff"
)

// Unaccepted warns of upstreams that are pinned and that a lock does not know. What is
// deployed cannot write the file: what it takes in there lasts until it ends.
func Unaccepted(said privdiff.Side, lock *lockfile.Lock) (warnings diag.List) {
	known := lock.Upstreams()
	for i := range said.Config.Upstreams {
		u := &said.Config.Upstreams[i]
		if u.Pin == hclfile.PinOff || !u.Offers(hclfile.OfferTools) || slices.Contains(known, u.Name) {
			continue
		}
		until := "until then each start trusts what it lists first"
		if u.Pin == hclfile.PinStrict {
			until = "until then it has no tools"
		}
		warnings = append(warnings, diag.Diagnostic{
			Severity: diag.Warning, Code: "not-accepted", Range: u.NameRange,
			Summary: fmt.Sprintf("nobody has accepted what the upstream %q lists", u.Name),
			Detail:  "run mcpd lock accept where it can be reached, commit mcpd.lock, and run mcpd compose again: " + until,
		})
	}
	return warnings
}
