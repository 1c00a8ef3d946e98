package hclfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
)

const (
	openSlot, closeSlot = "{{", "}}"
	// escapedSlot stands for openSlot itself.
	escapedSlot = "{{{{"
)

// phrase decodes an argument that is text with the given names in it, nil when
// it is absent or was reported. what says what the names are of, such as "argument".
func (d *decoder) phrase(body *hclsyntax.Body, name, what string, names []string) Phrase {
	if attr := body.Attributes[name]; attr != nil && d.interpolates(attr.Expr, what, names) {
		return nil
	}
	text, ok := d.text(body, name)
	if !ok {
		return nil
	}
	phrase, bad := Phrase{}, map[string]bool{}
	var literal []byte
	fail := func(slot string, start, end int, code, summary, detail string) {
		if !bad[slot] && len(d.problems) < maxCollected { // placeOf takes time
			d.fail(code, d.placeOf(body.Attributes[name].Expr, text, start, end), summary, detail)
		}
		bad[slot] = true
	}
	for at := 0; at < len(text); {
		open := strings.Index(text[at:], openSlot)
		if open < 0 {
			literal = append(literal, text[at:]...)
			break
		}
		literal = append(literal, text[at:at+open]...)
		start := at + open
		at = start + len(openSlot)
		if strings.HasPrefix(text[start:], escapedSlot) {
			literal = append(literal, openSlot...)
			at = start + len(escapedSlot)
			continue
		}
		inner, _, found := strings.Cut(text[at:min(len(text), at+2*maxName)], closeSlot)
		slot := strings.Trim(inner, " ")
		if !found || !isIdentifier(slot) {
			fail("", start, at, "bad-value", "{{ is not followed by a name and }}", "write {{name}} to insert a value, or {{{{ for two braces")
			continue
		}
		at += len(inner) + len(closeSlot)
		if slices.Contains(names, slot) {
			phrase = append(phrase.withText(literal), Piece{Name: slot})
			literal = literal[:0]
			continue
		}
		detail := d.eval.didYouMean(slot, slices.Values(names))
		if detail == "" && len(names) == 0 {
			detail = fmt.Sprintf("declare it: %s %q {}; or write {{{{ for two braces", what, slot)
		}
		fail(slot, start, at, "unknown-name", fmt.Sprintf("there is no %s %s", what, d.eval.show(slot)), orList(detail, "the "+what+"s are", names))
	}
	if len(bad) > 0 {
		return nil
	}
	return phrase.withText(literal)
}

// withText appends a piece of text, unless it is empty.
func (p Phrase) withText(text []byte) Phrase {
	if len(text) == 0 {
		return p
	}
	return append(p, Piece{Text: string(text)})
}

// interpolates reports a value that is known only when the text is read where
// HCL computes one when the file is loaded.
func (d *decoder) interpolates(x hclsyntax.Expression, what string, names []string) bool {
	for _, traversal := range hclsyntax.Variables(x) {
		last := traversal.RootName()
		if len(traversal) == 2 && slices.Contains([]string{"params", "args", "argument", "input"}, last) {
			if step, ok := traversal[1].(hcl.TraverseAttr); ok {
				last = step.Name
			}
		}
		if slices.Contains(names, last) {
			d.fail("unknown-name", d.f.rng(traversal.SourceRange()), fmt.Sprintf("the %s %q has no value when the file is loaded", what, last),
				fmt.Sprintf("write {{%s}} to insert it when the text is read", last))
			return true
		}
	}
	return false
}

// placeOf returns where a part of a computed text is written, or the place of
// all of it when it is not written out.
func (d *decoder) placeOf(x hclsyntax.Expression, text string, start, end int) diag.Range {
	where := d.f.rng(x.Range())
	part := text[start:end]
	source := d.f.source[where.Start.Byte:where.End.Byte]
	at := 0
	for range strings.Count(text[:start], part) + 1 {
		i := strings.Index(source[at:], part)
		if i < 0 {
			return where
		}
		at += i + len(part)
	}
	at += where.Start.Byte
	return d.f.span(at-len(part), at)
}

// MaxFilled is how many bytes of text and of files a reply that stands in the
// files holds, with its values filled in.
const MaxFilled = 4 << 20

// Phrase is text in which {{name}} stands for a value.
type Phrase []Piece

// Piece is a part of a [Phrase]: text, or the name of a value when that is not "".
type Piece struct{ Text, Name string }

// Fill returns the text with the values inserted as they are. A name without a
// value leaves nothing.
func (p Phrase) Fill(values map[string]string) string {
	var b strings.Builder
	for _, piece := range p {
		b.WriteString(piece.Text)
		if piece.Name != "" {
			b.WriteString(values[piece.Name])
		}
	}
	return b.String()
}

// FillURI is Fill for a URI: what of the values no URI can hold is
// percent-encoded. It reports false when the URI is not absolute.
func (p Phrase) FillURI(values map[string]string) (uri string, absolute bool) {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for _, piece := range p {
		b.WriteString(piece.Text)
		for value := values[piece.Name]; value != ""; {
			bad := badURIByte(value)
			if bad < 0 {
				b.WriteString(value)
				break
			}
			b.WriteString(value[:bad])
			b.Write([]byte{'%', hex[value[bad]>>4], hex[value[bad]&15]})
			value = value[bad+1:]
		}
	}
	uri = b.String()
	return uri, hasScheme(uri)
}

// Len returns how long the text is with the values inserted.
func (p Phrase) Len(values map[string]string) int {
	n := 0
	for _, piece := range p {
		n += len(piece.Text) + len(values[piece.Name])
	}
	return n
}

// Len returns how many bytes of text and of files the message holds with the
// values inserted.
func (m *Message) Len(values map[string]string) int {
	n := m.Text.Len(values)
	if m.Media != nil {
		n += len(m.Media.Bytes)
	}
	if r := m.Resource; r != nil {
		n += r.URI.Len(values) + r.Text.Len(values)
		if r.Content != nil {
			n += len(r.Content.Bytes)
		}
	}
	if l := m.Link; l != nil {
		n += l.URI.Len(values) + l.Name.Len(values) + l.Title.Len(values) + l.Description.Len(values)
	}
	return n
}
