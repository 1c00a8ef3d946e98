// Package schema compiles JSON Schemas and validates arguments and results against them. The
// draft is 2020-12, unless a schema declares 2019-09, 07, 06 or 04.
//
// [Compile] parses a schema and reports all its errors to the author. It builds two trees:
// rules, which check values, and decode plans, which say during decoding which numbers are
// integers and which members have defaults. [Schema.Decode] decodes, completes and validates the
// arguments of a call; [Schema.Validate] validates any JSON value. Errors in a value are a list
// of [Violation], with messages that help the caller to fix them and never contain the value.
//
// Everything is bounded. Patterns are RE2, so matching is linear. uniqueItems uses hashes.
// Compile rejects reference cycles and chains that double at each step. Validation counts its
// steps and gives up, with a violation, if a branching and recursive schema meets a value made
// for it.
//
// The package loads nothing: a reference to another document is an error. It changes values
// only by adding defaults and the values that the server supplies.
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
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/base/jsontext"
)

// Positions returns the range in a file of the part of a schema at a JSON pointer (RFC 6901, "" is
// the root), or false if it is unknown. Nil knows none.
type Positions func(pointer string) (diag.Range, bool)

// Schema is a compiled JSON Schema. It is immutable and safe for concurrent use.
type Schema struct {
	raw  json.RawMessage
	plan *decodePlan
	node *node
	// numbers are the numbers that arguments may hold.
	numbers Numbers
	// trusted is the result of Trusted. object means that a schema from For accepts only objects.
	trusted, object bool
}

// Compile compiles the schema raw. The caller must have checked the limits of the JSON.
// Diagnostics have the range in origin of the subschema or its nearest ancestor, or else whole.
// The schema is nil if there is an error; it may come with warnings.
//
// Besides violations of the declared draft, these are errors: references to other documents,
// patterns that RE2 does not support, counts and reference chains that are endless or make
// validation slow, and defaults that violate their own schema.
func Compile(raw json.RawMessage, whole diag.Range, origin Positions) (*Schema, diag.List) {
	return CompileFor(Reader{}, raw, whole, origin)
}

// Reader describes the reader of the validated values.
type Reader struct {
	// Numbers are the numbers that it can hold. Results may hold any number.
	Numbers Numbers
	// BigInts are the locations of unbounded integers: JSON pointers into the value, with * for
	// every item of an array and every undeclared member.
	BigInts []string
}

// CompileFor is [Compile] for a certain reader of the values.
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

// Raw returns the source of the schema. The caller must not modify it.
func (s *Schema) Raw() json.RawMessage { return s.raw }

// Validate validates any JSON value, such as the result of a tool. It returns at most 50
// violations, ordered by path; none means that the value is valid. It ignores defaults.
// Integers may have any size and are compared exactly.
func (s *Schema) Validate(raw []byte) []Violation {
	d := decoder{data: raw, lenient: true, whole: true, path: make(location, 0, usualDepth)}
	v, ok := d.document(s.plan)
	if !ok {
		return []Violation{{Message: d.flaw}}
	}
	return violations(s.mismatches(v, len(raw), false))
}

// mismatches returns the mismatches of a value. size is the length of its text.
func (s *Schema) mismatches(v any, size int, arguments bool) []mismatch {
	quick := run{stepsLeft: maxSteps + size}
	if s.node.check(v, &quick) {
		return nil
	}
	if quick.exhausted() {
		return []mismatch{{message: tooCostly}}
	}
	full := run{stepsLeft: maxSteps + size, explain: true, arguments: arguments}
	if s.node.check(v, &full); len(full.mismatches) == 0 {
		return []mismatch{{message: tooCostly}}
	}
	return full.mismatches
}

// ofTypes has the results of [For] by [reflect.Type], as thousands of tools may share a type. A
// program has a fixed number of types.
var ofTypes sync.Map

// For returns the schema of a Go type, as encoding/json encodes it. The jsonschema struct tag
// describes a field. Each call for a type returns the same schema.
func For[T any]() (*Schema, error) {
	if known, ok := ofTypes.Load(reflect.TypeFor[T]()); ok {
		return known.(*Schema), nil
	}
	made, err := makeFor[T]()
	if err != nil {
		return nil, err
	}
	kept, _ := ofTypes.LoadOrStore(reflect.TypeFor[T](), made)
	return kept.(*Schema), nil
}

func makeFor[T any]() (*Schema, error) {
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
	compiled.trusted, compiled.object = isTrusted(reflect.TypeFor[T]()), isObject(raw)
	return compiled, nil
}

// ForFunc returns the schemas of the input of a function, which must be a struct, and of its
// output.
func ForFunc[In, Out any]() (input, output *Schema, err error) {
	input, err = For[In]()
	if err == nil && !input.object {
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

// isObject reports whether a schema accepts only objects.
func isObject(raw json.RawMessage) bool {
	var keywords map[string]json.RawMessage
	return json.Unmarshal(raw, &keywords) == nil && string(keywords["type"]) == `"object"`
}

// Trusted reports whether the schema is from [For] and encoding/json only produces valid values
// of its type, so that they need no validation.
func (s *Schema) Trusted() bool { return s.trusted }

// isTrusted reports whether the schema of a type only describes the type: it consists of
// strings, booleans, numbers and structs, without custom encoding.
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

// isPlainName reports whether encoding/json accepts a name in a tag. It ignores names with
// other characters, such as quotes.
func isPlainName(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-' && r != '.'
	})
}

// usualDepth is the depth of most values.
const usualDepth = 4

// Arguments are the arguments of a call.
type Arguments struct {
	// Value is the decoded arguments, and Text their JSON. Both include defaults and the values
	// that the server supplies.
	Value map[string]any
	Text  []byte
	// Sent is the JSON of the caller with the rounded numbers of Text. It is nil if no number
	// was rounded.
	Sent []byte
}

// Decode decodes, completes and validates the arguments of a call. It returns at most 50
// violations, ordered by path; if there are any, the arguments are empty.
//
// raw is the text from the caller, with its limits checked; empty or only white space means {}.
// Missing members with a default are added to the arguments, to nested objects and to objects
// in arrays, but not in alternatives, where the intended one is unknown. Then the whole is
// validated. Last, extra is added: values that the server supplies under names that the caller
// must not use. They are not part of the schema and not validated here.
//
// In Value, a number is an int64 where the schema says integer, and a float64 elsewhere; an
// unbounded integer beyond int64 is a *big.Int. Text holds the same numbers: it is raw with the
// additions, and with numbers that are rounded or not written as integers replaced. Without
// changes, it is raw itself.
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

// withRejected adds the numbers that the arguments cannot hold, unless the schema already
// rejects them.
func (d *decoder) withRejected(faults []mismatch) []mismatch {
	for _, refused := range d.rejected {
		if !slices.ContainsFunc(faults, func(f mismatch) bool { return f.path == refused.path }) {
			faults = append(faults, refused)
		}
	}
	return faults
}

// allPatches returns all patches in text order.
func (d *decoder) allPatches() []patch {
	if len(d.rewritten) == 0 {
		return d.patches
	}
	all := append(slices.Clone(d.patches), d.rewritten...)
	slices.SortStableFunc(all, func(a, b patch) int { return cmp.Compare(a.at, b.at) })
	return all
}

// notArguments returns the violation for a value that is not an object although the schema
// allows it.
func notArguments(faults []mismatch, v any) []Violation {
	if len(faults) > 0 {
		return nil
	}
	return []Violation{{Message: objectType.mustBe(typeOf(v))}}
}

// supply adds the values that the server supplies to the decoded arguments.
func (d *decoder) supply(arguments map[string]any, extra map[string]any) []mismatch {
	var faults []mismatch
	brace := bytes.LastIndexByte(d.data, '}')
	for _, name := range sortedNames(extra) {
		at := location{member(name)}.pointer()
		if _, there := arguments[name]; there {
			r := run{arguments: true, path: location{member(name)}}
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

// patch is an insertion into a JSON text, a member before the closing brace of an object, or
// the replacement of a number.
type patch struct {
	at int
	// length is the number of replaced bytes.
	length int
	// joined means that the object has a member before this one.
	joined bool
	text   []byte
}

// splice applies patches, which must be in text order. Without patches, it returns text itself.
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
