package hclfile

import (
	"fmt"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
)

// prompt decodes a prompt block.
func (d *decoder) prompt(b *hclsyntax.Block) Prompt {
	r := rules["prompt"]
	at, nameAt := d.definition(b, "the prompt")
	p := Prompt{
		Name: b.Labels[0], Range: at, NameRange: nameAt,
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
	if d.exactlyOne(b, r, "the prompt says nothing", "message", "run") == "run" {
		p.Run = d.run(b)
	} else if !computed {
		d.idle(b)
	}
	for _, inner := range blocks(b.Body, r) {
		if inner.Type == "message" {
			p.Messages = append(p.Messages, d.message(inner, names))
		}
	}
	d.promptSize(&p)
	p.Hashes = d.hashes()
	return p
}

// promptSize reports messages that are too long whatever the arguments are.
func (d *decoder) promptSize(p *Prompt) {
	size := 0
	for i := range p.Messages {
		if size += p.Messages[i].Len(nil); size > MaxFilled {
			d.fail("too-large", p.Messages[i].Range, fmt.Sprintf("with this message the prompt holds more than %d MiB", MaxFilled>>20),
				"link to large content: link { uri = …, name = … }")
			return
		}
	}
}

// promptArguments decodes the arguments of a prompt. It returns their names,
// and whether a body completes one of them.
func (d *decoder) promptArguments(b *hclsyntax.Block, r *rule, p *Prompt) (names []string, computed bool) {
	taken := named{}
	for _, inner := range blocks(b.Body, r) {
		if inner.Type != "argument" {
			continue
		}
		single := d.claim(taken, inner)
		a := d.promptArgument(inner)
		if single {
			p.Arguments, names = append(p.Arguments, a), append(names, a.Name)
		}
		computed = computed || a.Complete != nil && a.Complete.Run != nil
	}
	return names, computed
}

func (d *decoder) promptArgument(b *hclsyntax.Block) Argument {
	r := rules["argument"]
	d.checkIdentifier("the argument", b.Labels[0], b.LabelRanges[0])
	d.checkBody(b)
	a := Argument{Name: b.Labels[0], Range: d.f.rng(b.DefRange())}
	a.Title, _ = d.text(b.Body, "title")
	a.Description, _ = d.text(b.Body, "description")
	a.Required, _ = d.boolean(b.Body, "required", false)
	values := b.Body.Attributes["values"]
	if values != nil {
		a.Complete = &Complete{Values: d.suggested(b.Body)}
	}
	if inner := blocks(b.Body, r); len(inner) > 0 {
		a.Complete = d.complete(inner[0])
		if values != nil {
			d.fail("contradiction", d.f.rng(inner[0].TypeRange), "the argument has both \"values\" and a complete block", "keep one of the two",
				diag.Note{Range: d.f.rng(values.NameRange), Message: "\"values\" stands here"})
		}
	}
	return a
}
