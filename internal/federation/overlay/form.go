package overlay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"

	"github.com/mcpd/mcpd/internal/base/safetext"
)

// form is the schema of a form as clients get it: an object of fields that hold no others
// (2025-11-25 and 2026-07-28 client/elicitation, Requested Schema).
type form struct {
	Type     string   `json:"type"`
	Fields   fields   `json:"properties"`
	Required []string `json:"required,omitempty"`
}

// fields are those of a form, in the order in which people see them.
type fields []field

func (f fields) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i := range f {
		name, err := json.Marshal(f[i].name)
		if err != nil {
			return nil, err
		}
		schema, err := json.Marshal(f[i])
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(append(append(name, ':'), schema...))
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// maxForm bounds the schema of a form, in bytes: people fill in no longer one.
const maxForm = 64 << 10

// formOf returns the form of a schema. Of what MCP does not know nothing is in it, and what
// it says to people is as title writes it. No schema is a form without fields: people agree
// to its message.
func formOf(schema json.RawMessage, title func(string) string) (*form, error) {
	f := &form{Type: "object", Fields: fields{}}
	switch {
	case isAbsent(schema):
		return f, nil
	case len(schema) > maxForm:
		return nil, fmt.Errorf("the schema of a form has %d KiB at most", maxForm>>10)
	}
	said := given(schema)
	if said.text("type") != f.Type {
		return nil, errors.New("the schema of a form is of the type object")
	}
	properties, err := inOrder(said["properties"])
	if err != nil {
		return nil, errors.New("the properties of a form are an object")
	}
	for i, p := range properties {
		added, err := fieldOf(p, title)
		if err != nil {
			return nil, fmt.Errorf("field %d of the form: %w", i+1, err)
		}
		f.Fields = append(f.Fields, added)
	}
	if required := said["required"]; required != nil && json.Unmarshal(required, &f.Required) != nil {
		return nil, errors.New("what a form requires is a list of names")
	}
	f.Required = slices.DeleteFunc(f.Required, func(name string) bool {
		return !slices.ContainsFunc(f.Fields, func(f field) bool { return f.name == name && !f.nullable })
	})
	return f, nil
}

type member struct {
	name  string
	value json.RawMessage
}

// inOrder returns the members of an object in their order; none of an absent one.
func inOrder(object json.RawMessage) (all []member, err error) {
	if isAbsent(object) {
		return nil, nil
	}
	if !isObject(object) {
		return nil, errors.New("it is no object")
	}
	d := json.NewDecoder(bytes.NewReader(object))
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		m := member{name: name.(string)} // what else would be no object
		if err := d.Decode(&m.value); err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

// given returns the members of an object that are not null, which some servers write for
// what is absent.
func given(object json.RawMessage) members {
	m := decoded(object)
	for name, value := range m {
		if isAbsent(value) {
			delete(m, name)
		}
	}
	return m
}

func isAbsent(value json.RawMessage) bool { return value == nil || string(value) == "null" }

// field is a field of a form: a text, a number, a yes or no, or choices.
type field struct {
	name     string
	nullable bool // the server takes null for an answer, so nobody has to give one

	Type        string          `json:"type"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	Format      string          `json:"format,omitempty"`
	Pattern     string          `json:"pattern,omitempty"`
	MinLength   json.RawMessage `json:"minLength,omitempty"`
	MaxLength   json.RawMessage `json:"maxLength,omitempty"`
	Minimum     json.RawMessage `json:"minimum,omitempty"`
	Maximum     json.RawMessage `json:"maximum,omitempty"`
	choices
	MinItems json.RawMessage `json:"minItems,omitempty"`
	MaxItems json.RawMessage `json:"maxItems,omitempty"`
	Items    *items          `json:"items,omitempty"`
	Default  json.RawMessage `json:"default,omitempty"`
}

type choices struct {
	Enum  []string `json:"enum,omitempty"`
	Names []string `json:"enumNames,omitempty"`
	OneOf []choice `json:"oneOf,omitempty"`
}

type choice struct {
	Const string `json:"const"`
	Title string `json:"title"`
}

type items struct {
	Type  string   `json:"type,omitempty"`
	Enum  []string `json:"enum,omitempty"`
	AnyOf []choice `json:"anyOf,omitempty"`
}

var formats = []string{"email", "uri", "date", "date-time"}

// fieldOf returns a field. What goes back to the server as it is, its name and what can be
// chosen, is shown as it is, or there is no such field.
func fieldOf(m member, title func(string) string) (field, error) {
	said, nullable := withoutNull(given(m.value))
	f := field{name: m.name, nullable: nullable, Type: said.text("type"), Title: title(said.text("title")), Description: title(said.text("description"))}
	if !safetext.Shows(f.name) {
		return f, errors.New("its name does not show what it holds")
	}
	switch f.Type {
	case "string":
		return f, f.text(said, title)
	case "number", "integer":
		f.preset(said, isNumber)
		return f, bounds(said, isNumber, map[string]*json.RawMessage{"minimum": &f.Minimum, "maximum": &f.Maximum})
	case "boolean":
		f.preset(said, func(json.RawMessage) bool { return said.flag("default") != nil })
		return f, nil
	case "array":
		return f, f.list(said, title)
	}
	return f, errors.New("its type is none of string, number, integer, boolean and array")
}

// text takes over what is said of a text, or of choices.
func (f *field) text(said members, title func(string) string) (err error) {
	f.preset(said, func(value json.RawMessage) bool { return showsAll("[" + string(value) + "]") })
	switch {
	case said["enum"] != nil:
		return f.enum(said, title)
	case said["oneOf"] != nil:
		f.OneOf, err = titled(said["oneOf"], title)
		return err
	}
	if f.Format = said.text("format"); said["format"] != nil && !slices.Contains(formats, f.Format) {
		return errors.New("its format is none of email, uri, date and date-time")
	}
	if pattern := said.text("pattern"); len(pattern) <= maxTitle {
		if _, err := regexp.Compile(pattern); err == nil {
			f.Pattern = pattern // the server holds answers to others
		}
	}
	return bounds(said, isCount, map[string]*json.RawMessage{"minLength": &f.MinLength, "maxLength": &f.MaxLength})
}

// enum takes over choices, and their names as earlier revisions than 2025-11-25 have them.
func (f *field) enum(said members, title func(string) string) (err error) {
	if f.Enum, err = chosen(said["enum"]); err != nil || said["enumNames"] == nil {
		return err
	}
	if json.Unmarshal(said["enumNames"], &f.Names) != nil || len(f.Names) != len(f.Enum) {
		return errors.New("its enumNames are not the names of its choices")
	}
	for i, name := range f.Names {
		f.Names[i] = title(name)
	}
	return nil
}

// list takes over choices of which there may be some.
func (f *field) list(said members, title func(string) string) (err error) {
	f.preset(said, func(value json.RawMessage) bool { return showsAll(string(value)) })
	of := given(said["items"])
	switch {
	case of["enum"] != nil && of.text("type") == "string":
		f.Items = &items{Type: "string"}
		f.Items.Enum, err = chosen(of["enum"])
	case of["anyOf"] != nil:
		f.Items = &items{}
		f.Items.AnyOf, err = titled(of["anyOf"], title)
	default:
		err = errors.New("its items are no choices")
	}
	return errors.Join(err, bounds(said, isCount, map[string]*json.RawMessage{"minItems": &f.MinItems, "maxItems": &f.MaxItems}))
}

// preset takes over what stands in the field at first. One that does not fit, or does not
// show what it holds, is left out without a word: people can do without.
func (f *field) preset(said members, fits func(json.RawMessage) bool) {
	if value := said["default"]; value != nil && fits(value) {
		f.Default = value
	}
}

// errChoices says that choices are none.
var errChoices = errors.New("its choices are not texts that show what they hold")

func chosen(list json.RawMessage) (values []string, err error) {
	if !showsAll(string(list)) || json.Unmarshal(list, &values) != nil || len(values) == 0 {
		return nil, errChoices
	}
	return values, nil
}

// titled returns choices with titles: their own ones, or what goes back to the server.
func titled(list json.RawMessage, title func(string) string) ([]choice, error) {
	var said []members
	if json.Unmarshal(list, &said) != nil || len(said) == 0 {
		return nil, errChoices
	}
	of := make([]choice, len(said))
	for i, m := range said {
		if isAbsent(m["const"]) || json.Unmarshal(m["const"], &of[i].Const) != nil || !safetext.Shows(of[i].Const) {
			return nil, errChoices
		}
		if of[i].Title = title(m.text("title")); of[i].Title == "" {
			of[i].Title = of[i].Const
		}
	}
	return of, nil
}

func showsAll(list string) bool {
	var texts []*string
	if json.Unmarshal([]byte(list), &texts) != nil {
		return false
	}
	return !slices.ContainsFunc(texts, func(text *string) bool { return text == nil || !safetext.Shows(*text) })
}

func bounds(said members, fits func(json.RawMessage) bool, to map[string]*json.RawMessage) error {
	for name, to := range to {
		if *to = said[name]; *to != nil && !fits(*to) {
			return fmt.Errorf("its %s is no number that it can be", name)
		}
	}
	return nil
}

func isNumber(value json.RawMessage) bool {
	var n *float64
	return json.Unmarshal(value, &n) == nil && n != nil
}

// isCount reports whether a value is a whole number from 0 on, however it is written (JSON Schema
// 2020-12 core, 6.3).
func isCount(value json.RawMessage) bool {
	var n *float64
	return json.Unmarshal(value, &n) == nil && n != nil && *n >= 0 && *n == math.Trunc(*n)
}

// withoutNull returns what is said of a field that may be null as if it might not: MCP knows
// of no such fields, and Python servers write them for what is optional. It reports whether
// it was one.
func withoutNull(said members) (members, bool) {
	var types []string
	var either []json.RawMessage
	of := members{}
	switch {
	case json.Unmarshal(said["type"], &types) == nil && len(types) == 2 && slices.Contains(types, "null"):
		other := types[0]
		if other == "null" {
			other = types[1]
		}
		maps.Copy(of, said)
		of["type"], _ = json.Marshal(other) // text always encodes
	case said["type"] == nil && json.Unmarshal(said["anyOf"], &either) == nil && len(either) == 2:
		null := slices.IndexFunc(either, func(one json.RawMessage) bool { return given(one).text("type") == "null" })
		if null < 0 {
			return said, false
		}
		maps.Copy(of, given(either[1-null]))
		maps.Copy(of, said) // what is said of the field as a whole goes before
		delete(of, "anyOf")
	default:
		return said, false
	}
	var enum []json.RawMessage
	if json.Unmarshal(of["enum"], &enum) == nil {
		// What was read always encodes.
		of["enum"], _ = json.Marshal(slices.DeleteFunc(enum, isAbsent))
	}
	return of, true
}
