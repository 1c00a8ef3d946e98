package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpd/mcpd/internal/ops/control"
)

// decodeForm decodes a posted form by the schema of a document. invalid reports text that is no
// value of its field.
func decodeForm(document json.RawMessage, posted url.Values) (value any, invalid bool) {
	d := formDecoder{formBuilder: formBuilder{schemas: newSchemas(document), posted: posted}}
	value, present := d.value("", document, true, 0)
	if !present {
		value = map[string]any{}
	}
	return value, d.invalid
}

// readArguments reads the arguments of a posted form. If they are not complete, or a button of the
// form changes it, call is false, and the form is that to show.
func readArguments(row control.ItemResult, posted url.Values) (arguments json.RawMessage, f form, call bool) {
	document, button := schemaOf(row), posted.Get("edit")
	if posted.Get("mode") == "json" {
		text := strings.TrimSpace(posted.Get("json"))
		if text == "" {
			text = "{}"
		}
		value, isObject := decodeJSON([]byte(text)).(map[string]any)
		switch {
		case !isObject:
			return nil, rawForm(text, "This is not a JSON object."), false
		case button == "form":
			return nil, formOf("", document, value, nil), false
		}
		return []byte(text), rawForm(text, ""), button == ""
	}
	value, invalid := decodeForm(document, posted)
	if object, ok := value.(map[string]any); ok && row.Kind == "prompt" { // an empty field is no argument
		maps.DeleteFunc(object, func(_ string, member any) bool { return member == "" })
	}
	switch {
	case button == "json":
		return nil, rawForm(textOf(value), ""), false
	case strings.HasPrefix(button, "remove/"): // the alternatives of later entries move
		return nil, formOf("", document, edit(value, button), nil), false
	case button != "":
		return nil, formOf("", document, edit(value, button), posted), false
	}
	f = formOf("", document, value, posted)
	encoded, err := json.Marshal(value)
	return encoded, f, !invalid && err == nil
}

type formDecoder struct {
	formBuilder
	invalid bool
}

// value decodes the value of a schema. present is false for an optional value that was left empty.
func (d *formDecoder) value(pointer string, j json.RawMessage, required bool, depth int) (value any, present bool) {
	text := d.posted.Get("arg" + pointer)
	if d.count++; d.count > maxFields || depth > maxDepth {
		return d.json(text)
	}
	s := d.parse(j)
	if values, _ := d.values(s); values != nil {
		return d.selected(values, text)
	}
	if branches := s.branches(); branches != nil {
		return d.value(pointer, d.merge(s, branches[d.chosen(pointer, s, branches, nil)]), required, depth+1)
	}
	switch s.kind() {
	case "object":
		if !hasFields(s, j) {
			break
		}
		object := map[string]any{}
		isRequired := s.required()
		for _, p := range s.Properties {
			if v, ok := d.value(pointed(pointer, p.Name), p.Value, isRequired[p.Name], depth+1); ok {
				object[p.Name] = v
			}
		}
		return object, required || filled(object)
	case "array":
		if !isObject(s.Items) {
			break
		}
		n, _ := strconv.Atoi(d.posted.Get("len" + pointer))
		list := []any{}
		for i := range max(0, min(n, maxFields)) {
			v, _ := d.value(pointed(pointer, strconv.Itoa(i)), s.Items, true, depth+1)
			list = append(list, v)
		}
		return list, required || len(list) > 0
	case "string":
		return text, text != "" || required
	case "number", "integer":
		text = strings.TrimSpace(text)
		if number, ok := decodeJSON([]byte(text)).(json.Number); ok {
			return number, true
		}
		return d.bad(text)
	case "boolean":
		return d.selected([]json.RawMessage{[]byte("true"), []byte("false")}, text)
	}
	return d.json(text)
}

// filled reports whether a value has a part that was not left empty. Required texts and lists in it
// have an empty value.
func filled(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		for _, member := range v {
			if filled(member) {
				return true
			}
		}
		return false
	case []any:
		return len(v) > 0
	case string:
		return v != ""
	}
	return true
}

// selected returns the value with an index.
func (d *formDecoder) selected(values []json.RawMessage, text string) (any, bool) {
	if i, err := strconv.Atoi(text); err == nil && i >= 0 && i < len(values) {
		return decodeJSON(values[i]), true
	}
	return nil, false
}

func (d *formDecoder) json(text string) (any, bool) {
	if text = strings.TrimSpace(text); text == "" {
		return nil, false
	}
	if !json.Valid([]byte(text)) {
		return d.bad(text)
	}
	return decodeJSON([]byte(text)), true
}

// bad returns typed text that does not fit, unless it is empty.
func (d *formDecoder) bad(text string) (any, bool) {
	if text == "" {
		return nil, false
	}
	d.invalid = true
	return invalidText(text), true
}

// decodeJSON decodes JSON with exact numbers; nil if it is no JSON.
func decodeJSON(j []byte) any {
	d := json.NewDecoder(bytes.NewReader(j))
	d.UseNumber()
	var value any
	if d.Decode(&value) != nil {
		return nil
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil
	}
	return value
}

// isObject reports whether JSON is an object.
func isObject(j json.RawMessage) bool { return len(j) > 0 && bytes.TrimSpace(j)[0] == '{' }

// sameJSON reports whether a decoded value equals JSON.
func sameJSON(value any, j json.RawMessage) bool {
	if sizeLeft(value, len(j)) < 0 { // such as a long text and each of many permitted values
		return false
	}
	a, errA := json.Marshal(value)
	b, errB := json.Marshal(decodeJSON(j))
	return errA == nil && errB == nil && bytes.Equal(a, b)
}

// sizeLeft subtracts the minimum size of a value as JSON from a number of bytes. It stops below 0.
func sizeLeft(value any, size int) int {
	switch v := value.(type) {
	case string:
		size -= len(v) + len(`""`)
	case invalidText:
		size -= len(v) + len(`""`)
	case json.Number:
		size -= len(v)
	case map[string]any:
		size -= len(`{}`)
		for name, member := range v {
			if size < 0 {
				break
			}
			size = sizeLeft(member, size-len(name)-len(`"":`))
		}
	case []any:
		size -= len(`[]`)
		for _, entry := range v {
			if size < 0 {
				break
			}
			size = sizeLeft(entry, size)
		}
	default: // null and booleans
		size -= len(`null`)
	}
	return size
}

// maxPointer is the maximum number of parts of the pointer to a list in a form.
const maxPointer = 2 * maxDepth

// edit changes a value as a button of a form says: add/POINTER adds an entry to a list, and
// remove/POINTER removes one. A pointer that no form has changes nothing: a deep value would
// overflow the stack.
func edit(value any, action string) any {
	verb, pointer, _ := strings.Cut(action, "/")
	if strings.Count(pointer, "/") > maxPointer {
		return value
	}
	var path []string
	for part := range strings.SplitSeq(pointer, "/") {
		path = append(path, memberName(part))
	}
	switch verb {
	case "add":
		return change(value, path, func(v any) any {
			list, _ := v.([]any)
			if len(list) >= maxFields {
				return list
			}
			return append(slices.Clone(list), nil)
		})
	case "remove":
		last := len(path) - 1
		return change(value, path[:last], func(v any) any {
			list, _ := v.([]any)
			if i, err := strconv.Atoi(path[last]); err == nil && i >= 0 && i < len(list) {
				return slices.Delete(slices.Clone(list), i, i+1)
			}
			return v
		})
	}
	return value
}

// change returns a value in which the value at a path is replaced. It creates objects on the way.
func change(value any, path []string, with func(any) any) any {
	if len(path) == 0 {
		return with(value)
	}
	switch v := value.(type) {
	case []any:
		if i, err := strconv.Atoi(path[0]); err == nil && i >= 0 && i < len(v) {
			v[i] = change(v[i], path[1:], with)
		}
		return v
	case map[string]any:
		v[path[0]] = change(v[path[0]], path[1:], with)
		return v
	case nil:
		return map[string]any{path[0]: change(nil, path[1:], with)}
	}
	return value
}
