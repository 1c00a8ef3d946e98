package hclfile

import (
	"encoding/json"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/grant"
)

// module decodes a module block, whose arguments are the module's to judge. It
// notes the place of the block as "modules.NAME", unless one of them was reported.
func (d *decoder) module(b *hclsyntax.Block, ranges map[string]diag.Range) grant.Module {
	d.checkBody(b)
	g := grant.Module{Name: b.Labels[0]}
	options := make(map[string]json.RawMessage, len(b.Body.Attributes))
	for name, attr := range b.Body.Attributes {
		if value := d.json(b.Body, name); !d.computed(attr) && value != nil {
			options[name] = value
		}
	}
	if len(options) == len(b.Body.Attributes) {
		ranges["modules."+g.Name] = d.f.rng(b.DefRange())
	}
	// What was encoded before encodes again.
	g.Options, _ = json.Marshal(options)
	return g
}

// ceilingModules decodes the modules that may be granted, nil when the ceiling
// does not say.
func (d *decoder) ceilingModules(body *hclsyntax.Body) []Name {
	return d.ceilingList(body, "modules", func(e element) (string, bool) {
		ok := isIdentifier(strings.ReplaceAll(e.text, "*", "x"))
		if !ok {
			d.fail("bad-grant", d.f.rng(e.where), d.eval.show(e.text)+" is not the name of a module", "use letters, digits, _ and *, such as \"ledger\"")
		}
		return e.text, ok
	})
}
