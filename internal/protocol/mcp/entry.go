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

// ToolInfo describes a tool for the wire.
type ToolInfo struct {
	Name, Title, Description string
	// HasDescription distinguishes an empty description from none.
	HasDescription bool
	// InputSchema is a JSON Schema 2020-12 with the type "object".
	InputSchema json.RawMessage
	// OutputSchema is nil if the tool declares none.
	OutputSchema json.RawMessage
	// ReadOnly, Destructive and OpenWorld are nil if the author does not set
	// them.
	ReadOnly, Destructive, OpenWorld *bool
	Idempotent                       bool
	TimeoutMS                        int64
	Icons                            []Icon
}

// Entry is an encoded list entry: a tool, a resource, a template or a prompt.
// It is immutable.
type Entry struct {
	name string
	// modern and legacy are the encodings for lists of each era.
	modern, legacy []byte

	// for tools only
	capability []byte
	mirrors    []mirror
}

// NewTool encodes a tool. The error names what cannot be sent, for the tool's
// author.
func NewTool(info ToolInfo) (*Entry, error) {
	if info.Name == "" {
		return nil, errors.New("a tool needs a name")
	}
	input, inputType, err := compactSchema(info.InputSchema)
	if err != nil {
		return nil, fmt.Errorf("input schema: %w", err)
	}
	if inputType != "object" {
		return nil, errors.New(`input schema: the type must be "object"`)
	}
	var output []byte
	var outputType string
	if info.OutputSchema != nil {
		if output, outputType, err = compactSchema(info.OutputSchema); err != nil {
			return nil, fmt.Errorf("output schema: %w", err)
		}
	}
	if err := checkIcons(info.Icons); err != nil {
		return nil, err
	}
	mirrors, err := findMirrors(input)
	if err != nil {
		return nil, fmt.Errorf("input schema: %w", err)
	}
	t := &Entry{name: info.Name, mirrors: mirrors}
	t.modern = info.entry(input, output)
	t.legacy = t.modern
	if output != nil && outputType != "object" {
		t.legacy = info.entry(input, nil)
	}
	t.capability = info.capability(input, output)
	return t, nil
}

// Name returns the name of a tool or a prompt, the URI of a resource, or the
// URI template of a template. It is the Name of a [call.Request].
func (e *Entry) Name() string { return e.name }

// HasMirrors reports whether clients mirror arguments of the tool in headers.
func (e *Entry) HasMirrors() bool { return len(e.mirrors) > 0 }

// Capability returns the tool's entry in the response to GET /mcp/capabilities
// (RFC section 9), with all its six members. The caller must not modify it.
func (e *Entry) Capability() json.RawMessage { return e.capability }

// listed returns the entry for lists of the era. Legacy revisions allow only
// output schemas of the type "object", and their clients reject a whole list
// for one other schema.
func (e *Entry) listed(of era) []byte {
	if of == modern {
		return e.modern
	}
	return e.legacy
}

// entry encodes the tool for tools/list (2026-07-28 server/tools, Tool).
func (i *ToolInfo) entry(input, output []byte) []byte {
	b := appendText([]byte{'{'}, "name", i.Name)
	b = appendOptional(b, "title", i.Title)
	if i.HasDescription {
		b = appendText(b, "description", i.Description)
	}
	b = appendIcons(b, i.Icons)
	b = appendValue(b, "inputSchema", input)
	if output != nil {
		b = appendValue(b, "outputSchema", output)
	}
	b = append(appendMember(b, "annotations"), '{')
	b = appendOptional(b, "title", i.Title)
	for _, hint := range []struct {
		name  string
		value *bool
	}{
		{"readOnlyHint", i.ReadOnly}, {"destructiveHint", i.Destructive},
		{"idempotentHint", &i.Idempotent}, {"openWorldHint", i.OpenWorld},
	} {
		if hint.value != nil {
			b = strconv.AppendBool(appendMember(b, hint.name), *hint.value)
		}
	}
	b = append(appendMember(append(b, '}'), "_meta"), '{')
	b = strconv.AppendInt(appendMember(b, keyTimeout), i.TimeoutMS, 10)
	return bytes.Clone(append(b, "}}"...))
}

// capability encodes the tool as ToolMetadata of the RFC.
func (i *ToolInfo) capability(input, output []byte) []byte {
	b := appendText([]byte{'{'}, "name", i.Name)
	b = appendMember(b, "description")
	if i.HasDescription {
		b = jsontext.AppendString(b, i.Description)
	} else {
		b = append(b, "null"...)
	}
	b = appendValue(b, "input_schema", input)
	if output == nil {
		output = []byte("{}")
	}
	b = appendValue(b, "output_schema", output)
	b = strconv.AppendInt(appendMember(b, "timeout_ms"), i.TimeoutMS, 10)
	b = strconv.AppendBool(appendMember(b, "idempotent"), i.Idempotent)
	return bytes.Clone(append(b, '}'))
}

// compactSchema returns a JSON Schema object without line breaks, and its type
// if it has one.
func compactSchema(schema []byte) (line []byte, typ string, err error) {
	var b bytes.Buffer
	if err := json.Compact(&b, schema); err != nil {
		return nil, "", err
	}
	line = b.Bytes()
	if !jsontext.IsObject(line) {
		return nil, "", errors.New("it must be an object")
	}
	typ, _ = jsontext.Text(jsontext.Get(line, "type"))
	return line, typ, nil
}

// EntryInfo describes a resource, a template or a prompt for the wire.
type EntryInfo struct {
	Kind call.Kind
	// Address is the URI of a resource, the URI template of a template, or the
	// name of a prompt.
	Address string
	// Name is the display name of a resource or a template. Title, Description
	// and MIMEType may be empty.
	Name, Title, Description, MIMEType string
	// Size is the size of a resource in bytes; negative if unknown.
	Size  int64
	Icons []Icon
	// Annotations is a JSON object with "audience", "priority" and
	// "lastModified"; nil for none.
	Annotations json.RawMessage
	// Arguments are the arguments of a prompt.
	Arguments []Argument
}

// Argument is one argument of a prompt. Its title and description may be empty.
type Argument struct {
	Name, Title, Description string
	Required                 bool
}

// NewEntry encodes an entry (2026-07-28 server/resources and server/prompts).
// The error names what clients would reject, for the author.
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
	b = bytes.Clone(append(b, '}'))
	return &Entry{name: i.Address, modern: b, legacy: b}, nil
}

// Icon is an image that clients may show beside an entry (2026-07-28
// basic/index, icons).
type Icon struct {
	// Source is the URI of the image: https or data.
	Source string
	// MIMEType is empty if unknown. Theme is "light", "dark", or empty for
	// either.
	MIMEType, Theme string
	// Sizes are values such as "48x48" or "any"; nil if unknown.
	Sizes []string
}

// checkIcons rejects icons that clients would reject.
func checkIcons(icons []Icon) error {
	for _, i := range icons {
		switch {
		case i.Source == "":
			return errors.New("an icon needs a source")
		case i.Theme != "" && i.Theme != "light" && i.Theme != "dark":
			return errors.New(`the theme of an icon must be "light" or "dark"`)
		}
	}
	return nil
}

// appendIcons appends the member "icons", unless there are none.
func appendIcons(dst []byte, icons []Icon) []byte {
	if len(icons) == 0 {
		return dst
	}
	dst = append(appendMember(dst, "icons"), '[')
	for n, i := range icons {
		if n > 0 {
			dst = append(dst, ',')
		}
		dst = appendText(append(dst, '{'), "src", i.Source)
		dst = appendOptional(dst, "mimeType", i.MIMEType)
		dst = appendTexts(dst, "sizes", i.Sizes)
		dst = append(appendOptional(dst, "theme", i.Theme), '}')
	}
	return append(dst, ']')
}
