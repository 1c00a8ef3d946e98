package hclfile

import (
	"encoding/json"
	"slices"

	"github.com/mcpd/mcpd/diag"
)

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

// PolicyInput is the schema of the arguments as policies and bodies see them:
// with the inputs that are computed.
func (t *Tool) PolicyInput() json.RawMessage {
	if len(t.From) == 0 {
		return t.Input
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(t.Input, &object) != nil {
		return t.Input
	}
	var properties map[string]json.RawMessage
	if json.Unmarshal(object["properties"], &properties) != nil || properties == nil {
		properties = map[string]json.RawMessage{}
	}
	var required []string
	if json.Unmarshal(object["required"], &required) != nil {
		required = nil
	}
	for _, from := range t.From {
		properties[from.Name] = from.Schema
		required = append(required, from.Name)
	}
	for name, value := range map[string]any{"properties": properties, "required": required} {
		encoded, err := json.Marshal(value)
		if err != nil {
			return t.Input
		}
		object[name] = encoded
	}
	whole, err := json.Marshal(object)
	if err != nil {
		return t.Input
	}
	return whole
}

// InputNames returns the names of all inputs, computed ones too, sorted; closed
// says that the tool accepts no others.
func (t *Tool) InputNames() (names []string, closed bool) {
	var keywords map[string]json.RawMessage
	var properties map[string]json.RawMessage
	if json.Unmarshal(t.Input, &keywords) != nil {
		return nil, false
	}
	if json.Unmarshal(keywords["properties"], &properties) != nil {
		properties = nil
	}
	for name := range properties {
		names = append(names, name)
	}
	for _, from := range t.From {
		names = append(names, from.Name)
	}
	slices.Sort(names)
	return names, string(keywords["additionalProperties"]) == "false"
}
