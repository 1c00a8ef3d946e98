package hclfile

import (
	"fmt"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// maxSuggested is how many values a file may list for completion.
const maxSuggested = 1000

// Complete says how a value that is being typed is completed. Exactly one of
// Values and Run is set.
type Complete struct {
	Values []string
	Run    *Body
}

// complete decodes a complete block, nil when it was reported.
func (d *decoder) complete(b *hclsyntax.Block) *Complete {
	d.check(b.Body, rules["complete"], "a complete block", b.DefRange())
	c := &Complete{}
	switch d.exactlyOne(b, rules["complete"], "the completion offers nothing", "values", "run") {
	case "run":
		c.Run = d.run(b.Body)
	case "values":
		c.Values = d.suggested(b.Body)
	}
	if c.Run == nil && c.Values == nil {
		return nil
	}
	return c
}

// suggested decodes the list of values that a completion offers.
func (d *decoder) suggested(body *hclsyntax.Body) []string {
	list, ok := d.strings(body, "values")
	if attr := body.Attributes["values"]; ok && (len(list) == 0 || len(list) > maxSuggested) {
		d.fail("bad-value", d.f.rng(attr.Expr.Range()), fmt.Sprintf("\"values\" holds %s", count(len(list), "value")), fmt.Sprintf("list 1 to %d of them, or compute them with run", maxSuggested))
		return nil
	}
	taken := named{}
	for _, e := range list {
		d.claimName(taken, e.text, e.where, "the value %s stands twice in \"values\"", d.eval.show(e.text))
	}
	return textsOf(list)
}
