package hclfile

import (
	"encoding/base64"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

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
