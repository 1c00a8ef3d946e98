package hclfile

import (
	"math"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// resource decodes a resource block.
func (d *decoder) resource(b *hclsyntax.Block) Resource {
	d.checkName("the resource", b.Labels[0], b.LabelRanges[0])
	d.check(b.Body, rules["resource"], "a resource block", b.DefRange())
	d.begin(b)
	r := Resource{
		Name: b.Labels[0], Range: d.f.rng(blockRange(b)), NameRange: d.f.rng(b.LabelRanges[0]),
		Annotations: d.annotationsOf(b.Body), Icons: d.icons(b.Body, rules["resource"]), Call: d.call(b),
	}
	r.Title, _ = d.text(b.Body, "title")
	r.Description, _ = d.text(b.Body, "description")
	if attr := b.Body.Attributes["uri"]; attr != nil {
		r.URI, _ = d.uri(b.Body, "uri")
		r.URIRange = d.f.rng(attr.Expr.Range())
	}
	d.contents(b, &r)
	r.Hashes = d.hashes()
	return r
}

// contents decodes what a resource holds.
func (d *decoder) contents(b *hclsyntax.Block, r *Resource) {
	switch from := d.exactlyOne(b, rules["resource"], "the resource holds nothing", "text", "base64", "file", "run"); from {
	case "":
	case "run":
		r.Run, r.MIMEType = d.run(b.Body), d.mimeType(b.Body, "mime_type")
		if n, ok := d.whole(b.Body, "size", 0, math.MaxInt32); ok {
			size := int64(n)
			r.Size = &size
		}
	default:
		d.idle(b)
		if attr := b.Body.Attributes["size"]; attr != nil {
			d.fail("contradiction", d.f.rng(attr.NameRange), "the size of what stands in the files is known", "remove it")
		}
		if r.Content = d.stored(b.Body, from); r.Content != nil {
			size := int64(len(r.Content.Bytes))
			r.MIMEType, r.Size = r.Content.MIMEType, &size
		}
	}
}
