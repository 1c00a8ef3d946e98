package schema

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/mcpd/mcpd/diag"
)

// Origin says where each part of a schema was written: a JSON pointer into the
// schema (RFC 6901, "" is the whole) and its place in a file.
type Origin map[string]diag.Range

// Schema is a compiled JSON Schema. It is immutable and safe for use by many
// goroutines at once.
type Schema struct {
	raw   json.RawMessage
	guide *guide
	// node holds the rules, unless the schema needs the other validator.
	node       *node
	contextual *contextual
	// numbers is which numbers arguments may hold.
	numbers Numbers
	// sure is what Sure reports.
	sure bool
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
func Compile(raw json.RawMessage, whole diag.Range, origin Origin) (*Schema, diag.List) {
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
func CompileFor(reader Reader, raw json.RawMessage, whole diag.Range, origin Origin) (*Schema, diag.List) {
	d := read(raw, whole, origin)
	d.reader = reader
	if !d.list.HasErrors() && d.checkCircles() {
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
// Defaults play no part, and integers may have any size.
func (s *Schema) Value(raw []byte) []Violation {
	d := decoder{data: raw, lenient: true, path: make(location, 0, usualDepth)}
	v, ok := d.document(s.guide)
	if !ok {
		return []Violation{{Message: d.flaw}}
	}
	return violations(s.faults(v, len(raw), false))
}

// faults returns what is wrong with a value whose text has the given size.
func (s *Schema) faults(v any, size int, arguments bool) []fault {
	if s.contextual != nil {
		return s.contextual.faults(v, newTranslation(s.guide, arguments))
	}
	quick := run{left: patience + size}
	if s.node.check(v, &quick) {
		return nil
	}
	if quick.exhausted() {
		return []fault{{message: tooCostly}}
	}
	full := run{left: patience + size, explain: true, arguments: arguments}
	if s.node.check(v, &full); len(full.faults) == 0 {
		return []fault{{message: tooCostly}}
	}
	return full.faults
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
	compiled.sure = isSure(reflect.TypeFor[T]())
	return compiled, nil
}

// ForFunc returns the schemas of what a function takes, which must be a struct,
// and of what it returns.
func ForFunc[In, Out any]() (input, output *Schema, err error) {
	input, err = For[In]()
	if err == nil && !input.IsObject() {
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

// IsObject reports whether the schema is of objects alone.
func (s *Schema) IsObject() bool {
	var keywords map[string]json.RawMessage
	return json.Unmarshal(s.Raw(), &keywords) == nil && string(keywords["type"]) == `"object"`
}

// Sure reports whether the schema was made by [For] of a type of which
// encoding/json makes nothing but what is valid, so that it need not be checked.
func (s *Schema) Sure() bool { return s.sure }

// isSure reports whether the schema of a type says no more than the type does:
// it is made of strings, booleans, numbers and structs, and encodes nothing in
// a way of its own.
func isSure(t reflect.Type) bool {
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
		return isSureStruct(t)
	}
	return false
}

func isSureStruct(t reflect.Type) bool {
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.Anonymous && (!f.IsExported() || f.Tag.Get("json") == "-") {
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || !isPlainName(name) || strings.Contains(options, "string") || !isSure(f.Type) {
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
