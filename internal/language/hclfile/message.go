package hclfile

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
)

// message decodes a message block of a prompt whose arguments have the names.
func (d *decoder) message(b *hclsyntax.Block, names []string) Message {
	r := rules["message"]
	d.checkBody(b)
	m := Message{Role: b.Labels[0], Annotations: d.annotationsOf(b.Body), Range: d.f.rng(b.DefRange())}
	d.role(b)
	forms := []string{"text", "file", "image", "audio", "resource", "link"}
	switch from := d.exactlyOne(b, r, "the message holds nothing", forms...); from {
	case "text":
		m.Text = d.phrase(b.Body, "text", "argument", names)
	case "file":
		m.Text = d.textFile(b.Body)
	}
	for _, inner := range blocks(b.Body, r) {
		switch inner.Type {
		case Image, Audio:
			m.Media = d.media(inner)
		case "resource":
			m.Resource = d.embedded(inner, r.block("resource"), names)
		case "link":
			m.Link = d.link(inner, names)
		}
	}
	return m
}

func (d *decoder) role(b *hclsyntax.Block) {
	roles := []string{User, Assistant}
	if slices.Contains(roles, b.Labels[0]) {
		return
	}
	detail := diag.DidYouMean(b.Labels[0], roles)
	if b.Labels[0] == "system" {
		detail = "prompts have no system messages; begin with one of the user"
	}
	d.fail("bad-value", d.f.rng(b.LabelRanges[0]), fmt.Sprintf("%q is no role", clip(b.Labels[0])), orList(detail, "the roles are", roles))
}

// textFile decodes "file" of a message: text that is inserted nothing into.
func (d *decoder) textFile(body *hclsyntax.Body) Phrase {
	name, content, ok := d.file(body, "file")
	if !ok {
		return nil
	}
	if mimeType := typeOfFile(name, content); !isText(content) || !isTextual(mimeType) {
		kind, _, _ := strings.Cut(mimeType, "/")
		if kind != Image && kind != Audio {
			kind = "resource"
		}
		d.fail("bad-value", d.f.rng(body.Attributes["file"].Expr.Range()), "the file of this message is not text", fmt.Sprintf("write %s { file = … }", kind))
		return nil
	}
	return Phrase{{Text: string(content)}}
}

// media decodes an image or audio block, nil when it was reported.
func (d *decoder) media(b *hclsyntax.Block) *Media {
	d.checkBody(b)
	from := d.exactlyOne(b, rules[b.Type], "the "+b.Type+" holds nothing", "file", "base64")
	if from == "" {
		return nil
	}
	c := d.stored(b.Body, from)
	if c == nil {
		return nil
	}
	c.Binary = true
	if !strings.HasPrefix(strings.ToLower(c.MIMEType), b.Type+"/") {
		where, detail := b.DefRange(), fmt.Sprintf("write mime_type = \"%s/…\"", b.Type)
		if attr := b.Body.Attributes["mime_type"]; attr != nil {
			where = attr.Expr.Range()
		}
		d.fail("bad-value", d.f.rng(where), fmt.Sprintf("the type of the %s is %s", b.Type, clip(c.MIMEType)), detail)
	}
	return &Media{Kind: b.Type, Content: *c}
}

// embedded decodes a resource block in a message.
func (d *decoder) embedded(b *hclsyntax.Block, r *rule, names []string) *Embedded {
	d.check(b.Body, r, "a resource block in a message", b.DefRange())
	e := &Embedded{URI: d.uriPhrase(b.Body, names)}
	switch from := d.exactlyOne(b, r, "the resource holds nothing", "text", "base64", "file"); from {
	case "":
	case "text":
		e.Text = d.phrase(b.Body, "text", "argument", names)
		if e.MIMEType = d.mimeType(b.Body, "mime_type"); e.MIMEType == "" {
			e.MIMEType = plainType
		}
	default:
		if e.Content = d.stored(b.Body, from); e.Content != nil {
			e.MIMEType = e.Content.MIMEType
		}
	}
	return e
}

func (d *decoder) link(b *hclsyntax.Block, names []string) *Link {
	d.checkBody(b)
	l := &Link{
		URI: d.uriPhrase(b.Body, names), Name: d.phrase(b.Body, "name", "argument", names),
		Title: d.phrase(b.Body, "title", "argument", names), Description: d.phrase(b.Body, "description", "argument", names),
		MIMEType: d.mimeType(b.Body, "mime_type"),
	}
	if n, ok := d.whole(b.Body, "size", 0, math.MaxInt32); ok {
		size := int64(n)
		l.Size = &size
	}
	return l
}

// uriPhrase decodes "uri" with names in it. What has none is checked as a URI.
func (d *decoder) uriPhrase(body *hclsyntax.Body, names []string) Phrase {
	p := d.phrase(body, "uri", "argument", names)
	if p == nil || slices.ContainsFunc(p, func(piece Piece) bool { return piece.Name != "" }) {
		return p
	}
	if problem, detail := checkURI(p.Fill(nil)); problem != "" {
		d.fail("bad-uri", d.f.rng(body.Attributes["uri"].Expr.Range()), problem, detail)
	}
	return p
}
