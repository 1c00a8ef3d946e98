package definition

import (
	"strings"

	"github.com/mcpd/mcpd/diag"
)

// Prompt is a prompt block. It has Messages or Run.
type Prompt struct {
	Name, Title, Description string
	Arguments                []Argument
	Icons                    []Icon
	Call

	Messages []Message
	Run      *Code

	NameRange diag.Range
	Hashes
}

// Argument is an argument of a [Prompt]. Its value is a string.
type Argument struct {
	Name, Title, Description string
	Required                 bool
	// Complete is nil if the value has no completion.
	Complete *Complete
}

// Message is a message of a [Prompt]. Exactly one of Text, Media, Resource and Link is set. The
// names in a [TextTemplate] are arguments.
type Message struct {
	// Role is [User] or [Assistant].
	Role        string
	Text        TextTemplate
	Media       *Media
	Resource    *Embedded
	Link        *Link
	Annotations *Annotations
	Range       diag.Range
}

// The values of [Media.Kind].
const (
	Image = "image"
	Audio = "audio"
)

// Media is an image or audio content.
type Media struct {
	// Kind is [Image] or [Audio].
	Kind string
	Content
}

// Embedded is a resource embedded in a message. Exactly one of Text and Content is set.
type Embedded struct {
	URI TextTemplate
	// MIMEType is never empty.
	MIMEType string
	Text     TextTemplate
	Content  *Content
}

// Link is a link to a resource.
type Link struct {
	URI, Name, Title, Description TextTemplate
	MIMEType                      string
	// Size is in bytes; nil means unknown.
	Size *int64
}

// MaxRendered bounds a reply from files, in bytes of text and content after templates are
// rendered.
const MaxRendered = 4 << 20

// TextTemplate is text with placeholders of the form {{name}}.
type TextTemplate []TemplatePart

// TemplatePart is literal text, or a placeholder if Name is not empty.
type TemplatePart struct{ Text, Name string }

// Render returns the text with the values inserted verbatim. A placeholder without a value is
// empty.
func (t TextTemplate) Render(values map[string]string) string {
	var b strings.Builder
	for _, piece := range t {
		b.WriteString(piece.Text)
		if piece.Name != "" {
			b.WriteString(values[piece.Name])
		}
	}
	return b.String()
}

// RenderURI is Render for a URI: it percent-encodes the characters of values that a URI cannot
// contain. It returns false if the URI is not absolute.
func (t TextTemplate) RenderURI(values map[string]string) (uri string, absolute bool) {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for _, piece := range t {
		b.WriteString(piece.Text)
		for value := values[piece.Name]; value != ""; {
			bad := BadURIByte(value)
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
	return uri, HasScheme(uri)
}

// Len returns the length of the rendered text.
func (t TextTemplate) Len(values map[string]string) int {
	n := 0
	for _, piece := range t {
		n += len(piece.Text) + len(values[piece.Name])
	}
	return n
}

// Len returns the size of the rendered message, in bytes of text and content.
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
