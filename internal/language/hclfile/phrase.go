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
	r := phraseReader{d: d, x: body.Attributes[name].Expr, text: text, what: what, names: names, phrase: Phrase{}, told: map[string]bool{}}
	for r.at < len(text) {
		r.next()
	}
	if r.add(""); len(r.told) > 0 {
		return nil
	}
	return r.phrase
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

// phraseReader reads a phrase from left to right.
type phraseReader struct {
	d     *decoder
	x     hclsyntax.Expression
	text  string
	what  string
	names []string

	at      int
	literal []byte
	phrase  Phrase
	told    map[string]bool
}

// next reads text and what stands in braces behind it.
func (r *phraseReader) next() {
	open := strings.Index(r.text[r.at:], openSlot)
	if open < 0 {
		open = len(r.text) - r.at
	}
	r.literal = append(r.literal, r.text[r.at:r.at+open]...)
	r.at += open
	switch rest := r.text[r.at:]; {
	case rest == "":
	case strings.HasPrefix(rest, escapedSlot):
		r.literal = append(r.literal, openSlot...)
		r.at += len(escapedSlot)
	default:
		r.slot()
	}
}

// slot reads a name in braces.
func (r *phraseReader) slot() {
	start := r.at
	rest := r.text[start+len(openSlot):]
	inner, _, found := strings.Cut(rest[:min(len(rest), 2*maxName)], closeSlot)
	name := strings.Trim(inner, " ")
	if !found || !isIdentifier(name) {
		r.at += len(openSlot)
		r.fail("", start, "bad-value", "{{ is not followed by a name and }}", "write {{name}} to insert a value, or {{{{ for two braces")
		return
	}
	r.at += len(openSlot) + len(inner) + len(closeSlot)
	if slices.Contains(r.names, name) {
		r.add(name)
		return
	}
	detail := r.d.eval.didYouMean(name, slices.Values(r.names))
	if detail == "" && len(r.names) == 0 {
		detail = fmt.Sprintf("declare it: %s %q {}; or write {{{{ for two braces", r.what, name)
	}
	r.fail(name, start, "unknown-name", fmt.Sprintf("there is no %s %s", r.what, r.d.eval.show(name)), orList(detail, "the "+r.what+"s are", r.names))
}

// add ends the text that was read, and adds a name when there is one.
func (r *phraseReader) add(name string) {
	if len(r.literal) > 0 {
		r.phrase = append(r.phrase, Piece{Text: string(r.literal)})
	}
	if name != "" {
		r.phrase = append(r.phrase, Piece{Name: name})
	}
	r.literal = r.literal[:0]
}

// fail reports what stands between start and where the reader is, once for
// each name.
func (r *phraseReader) fail(name string, start int, code, summary, detail string) {
	told := r.told[name]
	r.told[name] = true
	if told || len(r.d.problems) >= maxCollected {
		return
	}
	r.d.fail(code, r.d.placeOf(r.x, r.text, start, r.at), summary, detail)
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
