package hclfile

import (
	"encoding/json"
	"slices"
)

// PolicyInput is the schema of the arguments as policies and bodies see them:
// with the inputs that are computed.
func (t *Tool) PolicyInput() json.RawMessage {
	if len(t.From) == 0 {
		return t.Input
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(t.Input, &object) != nil {
		return t.Input
	}
	var properties map[string]json.RawMessage
	if json.Unmarshal(object["properties"], &properties) != nil || properties == nil {
		properties = map[string]json.RawMessage{}
	}
	var required []string
	if json.Unmarshal(object["required"], &required) != nil {
		required = nil
	}
	for _, from := range t.From {
		properties[from.Name] = from.Schema
		required = append(required, from.Name)
	}
	for name, value := range map[string]any{"properties": properties, "required": required} {
		encoded, err := json.Marshal(value)
		if err != nil {
			return t.Input
		}
		object[name] = encoded
	}
	whole, err := json.Marshal(object)
	if err != nil {
		return t.Input
	}
	return whole
}

// InputNames returns the names of all inputs, computed ones too, sorted; closed
// says that the tool accepts no others.
func (t *Tool) InputNames() (names []string, closed bool) {
	var keywords map[string]json.RawMessage
	var properties map[string]json.RawMessage
	if json.Unmarshal(t.Input, &keywords) != nil {
		return nil, false
	}
	if json.Unmarshal(keywords["properties"], &properties) != nil {
		properties = nil
	}
	for name := range properties {
		names = append(names, name)
	}
	for _, from := range t.From {
		names = append(names, from.Name)
	}
	slices.Sort(names)
	return names, string(keywords["additionalProperties"]) == "false"
}
