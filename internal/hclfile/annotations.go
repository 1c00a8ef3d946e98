package hclfile

import (
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
)

// The roles of a conversation, in audiences and in messages.
const (
	User      = "user"
	Assistant = "assistant"
)

// annotationsOf decodes the annotations block in body, nil when there is none.
func (d *decoder) annotationsOf(body *hclsyntax.Body) *Annotations {
	b := first(body, "annotations")
	if b == nil {
		return nil
	}
	d.check(b.Body, rules["annotations"], "an annotations block", b.DefRange())
	a := &Annotations{}
	list, _ := d.strings(b.Body, "audience")
	taken := named{}
	for _, e := range list {
		switch e.text {
		case User, Assistant:
			d.claimName(taken, e.text, e.where, "%q stands twice in \"audience\"", e.text)
		default:
			d.fail("bad-value", d.f.rng(e.where), d.eval.show(e.text)+" is no audience", orList(diag.DidYouMean(e.text, []string{User, Assistant}), "the audiences are", []string{User, Assistant}))
		}
	}
	a.Audience = textsOf(list)
	if v, ok := d.typed(b.Body, "priority", numberKind); ok {
		n, _ := v.AsBigFloat().Float64()
		if n < 0 || n > 1 {
			d.fail("bad-value", d.f.rng(b.Body.Attributes["priority"].Expr.Range()), "\"priority\" must lie from 0 to 1", "write 1 for what must not be left out, 0 for what may")
		}
		a.Priority = &n
	}
	return a
}
