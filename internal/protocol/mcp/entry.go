package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/jsontext"
)

// Entry is a resource, a template or a prompt as it is listed, encoded once.
// It is immutable, and the same for clients of every revision.
type Entry struct {
	name string
	json []byte
}

// Name returns the URI of a resource, the URI template of a template, or the
// name of a prompt: what [Request].Name says.
func (e *Entry) Name() string { return e.name }

// EntryInfo describes a resource, a template or a prompt for the wire.
type EntryInfo struct {
	Kind call.Kind
	// Address is the URI of a resource, the URI template of a template, or the name of a
	// prompt.
	Address string
	// Name is shown for a resource or a template. Title, Description and MIMEType may be
	// empty.
	Name, Title, Description, MIMEType string
	// Size of a resource, in bytes, is negative when it is not known.
	Size  int64
	Icons []Icon
	// Annotations is a JSON object with "audience", "priority" and
	// "lastModified"; nil for none.
	Annotations json.RawMessage
	// Arguments are those of a prompt.
	Arguments []Argument
}

// Argument is one argument of a prompt; its title and description may be empty.
type Argument struct {
	Name, Title, Description string
	Required                 bool
}

// NewEntry encodes an entry (2026-07-28 server/resources and server/prompts). The error
// names what clients would refuse, for the author.
func NewEntry(i EntryInfo) (*Entry, error) {
	if err := checkIcons(i.Icons); err != nil {
		return nil, err
	}
	b := []byte{'{'}
	switch {
	case i.Kind == call.Prompts && i.Address == "":
		return nil, errors.New("a prompt needs a name")
	case i.Kind == call.Prompts:
		b = appendText(b, "name", i.Address)
	case i.Address == "" || i.Name == "":
		return nil, errors.New("it needs a URI and a name")
	case i.Kind == call.Templates:
		b = appendText(appendText(b, "uriTemplate", i.Address), "name", i.Name)
	default:
		b = appendText(appendText(b, "uri", i.Address), "name", i.Name)
	}
	b = appendOptional(b, "title", i.Title)
	b = appendOptional(b, "description", i.Description)
	b = appendOptional(b, "mimeType", i.MIMEType)
	if i.Kind == call.Resources && i.Size >= 0 {
		b = strconv.AppendInt(appendMember(b, "size"), i.Size, 10)
	}
	b = appendIcons(b, i.Icons)
	if i.Annotations != nil {
		if !jsontext.IsObject(i.Annotations) || !json.Valid(i.Annotations) {
			return nil, errors.New("annotations must be an object")
		}
		b = appendValue(b, "annotations", i.Annotations)
	}
	if i.Kind == call.Prompts {
		b = append(appendMember(b, "arguments"), '[')
		for n, a := range i.Arguments {
			if a.Name == "" {
				return nil, fmt.Errorf("argument %d needs a name", n+1)
			}
			if n > 0 {
				b = append(b, ',')
			}
			b = appendText(append(b, '{'), "name", a.Name)
			b = appendOptional(b, "title", a.Title)
			b = appendOptional(b, "description", a.Description)
			b = append(strconv.AppendBool(appendMember(b, "required"), a.Required), '}')
		}
		b = append(b, ']')
	}
	return &Entry{name: i.Address, json: bytes.Clone(append(b, '}'))}, nil
}
