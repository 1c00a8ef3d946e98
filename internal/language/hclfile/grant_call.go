package hclfile

import (
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
)

// tools decodes a call block: the names and patterns of the tools that may be
// called. It notes the place of each as "tools.NAME".
func (d *decoder) tools(b *hclsyntax.Block, ranges map[string]diag.Range) []string {
	r := rules["call"]
	d.checkBody(b)
	body := d.literalOnly(b.Body, r)
	ranges["call"] = d.f.rng(b.DefRange())
	taken := named{}
	var names []string
	list := d.grantList(body, "tools", "name at least one tool, or a pattern such as \"crm_*\"")
	for _, e := range list {
		switch {
		case !isPattern(e.text):
			d.fail("bad-name", d.f.rng(e.where), "this is not the name of a tool", patternCharacters)
		case d.claimName(taken, e.text, e.where, "%q stands twice in \"tools\"", e.text):
			names = append(names, e.text)
			ranges["tools."+e.text] = d.f.rng(e.where)
		}
	}
	if len(names) == 0 || len(names) < len(list) {
		return append(names, "*") // nothing is told of calls that what was reported may grant
	}
	return names
}
