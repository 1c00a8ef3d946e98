package hclfile

import (
	"encoding/base64"
	"math"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// resource decodes a resource block.
func (d *decoder) resource(b *hclsyntax.Block) Resource {
	at, nameAt := d.definition(b, "the resource")
	r := Resource{
		Name: b.Labels[0], Range: at, NameRange: nameAt,
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
		r.Run, r.MIMEType = d.run(b), d.mimeType(b.Body, "mime_type")
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

// stored decodes the content that the argument with a name gives: "text",
// "base64" or "file". It returns nil when it reported a mistake.
func (d *decoder) stored(body *hclsyntax.Body, from string) *Content {
	c := &Content{MIMEType: d.mimeType(body, "mime_type")}
	ok := false
	switch from {
	case "text":
		var text string
		text, ok = d.text(body, "text")
		c.Bytes = []byte(text)
	case "base64":
		c.Bytes, ok = d.base64(body, "base64")
		c.Binary = true
	case "file":
		c.Path, c.Bytes, ok = d.file(body, "file")
		c.settle()
	}
	if !ok {
		return nil
	}
	if c.MIMEType == "" {
		c.MIMEType = plainType
		if c.Binary {
			c.MIMEType = binaryType
		}
	}
	return c
}

// settle says what the content of a file is sent as.
func (c *Content) settle() {
	if c.MIMEType == "" {
		c.MIMEType = typeOfFile(c.Path, c.Bytes)
	}
	c.Binary = !isText(c.Bytes) || !isTextual(c.MIMEType)
}

// base64 decodes bytes in standard base64, which may be broken into lines.
func (d *decoder) base64(body *hclsyntax.Body, name string) ([]byte, bool) {
	s, ok := d.text(body, name)
	if !ok {
		return nil, false
	}
	content, err := base64.StdEncoding.DecodeString(strings.NewReplacer(" ", "", "\t", "", "\r", "", "\n", "").Replace(s))
	if err != nil {
		d.fail("bad-value", d.f.rng(body.Attributes[name].Expr.Range()), "this is not base64", "encode the bytes in standard base64 with padding, or name their file in \"file\"")
		return nil, false
	}
	return content, true
}

// file reads the file whose path an argument gives, relative to the folder of
// the file that it stands in. The file may hold anything.
func (d *decoder) file(body *hclsyntax.Body, name string) (path string, content []byte, ok bool) {
	attr := body.Attributes[name]
	if call, ok := attr.Expr.(*hclsyntax.FunctionCallExpr); ok && call.Name == "file" {
		d.fail("wrong-type", d.f.rng(attr.Expr.Range()), "\"file\" is the path of a file, not its text", "write the path alone: file = \"x.md\"")
		return "", nil, false
	}
	written, ok := d.text(body, name)
	if !ok {
		return "", nil, false
	}
	return d.eval.readFile(written, attr.Expr.Range())
}
