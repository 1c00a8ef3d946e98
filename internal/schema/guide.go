package schema

import "encoding/json"

// A guide says what decoding needs to know of a part of the schema. A nil
// guide knows nothing. Guides may form circles; they are fixed once compiled.
type guide struct {
	// integer says that a number here is an integer, to be held exactly, big that it may
	// have any size, and number that the schema speaks of a number that may have a fraction.
	integer, big, number bool
	members              map[string]*guidedMember
	// fills are the members that have a default, by name.
	fills []*guidedMember
	// rest guides the members that are not declared.
	rest   *guide
	prefix []*guide
	items  *guide
}

// A guidedMember is a declared member of an object.
type guidedMember struct {
	name  string
	guide *guide
	// part is its schema, and nil once the schema is compiled.
	part *part
	// fallback is the JSON text of the default, with the defaults inside it
	// filled in; nil when there is none.
	fallback json.RawMessage
	// scalar is the default when it is neither an array nor an object.
	scalar any
	// text is the default as a member of an object.
	text []byte
}

// item returns the guide of the item i of an array.
func (g *guide) item(i int) *guide {
	switch {
	case g == nil:
		return nil
	case i < len(g.prefix):
		return g.prefix[i]
	}
	return g.items
}

// value returns the default for one more object to hold. Arrays and objects
// are made anew, so that no two calls share one.
func (m *guidedMember) value() any {
	if m.scalar != nil || string(m.fallback) == "null" {
		return m.scalar
	}
	d := decoder{data: m.fallback, lenient: true}
	v, _ := d.value(m.guide)
	return v
}
