package redact

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/internal/base/jsonguard"
	"github.com/mcpd/mcpd/internal/base/jsontext"
)

// Mark stands where a sensitive value stood.
const Mark = "[sensitive]"

const quotedMark = `"` + Mark + `"`

// Pointers returns a JSON value in which everything that the JSON pointers
// point at is replaced by [Mark]; the step * stands for every member, and any
// step for every item of an array. All other bytes stay as they are. Without
// pointers the value is returned as it is, and nil when it is not JSON.
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

// appendHidden appends a value with marks where paths lead, which are what is left of the
// pointers. It goes no deeper than they do.
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

// edit appends an object or an array in which each value is what replace appends for it; all
// other bytes stay. Items have no name. It appends any other value as it is.
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

// Arguments returns the arguments of a call for others to see: by [Pointers] when they are
// valid. In others, a value may stand elsewhere than it should: members that hold anything
// sensitive are replaced whole, and so is every member that is not one of names. It returns
// nil for what is no object.
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

// HideJSON is [Text.Hide] for a JSON value: texts, names and numbers are looked
// at one by one, so that what comes out is JSON again. It is nil for what is
// not JSON. The others find nothing where there is no sensitive value.
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
