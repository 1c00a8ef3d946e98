package main

import (
	"encoding/json"

	"github.com/mcpd/mcpd/engine"
)

// rows are what list says to machines. Each list is there, also when it is empty.
type rows struct {
	Tools     []toolRow     `json:"tools"`
	Resources []resourceRow `json:"resources"`
	Templates []templateRow `json:"templates"`
	Prompts   []promptRow   `json:"prompts"`
}

// toolRow is what list says of a tool to machines.
type toolRow struct {
	Name         string            `json:"name"`
	Title        string            `json:"title"`
	Description  *string           `json:"description"`
	InputSchema  json.RawMessage   `json:"input_schema"`
	OutputSchema json.RawMessage   `json:"output_schema"`
	TimeoutMS    int64             `json:"timeout_ms"`
	Idempotent   bool              `json:"idempotent"`
	ReadOnly     *bool             `json:"read_only"`
	Destructive  *bool             `json:"destructive"`
	OpenWorld    *bool             `json:"open_world"`
	Labels       map[string]string `json:"labels"`
}

// resourceRow is what list says of a resource.
type resourceRow struct {
	URI string `json:"uri"`
	said
	Size *int64 `json:"size"`
}

// templateRow is what list says of a template.
type templateRow struct {
	URITemplate string `json:"uri_template"`
	said
	Variables []argumentRow `json:"variables"`
}

// said is what resources and templates both say.
type said struct {
	Name        string          `json:"name"`
	Title       string          `json:"title"`
	Description *string         `json:"description"`
	MIMEType    *string         `json:"mime_type"`
	Annotations json.RawMessage `json:"annotations"`
}

// promptRow is what list says of a prompt.
type promptRow struct {
	Name        string        `json:"name"`
	Title       string        `json:"title"`
	Description *string       `json:"description"`
	Arguments   []argumentRow `json:"arguments"`
}

// argumentRow is an argument of a prompt, or a variable of a template.
type argumentRow struct {
	Name        string  `json:"name"`
	Title       string  `json:"title"`
	Description *string `json:"description"`
	Required    bool    `json:"required"`
}

func (l *listing) rows() rows {
	r := rows{[]toolRow{}, []resourceRow{}, []templateRow{}, []promptRow{}}
	for _, m := range l.tools {
		r.Tools = append(r.Tools, toolRow{
			Name: m.Name, Title: m.Title, Description: m.Description, InputSchema: m.InputSchema, OutputSchema: m.OutputSchema,
			TimeoutMS: m.Timeout.Milliseconds(), Idempotent: m.Idempotent,
			ReadOnly: m.ReadOnly, Destructive: m.Destructive, OpenWorld: m.OpenWorld, Labels: m.Labels,
		})
	}
	for _, m := range l.resources {
		row := resourceRow{URI: m.Address, said: saidBy(m)}
		if m.Size >= 0 {
			row.Size = &m.Size
		}
		r.Resources = append(r.Resources, row)
	}
	for _, m := range l.templates {
		r.Templates = append(r.Templates, templateRow{URITemplate: m.Address, said: saidBy(m), Variables: argumentRows(m.Arguments)})
	}
	for _, m := range l.prompts {
		r.Prompts = append(r.Prompts, promptRow{m.Address, m.Title, orNull(m.Description), argumentRows(m.Arguments)})
	}
	return r
}

func saidBy(m engine.OfferMetadata) said {
	return said{m.Name, m.Title, orNull(m.Description), orNull(m.MIMEType), m.Annotations}
}

func argumentRows(arguments []engine.Argument) []argumentRow {
	list := make([]argumentRow, len(arguments))
	for i, a := range arguments {
		list[i] = argumentRow{a.Name, a.Title, orNull(a.Description), a.Required}
	}
	return list
}

// orNull returns nil for what is not said.
func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
