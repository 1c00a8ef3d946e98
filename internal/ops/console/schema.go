package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/internal/ops/control"
)

// Bounds of a schema in a page. What is deeper or more is shown as JSON.
const (
	maxDepth  = 6
	maxFields = 300
)

// schema is the part of a JSON Schema that forms and descriptions use.
type schema struct {
	Ref         string            `json:"$ref"`
	Type        oneOrMore         `json:"type"`
	Title       string            `json:"title"`
	Description string            `json:"description"`
	Default     json.RawMessage   `json:"default"`
	Const       json.RawMessage   `json:"const"`
	Enum        []json.RawMessage `json:"enum"`
	EnumNames   []string          `json:"enumNames"`
	Properties  members           `json:"properties"`
	Required    requiredNames     `json:"required"`
	Items       json.RawMessage   `json:"items"`
	OneOf       []json.RawMessage `json:"oneOf"`
	AnyOf       []json.RawMessage `json:"anyOf"`
	AllOf       []json.RawMessage `json:"allOf"`
	Format      string            `json:"format"`
	Pattern     string            `json:"pattern"`
	Minimum     json.Number       `json:"minimum"`
	Maximum     json.Number       `json:"maximum"`
	MinLength   *int              `json:"minLength"`
	MaxLength   *int              `json:"maxLength"`
	MinItems    *int              `json:"minItems"`
	MaxItems    *int              `json:"maxItems"`
	WriteOnly   bool              `json:"writeOnly"`
}

// oneOrMore is a string or a list of strings.
type oneOrMore []string

// UnmarshalJSON decodes a string or a list of strings.
func (o *oneOrMore) UnmarshalJSON(j []byte) error {
	var one string
	if json.Unmarshal(j, &one) == nil {
		*o = oneOrMore{one}
		return nil
	}
	return json.Unmarshal(j, (*[]string)(o))
}

// requiredNames are different names of required members. There are at most maxRequired, as a page shows
// fewer members.
type requiredNames []string

const maxRequired = 4 * maxFields

// UnmarshalJSON decodes a list of strings.
func (n *requiredNames) UnmarshalJSON(j []byte) error {
	var all []string
	if err := json.Unmarshal(j, &all); err != nil {
		return err
	}
	*n = requiredNames(nil).with(all)
	return nil
}

// with returns the names with others.
func (n requiredNames) with(others []string) requiredNames {
	if len(others) == 0 {
		return n
	}
	known := make(map[string]bool, len(n))
	for _, name := range n {
		known[name] = true
	}
	n = slices.Clip(n)
	for _, name := range others {
		if len(n) == maxRequired {
			break
		}
		if !known[name] {
			n, known[name] = append(n, name), true
		}
	}
	return n
}

// member is a member of a JSON object.
type member struct {
	Name  string
	Value json.RawMessage
}

// members are the members of a JSON object, in their order. Those that no page shows are left out:
// there are at most maxFields + 1, so that a page knows whether there are more than it shows.
type members []member

// isCut reports whether there may be more members.
func (m members) isCut() bool { return len(m) > maxFields }

// UnmarshalJSON decodes an object.
func (m *members) UnmarshalJSON(j []byte) error {
	d := json.NewDecoder(bytes.NewReader(j))
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return fmt.Errorf("properties must be an object")
	}
	for d.More() && !m.isCut() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return err
		}
		*m = append(*m, member{name.(string), value})
	}
	return nil
}

// schemas parses the schemas of a document, and resolves their references.
type schemas struct {
	definitions map[string]json.RawMessage
	// budget is the number of bytes that may still be parsed. References can repeat a part of a
	// document without end.
	budget *int
}

// parseBudget is the budget of [schemas]: 40 times the largest document.
const parseBudget = 40 << 20

// newSchemas returns the schemas of a document, with the references that it defines.
func newSchemas(document json.RawMessage) schemas {
	var d struct {
		Defs        map[string]json.RawMessage `json:"$defs"`
		Definitions map[string]json.RawMessage `json:"definitions"`
	}
	_ = json.Unmarshal(document, &d) // a document of another form defines nothing
	all := map[string]json.RawMessage{"#": document}
	for name, def := range d.Definitions {
		all["#/definitions/"+name] = def
	}
	for name, def := range d.Defs {
		all["#/$defs/"+name] = def
	}
	budget := parseBudget
	return schemas{all, &budget}
}

// parse returns a schema with its references and parts of allOf merged. A schema that is not an
// object, or has members of other types, describes any value. Nothing is merged into a schema with more
// members than a page shows.
func (s schemas) parse(j json.RawMessage) schema { return s.parseWithin(j, maxDepth) }

func (s schemas) parseWithin(j json.RawMessage, depth int) schema {
	var parsed schema
	if *s.budget -= len(j) + 1<<10; *s.budget < 0 || len(j) == 0 || json.Unmarshal(j, &parsed) != nil {
		return schema{}
	}
	if depth == 0 || parsed.Properties.isCut() {
		return parsed
	}
	if target, ok := s.definitions[parsed.Ref]; ok {
		parsed = s.fill(parsed, s.parseWithin(target, depth-1))
	}
	for _, part := range parsed.AllOf[:min(len(parsed.AllOf), maxFields)] {
		if parsed.Properties.isCut() {
			break
		}
		parsed = s.fill(parsed, s.parseWithin(part, depth-1))
	}
	return parsed
}

// fill is [schema.fillFrom] within the budget: schemas that are merged again and again are copied again
// and again.
func (s schemas) fill(target, from schema) schema {
	if *s.budget -= mergeCost * (len(target.Properties) + len(target.Required) + len(from.Properties) + len(from.Required)); *s.budget < 0 {
		return target
	}
	return target.fillFrom(from)
}

// mergeCost is what a merged name takes of the budget, in bytes that are parsed in the same time.
const mergeCost = 64

// fillFrom fills the missing keywords of s from o.
func (s schema) fillFrom(o schema) schema {
	if s.Type == nil {
		s.Type = o.Type
	}
	if s.Title == "" {
		s.Title = o.Title
	}
	if s.Description == "" {
		s.Description = o.Description
	}
	if s.Default == nil {
		s.Default = o.Default
	}
	if s.Const == nil {
		s.Const = o.Const
	}
	if s.Enum == nil {
		s.Enum, s.EnumNames = o.Enum, o.EnumNames
	}
	if s.Items == nil {
		s.Items = o.Items
	}
	if s.OneOf == nil && s.AnyOf == nil {
		s.OneOf, s.AnyOf = o.OneOf, o.AnyOf
	}
	if s.Format == "" {
		s.Format = o.Format
	}
	if s.Pattern == "" {
		s.Pattern = o.Pattern
	}
	if s.Minimum == "" {
		s.Minimum = o.Minimum
	}
	if s.Maximum == "" {
		s.Maximum = o.Maximum
	}
	if s.MaxLength == nil {
		s.MaxLength = o.MaxLength
	}
	if s.MinLength == nil {
		s.MinLength = o.MinLength
	}
	if s.MinItems == nil {
		s.MinItems = o.MinItems
	}
	if s.MaxItems == nil {
		s.MaxItems = o.MaxItems
	}
	if len(o.Properties) > 0 {
		known := map[string]bool{}
		for _, p := range s.Properties {
			known[p.Name] = true
		}
		for _, p := range o.Properties {
			if !known[p.Name] {
				s.Properties, known[p.Name] = append(s.Properties, p), true
			}
		}
	}
	s.Required = s.Required.with(o.Required)
	return s
}

// merge returns the schema of an alternative with the properties beside it.
func (s schemas) merge(base schema, branch json.RawMessage) json.RawMessage {
	b := s.parse(branch)
	if base.Properties == nil && (base.Type == nil || b.Type != nil) {
		return branch
	}
	base.OneOf, base.AnyOf, base.AllOf, base.Default, base.Ref = nil, nil, nil, nil, ""
	merged := s.fill(b, base)
	merged.Ref, merged.AllOf = "", nil
	return merged.json()
}

// json encodes a schema. Its properties have the order of s.
func (s schema) json() json.RawMessage {
	properties := bytes.NewBufferString("{")
	for i, p := range s.Properties {
		name, _ := json.Marshal(p.Name) // strings always encode
		if i > 0 {
			properties.WriteByte(',')
		}
		fmt.Fprintf(properties, "%s:%s", name, p.Value)
	}
	properties.WriteByte('}')
	all := map[string]any{"required": append([]string{}, s.Required...)}
	set := func(name string, value any, isSet bool) {
		if isSet {
			all[name] = value
		}
	}
	set("type", []string(s.Type), s.Type != nil)
	set("title", s.Title, s.Title != "")
	set("description", s.Description, s.Description != "")
	set("properties", json.RawMessage(properties.Bytes()), s.Properties != nil)
	set("items", s.Items, s.Items != nil)
	set("const", s.Const, s.Const != nil)
	set("enum", s.Enum, s.Enum != nil)
	set("oneOf", s.OneOf, s.OneOf != nil)
	set("anyOf", s.AnyOf, s.AnyOf != nil)
	set("format", s.Format, s.Format != "")
	set("enumNames", s.EnumNames, s.EnumNames != nil)
	set("pattern", s.Pattern, s.Pattern != "")
	set("minLength", s.MinLength, s.MinLength != nil)
	set("maxLength", s.MaxLength, s.MaxLength != nil)
	set("minItems", s.MinItems, s.MinItems != nil)
	set("maxItems", s.MaxItems, s.MaxItems != nil)
	set("writeOnly", s.WriteOnly, s.WriteOnly)
	set("minimum", s.Minimum, s.Minimum != "")
	set("maximum", s.Maximum, s.Maximum != "")
	encoded, err := json.Marshal(all)
	if err != nil {
		return json.RawMessage("{}") // a part that is not JSON
	}
	return encoded
}

// branches returns the alternatives of a schema, nil if it has none or too many.
func (s schema) branches() []json.RawMessage {
	all := s.OneOf
	if all == nil {
		all = s.AnyOf
	}
	if len(all) > maxOptions {
		return nil
	}
	return all
}

// required returns the names of the required members.
func (s schema) required() map[string]bool {
	names := map[string]bool{}
	for _, name := range s.Required {
		names[name] = true
	}
	return names
}

// values returns the permitted values of an enumeration and their names, nil if the schema is none.
// Alternatives that are constants are an enumeration too.
func (s schemas) values(of schema) (values []json.RawMessage, names []string) {
	switch {
	case of.Const != nil:
		return []json.RawMessage{of.Const}, []string{plain(of.Const)}
	case len(of.Enum) > 0 && len(of.Enum) <= maxOptions:
		for i, v := range of.Enum {
			names = append(names, plain(v))
			if len(of.EnumNames) == len(of.Enum) {
				names[i] = of.EnumNames[i]
			}
		}
		return of.Enum, names
	}
	for _, branch := range of.branches() {
		b := s.parse(branch)
		if b.Const == nil || len(values) >= maxOptions {
			return nil, nil
		}
		name := b.Title
		if name == "" {
			name = plain(b.Const)
		}
		values, names = append(values, b.Const), append(names, name)
	}
	return values, names
}

// plain returns a JSON value as a person reads it: a string without quotes.
func plain(j json.RawMessage) string {
	var text string
	if len(j) > 0 && j[0] == '"' && json.Unmarshal(j, &text) == nil {
		return text
	}
	return string(j)
}

// kind returns the type of the values of a schema; "" if there are several.
func (s schema) kind() string {
	types := slices.DeleteFunc(slices.Clone(s.Type), func(t string) bool { return t == "null" })
	switch {
	case len(types) == 1:
		return types[0]
	case len(types) == 0 && s.Properties != nil:
		return "object"
	}
	return ""
}

// hints describes the constraints of a schema.
func (s schema) hints() []string {
	var all []string
	add := func(format string, value any) { all = append(all, fmt.Sprintf(format, value)) }
	if s.Format != "" {
		add("%s", s.Format)
	}
	if s.Minimum != "" {
		add("at least %s", s.Minimum)
	}
	if s.Maximum != "" {
		add("at most %s", s.Maximum)
	}
	if s.MinLength != nil {
		add("at least %d characters", *s.MinLength)
	}
	if s.MaxLength != nil {
		add("at most %d characters", *s.MaxLength)
	}
	if s.MinItems != nil {
		add("at least %d entries", *s.MinItems)
	}
	if s.MaxItems != nil {
		add("at most %d entries", *s.MaxItems)
	}
	if s.Pattern != "" {
		add("pattern %s", s.Pattern)
	}
	return all
}

// description describes a value for a person. Members belong to an object, or to the entries of
// a list.
type description struct {
	Name, Type, Text string
	Required         bool
	Hints            []string
	Default          string
	Members          []description
}

// describe describes the members of a document, to a bounded depth and number. more reports that
// some are left out.
func describe(document json.RawMessage) (all []description, more bool) {
	if len(document) == 0 {
		return nil, false
	}
	d := describer{schemas: newSchemas(document)}
	top := d.describe("", document, true, 0)
	if len(top.Members) == 0 && top.Type != "object" {
		top.Name = "value"
		return []description{top}, d.more
	}
	return top.Members, d.more
}

type describer struct {
	schemas
	count int
	more  bool
}

func (d *describer) describe(name string, j json.RawMessage, isRequired bool, depth int) description {
	s := d.parse(j)
	d.count++
	out := description{Name: name, Text: s.Description, Required: isRequired, Hints: s.hints(), Default: string(s.Default), Type: strings.Join(s.Type, " or ")}
	if out.Text == "" {
		out.Text = s.Title
	}
	if values, names := d.values(s); values != nil {
		out.Type = "one of " + strings.Join(names, ", ")
		return out
	}
	inner := s
	if s.kind() == "array" && len(s.Items) > 0 {
		inner = d.parse(s.Items)
		if of := inner.kind(); of != "" {
			out.Type = "list of " + of
		}
	}
	if depth >= maxDepth {
		d.more = d.more || inner.Properties != nil || inner.branches() != nil
		return out
	}
	add := func(name string, j json.RawMessage, required bool) {
		if d.count >= maxFields {
			d.more = true
			return
		}
		out.Members = append(out.Members, d.describe(name, j, required, depth+1))
	}
	required := inner.required()
	for _, p := range inner.Properties {
		add(p.Name, p.Value, required[p.Name])
	}
	if branches := inner.branches(); branches != nil && out.Type == "" {
		out.Type = "one of these"
	}
	for i, b := range inner.branches() {
		add(fmt.Sprintf("choice %d", i+1), b, false)
	}
	if out.Type == "" {
		out.Type = s.kind()
	}
	if out.Type == "" {
		out.Type = "any value"
	}
	return out
}

// schemaOf returns the schema of the arguments of an item: the schema of a tool, or strings.
func schemaOf(i control.ItemResult) json.RawMessage {
	if i.Kind == "tool" {
		return i.Input
	}
	var b bytes.Buffer
	required := []string{}
	b.WriteString(`{"type":"object","properties":{`)
	for n, a := range i.Arguments {
		if n > 0 {
			b.WriteByte(',')
		}
		name, _ := json.Marshal(a.Name) // strings always encode
		property, _ := json.Marshal(map[string]string{"type": "string", "description": a.Description})
		fmt.Fprintf(&b, "%s:%s", name, property)
		if a.Required {
			required = append(required, a.Name)
		}
	}
	encoded, _ := json.Marshal(required)
	fmt.Fprintf(&b, `},"required":%s}`, encoded)
	return b.Bytes()
}
