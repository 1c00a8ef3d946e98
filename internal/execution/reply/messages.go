package reply

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mcpd/mcpd/scripting"
)

// Messages returns {"description", "messages": […]} for the result of a prompt script (2026-07-28
// server/prompts, PromptMessage). A string or content gets the role user. A message has a role and
// content: a string, a block or several blocks. The result may be an array of messages. An empty
// description is omitted.
func Messages(description string, r *scripting.Result) (json.RawMessage, error) {
	b := openMessages(description)
	switch r.Kind {
	case scripting.Nothing:
		return nil, errors.New("the prompt returned nothing; return messages: [{ role, content }]")
	case scripting.Text:
		b = appendBlock(b, "user", append(append([]byte(`{"type":"text","text":`), r.JSON...), '}'))
	case scripting.Content:
		var err error
		if b, err = appendBlocks(b, "user", r.Content); err != nil {
			return nil, err
		}
	default:
		var err error
		if blocks := PlainBlocks(r.JSON); blocks != nil {
			b, err = appendBlocks(b, "user", blocks)
		} else {
			b, err = appendReturned(b, r.JSON)
		}
		if err != nil {
			return nil, err
		}
	}
	return append(b, "]}"...), nil
}

// openMessages returns the start of the result, up to the list of messages.
func openMessages(description string) []byte {
	return append(appendOptional([]byte{'{'}, "description", description), messagesPrefix(description)...)
}

func messagesPrefix(description string) string {
	if description == "" {
		return `"messages":[`
	}
	return `,"messages":[`
}

// message is a message that a script returns.
type message struct {
	Role    string
	Content json.RawMessage
}

// appendReturned appends messages that a script returns as plain values.
func appendReturned(dst, value []byte) ([]byte, error) {
	if value[0] != '[' {
		value = append(append([]byte{'['}, value...), ']')
	}
	wrong := errors.New("the prompt must return messages: [{ role, content }]")
	var messages []message
	if err := json.Unmarshal(value, &messages); err != nil {
		return nil, wrong
	}
	for i, m := range messages {
		if m.Role == "" && m.Content == nil {
			return nil, wrong
		}
		if m.Role != "user" && m.Role != "assistant" {
			return nil, fmt.Errorf(`message %d: its role must be "user" or "assistant"`, i+1)
		}
		var err error
		if dst, err = appendMessage(dst, m); err != nil {
			return nil, fmt.Errorf("message %d: %w", i+1, err)
		}
	}
	return dst, nil
}

func appendMessage(dst []byte, m message) ([]byte, error) {
	switch content := bytes.TrimSpace(m.Content); {
	case len(content) == 0:
		return nil, errors.New("it needs content: a string, or content from content.text() and similar functions")
	case content[0] == '"':
		return appendBlock(dst, m.Role, append(append([]byte(`{"type":"text","text":`), content...), '}')), nil
	case content[0] == '[':
		return appendBlocks(dst, m.Role, content)
	case content[0] == '{':
		return appendBlocks(dst, m.Role, append(append([]byte{'['}, content...), ']'))
	default:
		return nil, errors.New("its content must be a string, a block, or an array of blocks")
	}
}

// appendBlocks appends one message per block of an array.
func appendBlocks(dst []byte, role string, content []byte) ([]byte, error) {
	checked, err := decodeBlocks(content)
	if err != nil {
		return nil, err
	}
	var blocks []json.RawMessage
	if err := json.Unmarshal(content, &blocks); err != nil {
		return nil, err
	}
	for i, block := range blocks {
		if checked[i].Type == "resource" && !isMIMEType(checked[i].Resource.MIMEType) {
			return nil, fmt.Errorf("block %d: a resource in a prompt needs a mimeType, a type and a subtype", i+1)
		}
		dst = appendBlock(dst, role, block)
	}
	return dst, nil
}

// appendBlock appends a message with one block.
func appendBlock(dst []byte, role string, block []byte) []byte {
	if dst[len(dst)-1] == '}' {
		dst = append(dst, ',')
	}
	dst = appendText(append(dst, '{'), "role", role)
	return append(appendMember(dst, "content", block), '}')
}

// Message is a prompt message from a file, with its arguments inserted. Exactly one kind of content
// is set.
type Message struct {
	Role string
	// Text is the text of a text block.
	Text *string
	// Kind is "image" or "audio" for these blocks.
	Kind string
	// MIMEType and Content belong to an image, to audio, or to a binary resource.
	MIMEType string
	Content  []byte
	// Resource and Link are the URI of an embedded resource, or of a link.
	Resource, Link string
	// ResourceText is the text of a resource; nil if Content has it.
	ResourceText *string
	// Name, Title, Description and Size belong to a link. All but Name may be empty, and Size
	// negative.
	Name, Title, Description string
	Size                     int64
	// Annotations is a JSON object, or nil.
	Annotations json.RawMessage
}

// StaticMessages returns {"description", "messages": […]} for messages from a file. An empty
// description is omitted.
func StaticMessages(description string, messages []Message) json.RawMessage {
	b := openMessages(description)
	for i := range messages {
		b = appendBlock(b, messages[i].Role, messages[i].block())
	}
	return append(b, "]}"...)
}

// block encodes the content of the message.
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
