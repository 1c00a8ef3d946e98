package hclfile

import (
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
)

// env decodes an env block. It notes the place of the block as "env", and of
// each name as "env.NAME".
func (d *decoder) env(b *hclsyntax.Block, ranges map[string]diag.Range) []string {
	return d.grantNames(b, ranges, "name at least one variable of the environment, such as \"LANG\"", func(e element) bool {
		switch {
		case strings.Contains(e.text, "*"):
			d.fail("bad-grant", d.f.rng(e.where), "a grant names each variable of the environment", "write the names out")
		case !isIdentifier(e.text):
			d.fail("bad-grant", d.f.rng(e.where), d.eval.show(e.text)+" is not the name of a variable", "use letters, digits and _, and no digit first, such as \"LANG\"")
		case strings.HasPrefix(strings.ToLower(e.text), strings.ToLower(envPrefix)):
			d.fail("bad-grant", d.f.rng(e.where), e.text+" gives a value to a variable block", "read it as vars.NAME")
		default:
			return true
		}
		return false
	})
}

// grantNames decodes a block of a grant that is a list of names, each of which
// accept reports or lets pass. It notes the place of the block as its type, and
// of each name as "TYPE.NAME".
func (d *decoder) grantNames(b *hclsyntax.Block, ranges map[string]diag.Range, whenEmpty string, accept func(element) bool) []string {
	r := rules[b.Type]
	d.checkBody(b)
	ranges[b.Type] = d.f.rng(b.DefRange())
	taken := named{}
	var names []string
	for _, e := range d.grantList(d.literalOnly(b.Body, r), "names", whenEmpty) {
		if accept(e) && d.claimName(taken, e.text, e.where, "%q stands twice in \"names\"", e.text) {
			names = append(names, e.text)
			ranges[b.Type+"."+e.text] = d.f.rng(e.where)
		}
	}
	return names
}

// ceilingEnv decodes the variables that may be granted, nil when the ceiling
// does not say.
func (d *decoder) ceilingEnv(body *hclsyntax.Body) []Name {
	return d.ceilingList(body, "env", func(e element) (string, bool) {
		ok := isIdentifier(strings.ReplaceAll(e.text, "*", "x"))
		if !ok {
			d.fail("bad-grant", d.f.rng(e.where), d.eval.show(e.text)+" is not the name of a variable", "use letters, digits, _ and *, such as \"APP_*\"")
		}
		return e.text, ok
	})
}

// revealed decodes a secrets block: which secrets a script may read. Whether the
// operator lets them be read is for package crossref to say.
func (d *decoder) revealed(b *hclsyntax.Block, ranges map[string]diag.Range) []string {
	return d.grantNames(b, ranges, "name at least one secret that the script may read", func(e element) bool {
		_, ok := d.secret(e.text, e.where)
		return ok
	})
}
