package schema

import (
	"encoding/json"

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
