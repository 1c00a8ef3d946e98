package engine

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/language/definition"
)

// Offer is a resource, a resource template or a prompt of a [Snapshot]. It is immutable, and is
// shared by all snapshots with the same definition.
type Offer struct{ item *catalog.Item }

// OfferMetadata is the metadata of a resource, template or prompt.
type OfferMetadata struct {
	// Kind is Resources, Templates or Prompts.
	Kind call.Kind
	// Address is the URI of a resource, the text of a template, or the name of a prompt: the Name
	// of a [call.Request].
	Address string
	// Name is the name of the definition, or the path of a file of a folder block.
	Name string
	// Title is a display name. Title and Description may be empty.
	Title, Description string
	// MIMEType is empty if unknown.
	MIMEType string
	// Size is in bytes, and negative if unknown.
	Size int64
	// Annotations is the JSON object that MCP defines; nil for none.
	Annotations json.RawMessage
	Icons       []Icon
	// Arguments are the arguments of a prompt, or the variables of a template.
	Arguments []Argument
}

// Argument is an argument of a prompt or a variable of a template.
type Argument struct {
	// Title and Description may be empty.
	Name, Title, Description string
	Required                 bool
}

// Icon is an image for clients.
type Icon struct {
	// Source is an https or data URI.
	Source string
	// MIMEType and Theme, "light" or "dark", may be empty.
	MIMEType, Theme string
	// Sizes has elements such as "48x48" or "any".
	Sizes []string
}

func iconsOf(icons []definition.Icon) []Icon {
	var list []Icon
	for _, i := range icons {
		list = append(list, Icon{Source: i.Src, MIMEType: i.MIMEType, Theme: i.Theme, Sizes: slices.Clone(i.Sizes)})
	}
	return list
}

// Metadata returns a copy of the metadata.
func (o *Offer) Metadata() OfferMetadata {
	i := o.item
	m := OfferMetadata{
		Kind: i.Kind, Address: i.Address, Name: i.Offer.ListedAs, Title: i.Title, MIMEType: i.Offer.MIMEType, Size: i.Offer.Size,
		Annotations: bytes.Clone(i.Offer.Annotations), Icons: iconsOf(i.Icons),
	}
	if i.Description != nil {
		m.Description = *i.Description
	}
	for _, a := range i.Offer.Arguments {
		m.Arguments = append(m.Arguments, Argument{Name: a.Name, Title: a.Title, Description: a.Description, Required: a.Required})
	}
	return m
}

// Metadata is the metadata of a tool (RFC section 9), with the annotations of MCP.
type Metadata struct {
	Name string
	// Title is a display name; it may be empty.
	Title string
	// Description is nil if the author sets none.
	Description *string
	// InputSchema is a JSON Schema 2020-12 of an object. OutputSchema is nil if the tool declares
	// no output.
	InputSchema, OutputSchema json.RawMessage
	// DeclaredSchema is InputSchema with the type bigint, if the tool has such arguments. It is no
	// valid JSON Schema, and is not sent to clients.
	DeclaredSchema json.RawMessage
	// Timeout bounds the running time of one call.
	Timeout    time.Duration
	Idempotent bool
	// ReadOnly, Destructive and OpenWorld are nil if the author does not set them.
	ReadOnly, Destructive, OpenWorld *bool
	// Labels are attributes for policies. They are not sent to clients.
	Labels map[string]string
	Icons  []Icon
}

// Tool is a tool of a [Snapshot]. It is immutable, and is shared by all snapshots with the same
// definition.
type Tool struct{ item *catalog.Item }

// Name returns the tool's name.
func (t *Tool) Name() string { return t.item.Name }

// Metadata returns a copy of the metadata.
func (t *Tool) Metadata() Metadata { return metadataOf(t.item) }

// Task says whether calls of a tool may run as tasks.
type Task struct {
	// TTL is the lifetime of a task from its creation; 0 means that calls do not run as tasks.
	TTL time.Duration
	// Required reports that every call of a client that supports tasks runs as one.
	Required bool
	// AskFirst reports that a call becomes a task only after the client has responded to its first
	// input requests.
	AskFirst bool
}

// Task returns the task settings of the tool. The engine creates no tasks: it runs each leg of a
// task like any other call.
func (t *Tool) Task() Task { return Task(t.item.Task) }

func metadataOf(i *catalog.Item) Metadata {
	m := Metadata{
		Name: i.Name, Title: i.Title, Description: clonePtr(i.Description), InputSchema: bytes.Clone(i.Input.Raw()), DeclaredSchema: bytes.Clone(i.Declared),
		Timeout: i.Timeout, Idempotent: i.Idempotent, Labels: maps.Clone(i.Labels), Icons: iconsOf(i.Icons),
		ReadOnly: clonePtr(i.ReadOnly), Destructive: clonePtr(i.Destructive), OpenWorld: clonePtr(i.OpenWorld),
	}
	if i.Output != nil {
		m.OutputSchema = bytes.Clone(i.Output.Raw())
	}
	return m
}

func clonePtr[T any](p *T) *T {
	if p == nil {
		return nil
	}
	value := *p
	return &value
}
