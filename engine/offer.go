package engine

import (
	"bytes"
	"encoding/json"

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
	for _, i := range catalog.IconsOf(icons) {
		list = append(list, Icon(i))
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
