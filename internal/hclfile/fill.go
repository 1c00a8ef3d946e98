package hclfile

import "strings"

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
