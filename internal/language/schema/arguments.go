package schema

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"

	"github.com/mcpd/mcpd/internal/base/jsontext"
)

// usualDepth is how deep most values go.
const usualDepth = 4

// Arguments are the arguments of a call.
type Arguments struct {
	// Value is the arguments decoded, and Text their JSON: with defaults and what the
	// server supplies.
	Value map[string]any
	Text  []byte
	// Sent is what the caller sent with the numbers that Text has, nil where they are the
	// same.
	Sent []byte
}

// Decode decodes, completes and validates the arguments of a call. There are at most 50
// violations, ordered by path; with any, the arguments are empty.
//
// raw is the text that the caller sent, which has passed a gate; nothing, or
// white space alone, stands for {}. Members that are absent and have a default are added:
// to the arguments, to objects inside them, and to those inside arrays, but
// not inside alternatives, of which nobody knows which one is meant. Then the
// whole is validated. Last, extra is added: values that the server supplies
// itself, under names that the caller must not use. They are not part of the
// schema and not validated here.
//
// In Value, a number is an int64 where the schema says integer and a float64
// everywhere else; beyond int64, an integer that may have any size is a *big.Int. Text
// holds the same numbers: it is raw with additions written into it and with the numbers
// that are rounded or written as no integer is, and it is raw itself when there are none.
func (s *Schema) Decode(raw []byte, extra map[string]any) (Arguments, []Violation) {
	if len(bytes.TrimLeft(raw, " \t\r\n")) == 0 {
		raw = []byte("{}")
	}
	d := decoder{
		data: raw, fill: true, room: roomForDefaults, path: make(location, 0, usualDepth), numbers: s.numbers, contextual: s.contextual != nil,
	}
	decoded, ok := d.document(s.guide)
	if !ok {
		return Arguments{}, []Violation{{Message: d.flaw}}
	}
	faults := d.withRefused(s.faults(decoded, len(raw), true))
	value, ok := decoded.(map[string]any)
	if !ok {
		return Arguments{}, append(violations(faults), notArguments(faults, decoded)...)
	}
	if len(extra) > 0 {
		faults = append(faults, d.supply(value, extra)...)
	}
	if len(faults) > 0 {
		return Arguments{}, violations(faults)
	}
	a := Arguments{Value: value, Text: splice(raw, d.allPatches())}
	if len(d.rewritten) > 0 {
		a.Sent = splice(raw, d.rewritten)
	}
	return a, nil
}

// Args is [Schema.Decode] for those who do not need what was sent.
func (s *Schema) Args(raw []byte, extra map[string]any) (value map[string]any, text []byte, v []Violation) {
	a, v := s.Decode(raw, extra)
	return a.Value, a.Text, v
}

// withRefused adds the numbers that the arguments cannot hold, but for those that the
// schema refuses anyway.
func (d *decoder) withRefused(faults []fault) []fault {
	for _, refused := range d.refused {
		if !slices.ContainsFunc(faults, func(f fault) bool { return f.path == refused.path }) {
			faults = append(faults, refused)
		}
	}
	return faults
}

// allPatches returns what is to be changed in the text, in the order of the places.
func (d *decoder) allPatches() []patch {
	if len(d.rewritten) == 0 {
		return d.patches
	}
	all := append(slices.Clone(d.patches), d.rewritten...)
	slices.SortStableFunc(all, func(a, b patch) int { return cmp.Compare(a.at, b.at) })
	return all
}

// notArguments is the violation of a value that is no object, where the schema
// allows it.
func notArguments(faults []fault, v any) []Violation {
	if len(faults) > 0 {
		return nil
	}
	return []Violation{{Message: objectType.mustBe(typeOf(v))}}
}

// supply adds the values that the server supplies to the arguments, which the
// decoder has read.
func (d *decoder) supply(arguments map[string]any, extra map[string]any) []fault {
	var faults []fault
	brace := bytes.LastIndexByte(d.data, '}')
	for _, name := range sortedNames(extra) {
		at := location{member(name)}.pointer()
		if _, there := arguments[name]; there {
			r := run{arguments: true, path: location{member(name)}}
			faults = append(faults, fault{path: at, message: r.unknown(name, nil)})
			continue
		}
		text, err := appendMember(nil, name, extra[name])
		if err != nil {
			faults = append(faults, fault{path: at, message: "cannot be written as JSON"})
			continue
		}
		d.patches = append(d.patches, patch{at: brace, joined: len(arguments) > 0, text: text})
		arguments[name] = extra[name]
	}
	return faults
}

// A patch is a text to write into a JSON text: a member before the closing brace of an
// object, or a number in the place of another.
type patch struct {
	at int
	// length is how many bytes are replaced.
	length int
	// joined says that the object has a member before this one.
	joined bool
	text   []byte
}

// splice returns text with the patches, which are in the order of their
// places, written into it: text itself when there are none.
func splice(text []byte, patches []patch) []byte {
	if len(patches) == 0 {
		return text
	}
	size := len(text)
	for _, p := range patches {
		size += len(p.text) + 1
	}
	out := make([]byte, 0, size)
	from := 0
	for _, p := range patches {
		out = append(out, text[from:p.at]...)
		if p.joined {
			out = append(out, ',')
		}
		out = append(out, p.text...)
		from = p.at + p.length
	}
	return append(out, text[from:]...)
}

// appendMember appends "name":value.
func appendMember(b []byte, name string, value any) ([]byte, error) {
	b, err := appendJSON(b, name)
	if err != nil {
		return b, err
	}
	return appendJSON(append(b, ':'), value)
}

// appendJSON appends the JSON text of a value.
func appendJSON(b []byte, value any) ([]byte, error) {
	switch v := value.(type) {
	case nil:
		return append(b, "null"...), nil
	case bool:
		return strconv.AppendBool(b, v), nil
	case int64:
		return strconv.AppendInt(b, v, 10), nil
	case *big.Int:
		return v.Append(b, 10), nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return b, fmt.Errorf("write a number as JSON: it is not finite")
		}
	}
	text, err := jsontext.Marshal(value)
	if err != nil {
		return b, fmt.Errorf("write a value as JSON: %w", err)
	}
	return append(b, text...), nil
}
