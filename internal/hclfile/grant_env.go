package hclfile

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/grant"
)

// env decodes an env block. It notes the place of the block as "env", and of
// each name as "env.NAME".
func (d *decoder) env(b *hclsyntax.Block, ranges map[string]diag.Range) []string {
	r := rules["env"]
	d.check(b.Body, r, "an env block", b.DefRange())
	body := d.literalOnly(b.Body, r)
	ranges["env"] = d.f.rng(b.DefRange())
	taken := named{}
	var names []string
	for _, e := range d.grantList(body, "names", "name at least one variable of the environment, such as \"LANG\"") {
		switch {
		case strings.Contains(e.text, "*"):
			d.fail("bad-grant", d.f.rng(e.where), "a grant names each variable of the environment", "write the names out")
		case !isIdentifier(e.text):
			d.fail("bad-grant", d.f.rng(e.where), d.eval.show(e.text)+" is not the name of a variable", "use letters, digits and _, and no digit first, such as \"LANG\"")
		case d.claimName(taken, e.text, e.where, "%q stands twice in \"names\"", e.text):
			names = append(names, e.text)
			ranges["env."+e.text] = d.f.rng(e.where)
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

// presumeEnv grants the variables that are written out in the names of a block.
func presumeEnv(body *hclsyntax.Body, set *grant.Set) {
	attr := body.Attributes["names"]
	if attr == nil {
		return
	}
	list, _ := attr.Expr.(*hclsyntax.TupleConsExpr)
	if list == nil {
		return
	}
	for _, x := range list.Exprs {
		v, problems := x.Value(nil)
		if !problems.HasErrors() && hasKind(v, stringKind) && !slices.Contains(set.Env, v.AsString()) {
			set.Env = append(set.Env, v.AsString())
		}
	}
}
