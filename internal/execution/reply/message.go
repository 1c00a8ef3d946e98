package reply

import "encoding/json"

// Message is a message of a prompt as it stands in a file, with its arguments
// filled in. Exactly one of its kinds is given.
type Message struct {
	Role string
	// Text is the text of a text block.
	Text *string
	// Kind is "image" or "audio" for one of these.
	Kind string
	// MIMEType and Content are those of an image, of a sound, or of a resource
	// that is no text.
	MIMEType string
	Content  []byte
	// Resource and Link are the URI of an embedded resource, or of a link.
	Resource, Link string
	// ResourceText is the text of a resource; nil when Content holds it.
	ResourceText *string
	// Name, Title, Description and Size are those of a link; all but the name
	// may be empty, and the size negative.
	Name, Title, Description string
	Size                     int64
	// Annotations is a JSON object, or nil.
	Annotations json.RawMessage
}

// Written returns {"description", "messages": […]} of messages that stand in
// a file. An empty description is left out.
func Written(description string, messages []Message) json.RawMessage {
	b := openMessages(description)
	for i := range messages {
		b = appendBlock(b, messages[i].Role, messages[i].block())
	}
	return append(b, "]}"...)
}

// block encodes what the message holds.
func (m *Message) block() []byte {
	b := []byte{'{'}
	switch {
	case m.Text != nil:
		b = appendText(appendText(b, "type", "text"), "text", *m.Text)
	case m.Kind != "":
		b = appendText(appendBytes(appendText(b, "type", m.Kind), "data", m.Content), "mimeType", m.MIMEType)
	case m.Link != "":
		b = appendText(appendText(appendText(b, "type", "resource_link"), "uri", m.Link), "name", m.Name)
		b = appendOptional(appendOptional(b, "title", m.Title), "description", m.Description)
		b = appendOptional(b, "mimeType", m.MIMEType)
		if m.Size >= 0 {
			b = appendInt(b, "size", m.Size)
		}
	default:
		b = appendMember(appendText(b, "type", "resource"), "resource", m.resource())
	}
	if m.Annotations != nil {
		b = appendMember(b, "annotations", m.Annotations)
	}
	return append(b, '}')
}

// resource encodes an embedded resource.
func (m *Message) resource() []byte {
	b := appendOptional(appendText([]byte{'{'}, "uri", m.Resource), "mimeType", m.MIMEType)
	if m.ResourceText != nil {
		return append(appendText(b, "text", *m.ResourceText), '}')
	}
	return append(appendBytes(b, "blob", m.Content), '}')
}
