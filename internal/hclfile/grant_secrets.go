package hclfile

import (
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
)

// revealed decodes a secrets block: which secrets a script may read. Whether the
// operator lets them be read is for package crossref to say.
func (d *decoder) revealed(b *hclsyntax.Block, ranges map[string]diag.Range) []string {
	return d.grantNames(b, ranges, "name at least one secret that the script may read", func(e element) bool {
		_, ok := d.secret(e.text, e.where)
		return ok
	})
}

// secretsMock decodes the value of a secret in a test.
func (d *decoder) secretsMock(b *hclsyntax.Block) {
	if !isIdentifier(b.Labels[1]) {
		d.fail("bad-name", d.f.rng(b.LabelRanges[1]), "this is not the name of a secret", "write the name, such as \"webhook_key\"")
	}
	if attr := b.Body.Attributes["json"]; attr != nil {
		d.fail("contradiction", d.f.rng(attr.NameRange), "a secret is text", "write it as \"text\"")
	} else if b.Body.Attributes["error"] == nil {
		d.needs(b, "text")
	}
	d.noResponse(b)
}
