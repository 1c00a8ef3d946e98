package overlay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
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

// MarshalJSON encodes the fields as the members of an object.
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

// member is one of an object.
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
