package redact

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/internal/base/jsonguard"
	"github.com/mcpd/mcpd/internal/base/jsontext"
)

// Mark is the placeholder for a sensitive value.
const Mark = "[sensitive]"

const quotedMark = `"` + Mark + `"`

// Pointers returns a JSON value in which the values at the JSON pointers are replaced
// by [Mark]. The step * matches every member, and any step matches every item of an
// array. All other bytes are unchanged. Without pointers it returns raw, and nil if raw
// is not JSON.
func Pointers(raw json.RawMessage, pointers []string) json.RawMessage {
	if len(pointers) == 0 || len(raw) == 0 {
		return raw
	}
	if !json.Valid(raw) {
		return nil
	}
	paths := make([][]string, len(pointers))
	for i, pointer := range pointers {
		paths[i] = steps(pointer)
	}
	value := bytes.TrimSpace(raw)
	before, after, _ := bytes.Cut(raw, value)
	return slices.Concat(before, appendHidden(nil, value, paths), after)
}

// appendHidden appends a value with placeholders at paths, the remaining steps of the
// pointers. Its recursion is bounded by their length.
func appendHidden(out, value []byte, paths [][]string) []byte {
	if slices.ContainsFunc(paths, func(path []string) bool { return len(path) == 0 }) {
		return append(out, quotedMark...)
	}
	if len(paths) == 0 {
		return append(out, value...)
	}
	return edit(out, value, func(out []byte, name string, inner []byte) []byte {
		var deeper [][]string
		for _, path := range paths {
			if value[0] == '[' || path[0] == "*" || path[0] == name {
				deeper = append(deeper, path[1:])
			}
		}
		return appendHidden(out, inner, deeper)
	})
}

// edit appends an object or array with each value replaced by the output of replace;
// all other bytes are unchanged. Array items have no name. Any other value is appended
// unchanged.
func edit(out, value []byte, replace func(out []byte, name string, inner []byte) []byte) []byte {
	c, object := jsontext.Members(value)
	array := false
	if !object {
		c, array = jsontext.Elements(value)
	}
	copied := 0
	for more := object || array; more; {
		var name, inner []byte
		if object {
			name, inner, more = c.Member()
		} else {
			inner, more = c.Element()
		}
		if more {
			out = append(out, value[copied:c.Offset()-len(inner)]...)
			out = replace(out, string(name), inner)
			copied = c.Offset()
		}
	}
	return append(out, value[copied:]...)
}

// Arguments returns redacted arguments of a call. Valid arguments are redacted by
// [Pointers]. In invalid ones a value may be at a wrong position, so members that
// contain anything sensitive, and members not in names, are replaced completely. It
// returns nil if raw is not an object.
func Arguments(raw json.RawMessage, valid bool, pointers, names []string) json.RawMessage {
	if !jsonguard.IsObject(raw) || !json.Valid(raw) {
		return nil
	}
	if valid || len(pointers) == 0 {
		return Pointers(raw, pointers)
	}
	return edit(nil, raw, func(out []byte, name string, value []byte) []byte {
		sensitive := slices.ContainsFunc(pointers, func(p string) bool {
			first := steps(p)
			return len(first) == 0 || first[0] == name || first[0] == "*"
		})
		if sensitive || !slices.Contains(names, name) {
			return append(out, quotedMark...)
		}
		return append(out, value...)
	})
}

// steps splits a JSON pointer (RFC 6901).
func steps(pointer string) []string {
	if pointer == "" {
		return nil
	}
	steps := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for i := range steps {
		steps[i] = unescape.Replace(steps[i])
	}
	return steps
}

// HideJSON is [Text.Hide] for a JSON value. It redacts strings, names and numbers one
// by one, so that the result is JSON. It returns nil if raw is not JSON. Without
// sensitive values, others is not used.
func (t Text) HideJSON(raw json.RawMessage, others ...Net) json.RawMessage {
	if !t.Hides() || len(raw) == 0 {
		return raw
	}
	if t.isTooMuch(len(raw)) {
		return json.RawMessage(quotedMark)
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil {
		return nil
	}
	hidden, _ := jsontext.Marshal(t.hidden(value, others)) // decoded JSON always encodes
	return hidden
}

func (t Text) hidden(value any, others []Net) any {
	switch value := value.(type) {
	case map[string]any:
		shown := make(map[string]any, len(value))
		for name, member := range value {
			shown[t.Hide(name, others...)] = t.hidden(member, others)
		}
		return shown
	case []any:
		for i := range value {
			value[i] = t.hidden(value[i], others)
		}
		return value
	case string:
		return t.Hide(value, others...)
	case json.Number:
		if shown := t.Hide(value.String(), others...); shown != value.String() {
			return shown
		}
		return value
	default:
		return value
	}
}
