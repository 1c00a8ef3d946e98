package hclfile

import "github.com/mcpd/mcpd/diag"

// Prompt is a prompt block. It has Messages or Run.
type Prompt struct {
	Name, Title, Description string
	Arguments                []Argument
	Icons                    []Icon
	Call

	Messages []Message
	Run      *Body

	Range, NameRange diag.Range
	Hashes
}

// Argument is an argument of a [Prompt], which is always a string.
type Argument struct {
	Name, Title, Description string
	Required                 bool
	// Complete is nil when nothing completes the value.
	Complete *Complete
	Range    diag.Range
}

// Message is a message of a [Prompt]. Exactly one of Text, Media, Resource and
// Link is set. A [Phrase] in it holds names of arguments.
type Message struct {
	// Role is [User] or [Assistant].
	Role        string
	Text        Phrase
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

// Media is an image or a sound.
type Media struct {
	// Kind is [Image] or [Audio].
	Kind string
	Content
}

// Embedded is a resource that a message holds. Exactly one of Text and Content
// is set.
type Embedded struct {
	URI Phrase
	// MIMEType is never empty.
	MIMEType string
	Text     Phrase
	Content  *Content
}

// Link is a link to a resource.
type Link struct {
	URI, Name, Title, Description Phrase
	MIMEType                      string
	// Size is in bytes; nil means that the file does not say.
	Size *int64
}
