// Package schema compiles JSON Schemas, draft 2020-12 unless a schema says
// 2019-09, 07, 06 or 04 by itself, and holds arguments and results against them.
//
// [Compile] reads the text of a schema, tells its author of every mistake in
// it, and makes two things of it: a tree of rules, which values are held
// against, and a tree of guides, which say while a value is decoded which
// numbers are integers and which members have defaults. [Schema.Args] decodes,
// completes and validates the arguments of a call; [Schema.Value] validates any
// JSON value. What is wrong with a value comes back as a list of [Violation],
// in words that help the caller to correct it, and never with the value itself.
//
// Everything is bounded. Patterns are RE2, so that matching is linear;
// uniqueItems goes by a hash; references that go in circles and chains that
// double at each step are refused by Compile; validation counts its steps and
// gives up, with a violation, when a schema that branches and recurses meets a
// value made for it.
//
// The package loads nothing: a reference to another document is a mistake. It
// does not change values other than by adding defaults and what the server
// itself supplies.
package schema

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/base/jsontext"
)

// Origin says where each part of a schema was written: a JSON pointer into the
// schema (RFC 6901, "" is the whole) and its place in a file.
type Positions map[string]diag.Range

// Schema is a compiled JSON Schema. It is immutable and safe for use by many
// goroutines at once.
type Schema struct {
	raw  json.RawMessage
	plan *decodePlan
	node *node
	// numbers is which numbers arguments may hold.
	numbers Numbers
	// sure is what Sure reports.
	trusted bool
}

// Compile compiles the schema raw, which must be JSON that has passed a gate.
// Mistakes are reported at the place that origin has for the part in question
// or for what it stands in, and at whole when it has none. It returns a nil
// schema when a mistake is an error; there may be warnings beside a schema.
//
// Refused are, beside what breaks the draft that the schema says it follows:
// references to other documents, patterns that RE2 does not have, counts and
// chains of references without end or of a size that would make validation
// slow, and defaults that do not fit their own schema.
func Compile(raw json.RawMessage, whole diag.Range, origin Positions) (*Schema, diag.List) {
	return CompileFor(Reader{}, raw, whole, origin)
}

// Reader is who reads the values that fit a schema.
type Reader struct {
	// Numbers is which numbers it can hold. Results may hold any.
	Numbers Numbers
	// BigInts are where integers may have any size: JSON pointers into the value, with *
	// for every item of an array and every member that is not declared.
	BigInts []string
}

// CompileFor is [Compile] for a reader of the values.
func CompileFor(reader Reader, raw json.RawMessage, whole diag.Range, origin Positions) (*Schema, diag.List) {
	d := read(raw, whole, origin)
	d.reader = reader
	if !d.list.HasErrors() && d.checkReferenceCycles() {
		d.checkWork()
	}
	if d.list.HasErrors() {
		return nil, d.list.Sort()
	}
	s := d.finish()
	if d.list.HasErrors() {
		return nil, d.list.Sort()
	}
	s.raw, s.numbers = raw, reader.Numbers
	return s, d.list.Sort()
}

// Raw returns the schema as it was written. The caller must not change it.
func (s *Schema) Raw() json.RawMessage { return s.raw }

// Value validates any JSON value, such as the result of a tool, and returns at
// most 50 violations, ordered by path; none means that the value is valid.
// Defaults play no part, and integers may have any size: they are compared exactly.
func (s *Schema) Validate(raw []byte) []Violation {
	d := decoder{data: raw, lenient: true, whole: true, path: make(location, 0, usualDepth)}
	v, ok := d.document(s.plan)
	if !ok {
		return []Violation{{Message: d.flaw}}
	}
	return violations(s.mismatches(v, len(raw), false))
}

// faults returns what is wrong with a value whose text has the given size.
func (s *Schema) mismatches(v any, size int, arguments bool) []mismatch {
	quick := validation{stepsLeft: maxSteps + size}
	if s.node.check(v, &quick) {
		return nil
	}
	if quick.exhausted() {
		return []mismatch{{message: tooCostly}}
	}
	full := validation{stepsLeft: maxSteps + size, explain: true, arguments: arguments}
	if s.node.check(v, &full); len(full.mismatches) == 0 {
		return []mismatch{{message: tooCostly}}
	}
	return full.mismatches
}

// For returns the schema of a Go type as encoding/json sees it; the jsonschema
// struct tag describes a field.
func For[T any]() (*Schema, error) {
	reflected, err := jsonschema.For[T](nil)
	if err != nil {
		return nil, fmt.Errorf("make schema: %w", err)
	}
	raw, err := json.Marshal(reflected)
	if err != nil {
		return nil, fmt.Errorf("encode schema: %w", err)
	}
	compiled, problems := Compile(raw, diag.Range{}, nil)
	if err := problems.Err(); err != nil {
		return nil, fmt.Errorf("compile schema: %w", err)
	}
	compiled.trusted = isTrusted(reflect.TypeFor[T]())
	return compiled, nil
}

// ForFunc returns the schemas of what a function takes, which must be a struct,
// and of what it returns.
func ForFunc[In, Out any]() (input, output *Schema, err error) {
	input, err = For[In]()
	if err == nil && !input.isObject() {
		err = errors.New("it must be a struct")
	}
	if err != nil {
		return nil, nil, fmt.Errorf("input: %w", err)
	}
	if output, err = For[Out](); err != nil {
		return nil, nil, fmt.Errorf("output: %w", err)
	}
	return input, output, nil
}

// isObject reports whether the schema is of objects alone.
func (s *Schema) isObject() bool {
	var keywords map[string]json.RawMessage
	return json.Unmarshal(s.Raw(), &keywords) == nil && string(keywords["type"]) == `"object"`
}

// Sure reports whether the schema was made by [For] of a type of which
// encoding/json makes nothing but what is valid, so that it need not be checked.
func (s *Schema) Trusted() bool { return s.trusted }

// isSure reports whether the schema of a type says no more than the type does:
// it is made of strings, booleans, numbers and structs, and encodes nothing in
// a way of its own.
func isTrusted(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	if p.Implements(reflect.TypeFor[json.Marshaler]()) || p.Implements(reflect.TypeFor[encoding.TextMarshaler]()) || t == reflect.TypeFor[json.Number]() {
		return false
	}
	switch t.Kind() {
	case reflect.String, reflect.Bool, reflect.Float32, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return true
	case reflect.Struct:
		return isTrustedStruct(t)
	}
	return false
}

func isTrustedStruct(t reflect.Type) bool {
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.Anonymous && (!f.IsExported() || f.Tag.Get("json") == "-") {
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || !isPlainName(name) || strings.Contains(options, "string") || !isTrusted(f.Type) {
			return false
		}
	}
	return true
}

// isPlainName reports whether encoding/json surely takes a name as it is: one
// with other characters, such as quotes, it may replace by that of the field.
func isPlainName(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-' && r != '.'
	})
}

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
		data: raw, fill: true, defaultBytesLeft: maxDefaultBytes, path: make(location, 0, usualDepth), numbers: s.numbers,
	}
	decoded, ok := d.document(s.plan)
	if !ok {
		return Arguments{}, []Violation{{Message: d.flaw}}
	}
	faults := d.withRejected(s.mismatches(decoded, len(raw), true))
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
func (d *decoder) withRejected(faults []mismatch) []mismatch {
	for _, refused := range d.rejected {
		if !slices.ContainsFunc(faults, func(f mismatch) bool { return f.path == refused.path }) {
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
func notArguments(faults []mismatch, v any) []Violation {
	if len(faults) > 0 {
		return nil
	}
	return []Violation{{Message: objectType.mustBe(typeOf(v))}}
}

// supply adds the values that the server supplies to the arguments, which the
// decoder has read.
func (d *decoder) supply(arguments map[string]any, extra map[string]any) []mismatch {
	var faults []mismatch
	brace := bytes.LastIndexByte(d.data, '}')
	for _, name := range sortedNames(extra) {
		at := location{member(name)}.pointer()
		if _, there := arguments[name]; there {
			r := validation{arguments: true, path: location{member(name)}}
			faults = append(faults, mismatch{path: at, message: r.unknown(name, nil)})
			continue
		}
		text, err := memberText(name, extra[name])
		if err != nil {
			faults = append(faults, mismatch{path: at, message: "cannot be written as JSON"})
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

// memberText returns "name":value.
func memberText(name string, value any) ([]byte, error) {
	text, err := appendJSON(nil, name)
	if err != nil {
		return nil, err
	}
	return appendJSON(append(text, ':'), value)
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
