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

// form is the schema of a form as clients receive it: an object with flat fields (2025-11-25
// and 2026-07-28 client/elicitation, Requested Schema).
type form struct {
	Type     string   `json:"type"`
	Fields   fields   `json:"properties"`
	Required []string `json:"required,omitempty"`
}

// fields are the fields of a form in display order.
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

// maxForm bounds the schema of a form, in bytes: users do not fill in longer ones.
const maxForm = 64 << 10

// newForm returns the form of a schema. It drops members that MCP does not define, and passes
// texts for users through title. Without a schema the form has no fields: users confirm the
// message.
func newForm(schema json.RawMessage, title func(string) string) (*form, error) {
	f := &form{Type: "object", Fields: fields{}}
	switch {
	case isAbsent(schema):
		return f, nil
	case len(schema) > maxForm:
		return nil, fmt.Errorf("the schema of a form is longer than %d KiB", maxForm>>10)
	}
	object := presentMembers(schema)
	if object.text("type") != f.Type {
		return nil, errors.New("the schema of a form must have the type object")
	}
	properties, err := orderedMembers(object["properties"])
	if err != nil {
		return nil, errors.New("the properties of a form must be an object")
	}
	for i, p := range properties {
		added, err := newField(p, title)
		if err != nil {
			return nil, fmt.Errorf("field %d of the form: %w", i+1, err)
		}
		f.Fields = append(f.Fields, added)
	}
	if required := object["required"]; required != nil && json.Unmarshal(required, &f.Required) != nil {
		return nil, errors.New("required must be a list of names")
	}
	f.Required = slices.DeleteFunc(f.Required, func(name string) bool {
		return !slices.ContainsFunc(f.Fields, func(f field) bool { return f.name == name && !f.nullable })
	})
	return f, nil
}

type jsonMember struct {
	name  string
	value json.RawMessage
}

// orderedMembers returns the members of an object in their order, or none if it is absent.
func orderedMembers(object json.RawMessage) (all []jsonMember, err error) {
	if isAbsent(object) {
		return nil, nil
	}
	if !isObject(object) {
		return nil, errors.New("it is not an object")
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
		m := jsonMember{name: name.(string)} // object keys are strings
		if err := d.Decode(&m.value); err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

// presentMembers returns the members of an object that are not null. Some servers write null
// for absent members.
func presentMembers(object json.RawMessage) jsonObject {
	m := decoded(object)
	for name, value := range m {
		if isAbsent(value) {
			delete(m, name)
		}
	}
	return m
}

func isAbsent(value json.RawMessage) bool { return value == nil || string(value) == "null" }

// field is a field of a form: a string, a number, a boolean, or choices.
type field struct {
	name     string
	nullable bool // the server accepts null, so the field is not required

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

// newField converts a field. Its name and choices return to the server unchanged, so they must
// display unchanged, or the field is an error.
func newField(m jsonMember, title func(string) string) (field, error) {
	object, nullable := withoutNull(presentMembers(m.value))
	f := field{name: m.name, nullable: nullable, Type: object.text("type"), Title: title(object.text("title")), Description: title(object.text("description"))}
	if !safetext.Shows(f.name) {
		return f, errors.New("its name contains hidden characters")
	}
	switch f.Type {
	case "string":
		return f, f.setText(object, title)
	case "number", "integer":
		f.setDefault(object, isNumber)
		return f, setBounds(object, isNumber, map[string]*json.RawMessage{"minimum": &f.Minimum, "maximum": &f.Maximum})
	case "boolean":
		f.setDefault(object, func(json.RawMessage) bool { return object.boolean("default") != nil })
		return f, nil
	case "array":
		return f, f.setChoices(object, title)
	}
	return f, errors.New("its type is not string, number, integer, boolean or array")
}

// setText converts a string field, or choices.
func (f *field) setText(object jsonObject, title func(string) string) (err error) {
	f.setDefault(object, func(value json.RawMessage) bool { return allShown("[" + string(value) + "]") })
	switch {
	case object["enum"] != nil:
		return f.setEnum(object, title)
	case object["oneOf"] != nil:
		f.OneOf, err = titledChoices(object["oneOf"], title)
		return err
	}
	if f.Format = object.text("format"); object["format"] != nil && !slices.Contains(formats, f.Format) {
		return errors.New("its format is not email, uri, date or date-time")
	}
	if pattern := object.text("pattern"); len(pattern) <= maxTitle {
		if _, err := regexp.Compile(pattern); err == nil {
			f.Pattern = pattern // the server checks responses against other patterns
		}
	}
	return setBounds(object, isCount, map[string]*json.RawMessage{"minLength": &f.MinLength, "maxLength": &f.MaxLength})
}

// setEnum converts choices, and their names as in revisions before 2025-11-25.
func (f *field) setEnum(object jsonObject, title func(string) string) (err error) {
	if f.Enum, err = stringChoices(object["enum"]); err != nil || object["enumNames"] == nil {
		return err
	}
	if json.Unmarshal(object["enumNames"], &f.Names) != nil || len(f.Names) != len(f.Enum) {
		return errors.New("its enumNames do not match its choices")
	}
	for i, name := range f.Names {
		f.Names[i] = title(name)
	}
	return nil
}

// setChoices converts a multiple-choice field.
func (f *field) setChoices(object jsonObject, title func(string) string) (err error) {
	f.setDefault(object, func(value json.RawMessage) bool { return allShown(string(value)) })
	choices := presentMembers(object["items"])
	switch {
	case choices["enum"] != nil && choices.text("type") == "string":
		f.Items = &items{Type: "string"}
		f.Items.Enum, err = stringChoices(choices["enum"])
	case choices["anyOf"] != nil:
		f.Items = &items{}
		f.Items.AnyOf, err = titledChoices(choices["anyOf"], title)
	default:
		err = errors.New("its items are not choices")
	}
	return errors.Join(err, setBounds(object, isCount, map[string]*json.RawMessage{"minItems": &f.MinItems, "maxItems": &f.MaxItems}))
}

// setDefault sets the initial value of a field. A default that does not match, or that does not
// display what it holds, is silently dropped: it is optional.
func (f *field) setDefault(object jsonObject, valid func(json.RawMessage) bool) {
	if value := object["default"]; value != nil && valid(value) {
		f.Default = value
	}
}

// errBadChoices rejects invalid choices.
var errBadChoices = errors.New("its choices are not strings without hidden characters")

func stringChoices(list json.RawMessage) (values []string, err error) {
	if !allShown(string(list)) || json.Unmarshal(list, &values) != nil || len(values) == 0 {
		return nil, errBadChoices
	}
	return values, nil
}

// titledChoices returns choices with their titles, which default to the returned values.
func titledChoices(list json.RawMessage, title func(string) string) ([]choice, error) {
	var entries []jsonObject
	if json.Unmarshal(list, &entries) != nil || len(entries) == 0 {
		return nil, errBadChoices
	}
	all := make([]choice, len(entries))
	for i, m := range entries {
		if isAbsent(m["const"]) || json.Unmarshal(m["const"], &all[i].Const) != nil || !safetext.Shows(all[i].Const) {
			return nil, errBadChoices
		}
		if all[i].Title = title(m.text("title")); all[i].Title == "" {
			all[i].Title = all[i].Const
		}
	}
	return all, nil
}

func allShown(list string) bool {
	var texts []*string
	if json.Unmarshal([]byte(list), &texts) != nil {
		return false
	}
	return !slices.ContainsFunc(texts, func(text *string) bool { return text == nil || !safetext.Shows(*text) })
}

func setBounds(object jsonObject, valid func(json.RawMessage) bool, fields map[string]*json.RawMessage) error {
	for name, field := range fields {
		if *field = object[name]; *field != nil && !valid(*field) {
			return fmt.Errorf("its %s is not a valid number", name)
		}
	}
	return nil
}

func isNumber(value json.RawMessage) bool {
	var n *float64
	return json.Unmarshal(value, &n) == nil && n != nil
}

// isCount reports whether a value is a whole number ≥ 0 in any spelling (JSON Schema 2020-12
// core, 6.3).
func isCount(value json.RawMessage) bool {
	var n *float64
	return json.Unmarshal(value, &n) == nil && n != nil && *n >= 0 && *n == math.Trunc(*n)
}

// withoutNull returns the members of a nullable field as if it were not nullable: MCP does not
// define nullable fields, and Python servers write them for optional values. It reports whether
// the field was nullable.
func withoutNull(object jsonObject) (jsonObject, bool) {
	var types []string
	var either []json.RawMessage
	members := jsonObject{}
	switch {
	case json.Unmarshal(object["type"], &types) == nil && len(types) == 2 && slices.Contains(types, "null"):
		other := types[0]
		if other == "null" {
			other = types[1]
		}
		maps.Copy(members, object)
		members["type"], _ = json.Marshal(other) // text always encodes
	case object["type"] == nil && json.Unmarshal(object["anyOf"], &either) == nil && len(either) == 2:
		null := slices.IndexFunc(either, func(one json.RawMessage) bool { return presentMembers(one).text("type") == "null" })
		if null < 0 {
			return object, false
		}
		maps.Copy(members, presentMembers(either[1-null]))
		maps.Copy(members, object) // members of the field itself take precedence
		delete(members, "anyOf")
	default:
		return object, false
	}
	var enum []json.RawMessage
	if json.Unmarshal(members["enum"], &enum) == nil {
		// Decoded JSON always encodes.
		members["enum"], _ = json.Marshal(slices.DeleteFunc(enum, isAbsent))
	}
	return members, true
}
