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

// Offer is what a [Snapshot] offers beside its tools: a resource, a template of
// resources, or a prompt. It is immutable, and the same Offer serves all
// snapshots in which its definition is unchanged.
type Offer struct{ item *catalog.Item }

// OfferMetadata is what a resource, a template or a prompt says of itself.
type OfferMetadata struct {
	// Kind is Resources, Templates or Prompts.
	Kind call.Kind
	// Address is the URI of a resource, the text of a template, or the name of a
	// prompt: what a [Request] names.
	Address string
	// Name is that of the definition, and of a file of a folder its path.
	Name string
	// Title is a name for people; it may be empty, as may Description.
	Title, Description string
	// MIMEType is empty when it is not known.
	MIMEType string
	// Size is in bytes, and negative when it is not known.
	Size int64
	// Annotations is a JSON object, as MCP has it; nil for none.
	Annotations json.RawMessage
	Icons       []Icon
	// Arguments are those of a prompt, or the variables of a template.
	Arguments []Argument
}

// Argument is an argument of a prompt or a variable of a template.
type Argument struct {
	// Title and Description may be empty.
	Name, Title, Description string
	Required                 bool
}

// Icon is an image that clients may show.
type Icon struct {
	// Source is an https or data URI.
	Source string
	// MIMEType, and Theme, which is "light" or "dark", may be empty.
	MIMEType, Theme string
	// Sizes are such as "48x48", or "any".
	Sizes []string
}

func iconsOf(icons []definition.Icon) []Icon {
	var list []Icon
	for _, i := range icons {
		list = append(list, Icon{Source: i.Src, MIMEType: i.MIMEType, Theme: i.Theme, Sizes: slices.Clone(i.Sizes)})
	}
	return list
}

// Metadata returns what the offer says of itself. It is a copy.
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

// Metadata is what a tool says of itself (RFC section 9), and the annotations
// that MCP adds to it.
type Metadata struct {
	Name string
	// Title is a name for people; it may be empty.
	Title string
	// Description is nil when the author gives none.
	Description *string
	// InputSchema is a JSON Schema 2020-12 of an object. OutputSchema is nil
	// when the tool declares no output.
	InputSchema, OutputSchema json.RawMessage
	// DeclaredSchema is InputSchema with the type bigint named, where the tool has such
	// arguments. It is no JSON Schema, and not sent to clients.
	DeclaredSchema json.RawMessage
	// Timeout bounds the running time of one call.
	Timeout    time.Duration
	Idempotent bool
	// ReadOnly, Destructive and OpenWorld are nil when the author says nothing.
	ReadOnly, Destructive, OpenWorld *bool
	// Labels are for policies; they are not sent to clients.
	Labels map[string]string
	Icons  []Icon
}

// Tool is one tool of a [Snapshot]. It is immutable, and the same Tool serves
// all snapshots in which its definition is unchanged.
type Tool struct{ item *catalog.Item }

// Name returns the tool's name.
func (t *Tool) Name() string { return t.item.Name }

// Metadata returns what the tool says of itself. It is a copy.
func (t *Tool) Metadata() Metadata { return metadataOf(t.item) }

// Task says whether the calls of a tool may go on as tasks.
type Task struct {
	// TTL is how long a task is kept from its beginning on; 0 means that no
	// call of the tool is one.
	TTL time.Duration
	// Required says that the tool runs in no other way, as far as its client
	// has a choice.
	Required bool
	// AskFirst says that a call becomes a task when it comes back with the
	// answers to what it asked first, and not before.
	AskFirst bool
}

// Task returns whether the tool's calls may go on as tasks. The engine makes
// none: it runs the legs of a task like any other call.
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
