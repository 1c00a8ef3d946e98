package redact

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// Mark stands where a sensitive value stood.
const Mark = "[sensitive]"

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
	s := newSplicer(raw)
	paths := make([][]string, len(pointers))
	for i, pointer := range pointers {
		paths[i] = steps(pointer)
	}
	if s.value(paths) != nil {
		return nil
	}
	return s.spliced()
}

// Arguments returns the arguments of a call for others to see: by [Pointers] when
// they are valid, and else by [Unchecked]. It returns nil for what is no object.
func Arguments(raw json.RawMessage, valid bool, pointers, names []string) json.RawMessage {
	if !bytes.HasPrefix(bytes.TrimLeft(raw, blank), []byte("{")) || !json.Valid(raw) {
		return nil
	}
	if !valid {
		return Unchecked(raw, pointers, names)
	}
	return Pointers(raw, pointers)
}

// Unchecked is [Pointers] for an object that has not been validated, so that a
// value may stand elsewhere than it should: members that hold anything
// sensitive are replaced whole, and so is every member that is not one of
// names. It returns nil for what is not an object.
func Unchecked(raw json.RawMessage, pointers, names []string) json.RawMessage {
	if len(pointers) == 0 || len(raw) == 0 {
		return raw
	}
	if !json.Valid(raw) || bytes.TrimLeft(raw, blank)[0] != '{' {
		return nil
	}
	s := newSplicer(raw)
	err := s.inside(func(name string) error {
		sensitive := slices.ContainsFunc(pointers, func(p string) bool {
			first := steps(p)
			return len(first) == 0 || first[0] == name || first[0] == "*"
		})
		if sensitive || !slices.Contains(names, name) {
			return s.hide()
		}
		return s.skip()
	})
	if err != nil {
		return nil
	}
	return s.spliced()
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
