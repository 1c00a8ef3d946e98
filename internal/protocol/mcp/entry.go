package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

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

// ResourceInfo describes a resource or a template for the wire.
type ResourceInfo struct {
	// URI is that of the resource, or the template.
	URI string
	// Name, Title and Description are shown; all but the name may be empty.
	Name, Title, Description string
	MIMEType                 string
	// Size in bytes is negative when not known. Templates have none.
	Size  int64
	Icons []Icon
	// Annotations is a JSON object with "audience", "priority" and
	// "lastModified"; nil for none.
	Annotations json.RawMessage
}

// NewResource encodes a resource (2026-07-28 server/resources, Resource). The
// error names what cannot be put on the wire, for the author.
func NewResource(info ResourceInfo) (*Entry, error) { return info.entry("uri") }

// NewTemplate encodes a resource template (2026-07-28 server/resources,
// Resource Templates). The error is as that of [NewResource].
func NewTemplate(info ResourceInfo) (*Entry, error) {
	info.Size = -1
	return info.entry("uriTemplate")
}

func (i *ResourceInfo) entry(member string) (*Entry, error) {
	if i.URI == "" || i.Name == "" {
		return nil, errors.New("it needs a URI and a name")
	}
	if err := checkIcons(i.Icons); err != nil {
		return nil, err
	}
	b := appendText(appendText([]byte{'{'}, member, i.URI), "name", i.Name)
	b = appendOptional(b, "title", i.Title)
	b = appendOptional(b, "description", i.Description)
	b = appendOptional(b, "mimeType", i.MIMEType)
	if i.Size >= 0 {
		b = strconv.AppendInt(appendMember(b, "size"), i.Size, 10)
	}
	b = appendIcons(b, i.Icons)
	if i.Annotations != nil {
		if !jsontext.IsObject(i.Annotations) || !json.Valid(i.Annotations) {
			return nil, errors.New("annotations must be an object")
		}
		b = appendValue(b, "annotations", i.Annotations)
	}
	return newEntry(i.URI, b), nil
}

// PromptInfo describes a prompt for the wire.
type PromptInfo struct {
	// Title and Description may be empty.
	Name, Title, Description string
	Arguments                []PromptArgument
	Icons                    []Icon
}

// PromptArgument is one argument of a prompt; its title and description may be
// empty.
type PromptArgument struct {
	Name, Title, Description string
	Required                 bool
}

// NewPrompt encodes a prompt (2026-07-28 server/prompts, Prompt). The error is
// as that of [NewResource].
func NewPrompt(info PromptInfo) (*Entry, error) {
	if info.Name == "" {
		return nil, errors.New("a prompt needs a name")
	}
	if err := checkIcons(info.Icons); err != nil {
		return nil, err
	}
	b := appendText([]byte{'{'}, "name", info.Name)
	b = appendOptional(b, "title", info.Title)
	b = appendOptional(b, "description", info.Description)
	b = appendIcons(b, info.Icons)
	b = append(appendMember(b, "arguments"), '[')
	for n, a := range info.Arguments {
		if a.Name == "" {
			return nil, fmt.Errorf("argument %d needs a name", n+1)
		}
		if n > 0 {
			b = append(b, ',')
		}
		b = a.append(b)
	}
	return newEntry(info.Name, append(b, ']')), nil
}

func (a *PromptArgument) append(b []byte) []byte {
	b = appendText(append(b, '{'), "name", a.Name)
	b = appendOptional(b, "title", a.Title)
	b = appendOptional(b, "description", a.Description)
	return append(strconv.AppendBool(appendMember(b, "required"), a.Required), '}')
}

// newEntry closes the object of an entry.
func newEntry(name string, open []byte) *Entry {
	return &Entry{name: name, json: bytes.Clone(append(open, '}'))}
}
