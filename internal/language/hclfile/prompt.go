package hclfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
)

func (d *decoder) prompt(b *hclsyntax.Block) definition.Prompt {
	r := rules["prompt"]
	nameAt := d.definition(b, "the prompt")
	p := definition.Prompt{
		Name: b.Labels[0], NameRange: nameAt,
		Icons: d.icons(b.Body, r), Call: d.call(b),
	}
	p.Title, _ = d.text(b.Body, "title")
	p.Description, _ = d.text(b.Body, "description")
	names, computed := d.promptArguments(b, r, &p)
	for _, inner := range b.Body.Blocks {
		if !r.hasBlock(inner.Type) { // it is reported, and may be an argument
			names = append(names, inner.Labels...)
		}
	}
	if d.exactlyOne(b, r, "the prompt has no messages", "message", "run") == "run" {
		p.Run = d.run(b)
	} else if !computed {
		d.checkUnusedGrant(b)
	}
	for _, inner := range ofType(blocks(b.Body, r), "message") {
		p.Messages = append(p.Messages, d.message(inner, names))
	}
	d.promptSize(&p)
	p.Hashes = d.hashes()
	return p
}

// promptSize reports messages that are too long for any arguments.
func (d *decoder) promptSize(p *definition.Prompt) {
	size := 0
	for i := range p.Messages {
		if size += p.Messages[i].Len(nil); size > definition.MaxRendered {
			d.fail("too-large", p.Messages[i].Range, fmt.Sprintf("with this message, the prompt is larger than %d MiB", definition.MaxRendered>>20),
				"link to large content: link { uri = …, name = … }")
			return
		}
	}
}

// promptArguments decodes the arguments of a prompt. It returns their names, and whether a
// script completes one of them.
func (d *decoder) promptArguments(b *hclsyntax.Block, r *rule, p *definition.Prompt) (names []string, computed bool) {
	taken := declaredNames{}
	for _, inner := range ofType(blocks(b.Body, r), "argument") {
		single := d.declare(taken, inner)
		a := d.promptArgument(inner)
		if single {
			p.Arguments, names = append(p.Arguments, a), append(names, a.Name)
		}
		computed = computed || a.Complete != nil && a.Complete.Run != nil
	}
	return names, computed
}

func (d *decoder) promptArgument(b *hclsyntax.Block) definition.Argument {
	r := rules["argument"]
	d.checkIdentifier("the argument", b.Labels[0], b.LabelRanges[0])
	d.checkBody(b)
	a := definition.Argument{Name: b.Labels[0]}
	a.Title, _ = d.text(b.Body, "title")
	a.Description, _ = d.text(b.Body, "description")
	a.Required, _ = d.boolean(b.Body, "required", false)
	values := b.Body.Attributes["values"]
	if values != nil {
		a.Complete = &definition.Complete{Values: d.suggested(b.Body)}
	}
	if inner := blocks(b.Body, r); len(inner) > 0 {
		a.Complete = d.complete(inner[0])
		if values != nil {
			d.fail("contradiction", d.f.rng(inner[0].TypeRange), "the argument has both \"values\" and a complete block", "keep one of them",
				diag.Note{Range: d.f.rng(values.NameRange), Message: "\"values\" is set here"})
		}
	}
	return a
}

// message decodes a message block of a prompt with the named arguments.
func (d *decoder) message(b *hclsyntax.Block, names []string) definition.Message {
	r := rules["message"]
	d.checkBody(b)
	m := definition.Message{Role: b.Labels[0], Annotations: d.annotationsOf(b.Body), Range: d.f.rng(b.DefRange())}
	d.role(b)
	forms := []string{"text", "file", "image", "audio", "resource", "link"}
	switch from := d.exactlyOne(b, r, "the message is empty", forms...); from {
	case "text":
		m.Text = d.textTemplate(b.Body, "text", "argument", names)
	case "file":
		m.Text = d.textFile(b.Body)
	}
	for _, inner := range blocks(b.Body, r) {
		switch inner.Type {
		case definition.Image, definition.Audio:
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
	roles := []string{definition.User, definition.Assistant}
	if slices.Contains(roles, b.Labels[0]) {
		return
	}
	detail := diag.DidYouMean(b.Labels[0], roles)
	if b.Labels[0] == "system" {
		detail = "use user: prompts have no system messages"
	}
	d.fail("bad-value", d.f.rng(b.LabelRanges[0]), fmt.Sprintf("%q is not a role", clip(b.Labels[0])), orList(detail, "the roles are", roles))
}

// textFile decodes "file" of a message: text without placeholders.
func (d *decoder) textFile(body *hclsyntax.Body) definition.TextTemplate {
	name, content, ok := d.file(body)
	if !ok {
		return nil
	}
	if mimeType := definition.TypeOfFile(name, content); !definition.IsText(content) || !definition.IsTextual(mimeType) {
		kind, _, _ := strings.Cut(mimeType, "/")
		if kind != definition.Image && kind != definition.Audio {
			kind = "resource"
		}
		d.fail("bad-value", d.f.rng(body.Attributes["file"].Expr.Range()), "the file of this message is not text", fmt.Sprintf("write %s { file = … }", kind))
		return nil
	}
	return definition.TextTemplate{{Text: string(content)}}
}

// media decodes an image or audio block. It returns nil after it has reported an error.
func (d *decoder) media(b *hclsyntax.Block) *definition.Media {
	d.checkBody(b)
	from := d.exactlyOne(b, rules[b.Type], "the "+b.Type+" is empty", "file", "base64")
	if from == "" {
		return nil
	}
	c := d.staticContent(b.Body, from)
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
	return &definition.Media{Kind: b.Type, Content: *c}
}

func (d *decoder) embedded(b *hclsyntax.Block, r *rule, names []string) *definition.Embedded {
	d.check(b.Body, r, "a resource block in a message", b.DefRange())
	e := &definition.Embedded{URI: d.uriText(b.Body, names)}
	switch from := d.exactlyOne(b, r, "the resource is empty", "text", "base64", "file"); from {
	case "":
	case "text":
		e.Text = d.textTemplate(b.Body, "text", "argument", names)
		if e.MIMEType = d.mimeType(b.Body); e.MIMEType == "" {
			e.MIMEType = definition.PlainType
		}
	default:
		if e.Content = d.staticContent(b.Body, from); e.Content != nil {
			e.MIMEType = e.Content.MIMEType
		}
	}
	return e
}

func (d *decoder) link(b *hclsyntax.Block, names []string) *definition.Link {
	d.checkBody(b)
	return &definition.Link{
		URI: d.uriText(b.Body, names), Name: d.textTemplate(b.Body, "name", "argument", names),
		Title: d.textTemplate(b.Body, "title", "argument", names), Description: d.textTemplate(b.Body, "description", "argument", names),
		MIMEType: d.mimeType(b.Body), Size: d.contentSize(b.Body),
	}
}

// uriText decodes "uri" with placeholders. Without placeholders, it must be a valid URI.
func (d *decoder) uriText(body *hclsyntax.Body, names []string) definition.TextTemplate {
	p := d.textTemplate(body, "uri", "argument", names)
	if p == nil || slices.ContainsFunc(p, func(piece definition.TemplatePart) bool { return piece.Name != "" }) {
		return p
	}
	if problem, detail := checkURI(p.Render(nil)); problem != "" {
		d.fail("bad-uri", d.f.rng(body.Attributes["uri"].Expr.Range()), problem, detail)
	}
	return p
}
