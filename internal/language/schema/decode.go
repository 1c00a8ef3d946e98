package schema

import (
	"bytes"

	"github.com/mcpd/mcpd/internal/base/jsontext"
)

// roomForDefaults bounds how many bytes of defaults are added to one value.
const maxDefaultBytes = 256 << 10

// deepest is how many arrays and objects of a value may be open at once. What
// comes here has passed a gate with a lower limit; this one keeps the stack
// safe from what has not.
const maxValueDepth = 256

// A decoder reads one JSON text as nil, bool, float64, int64, *big.Int, string, []any
// and map[string]any, the way a guide says, and notes what the guide adds to it.
type decoder struct {
	data []byte
	at   int
	// exact makes an integer of every number that is one.
	exact bool
	// lenient rounds what a float64 does not hold, and refuses nothing. whole keeps integers
	// exact that are written in more digits than every float64 keeps.
	lenient, whole bool
	// numbers is what the reader of the arguments can hold.
	numbers Numbers
	// fill adds the defaults of members that are absent, as far as there is room.
	fill             bool
	defaultBytesLeft int
	patches          []patch
	// path is where the value being read stands.
	path location
	// refused are the numbers that the arguments cannot hold, and rewritten those that
	// stand otherwise in their text.
	rejected  []mismatch
	rewritten []patch
	// flaw says why the text could not be read.
	flaw string
}

// What may be wrong with a text.
const (
	notJSON       = "is not valid JSON"
	tooNested     = "is nested too deeply"
	tooLong       = "is too long once the defaults are filled in"
	duplicateName = "has two members of the same name"
)

// document reads the whole text. It reports false, and leaves the reason in
// flaw, when the text is not exactly one JSON value.
func (d *decoder) document(g *decodePlan) (any, bool) {
	v, ok := d.value(g)
	if ok && d.peek() != 0 {
		ok = d.fail(notJSON)
	}
	return v, ok
}

func (d *decoder) fail(flaw string) bool {
	d.flaw = flaw
	return false
}

// peek skips white space and returns the byte after it without reading it, or
// 0 at the end.
func (d *decoder) peek() byte {
	for d.at < len(d.data) {
		switch c := d.data[d.at]; c {
		case ' ', '\n', '\r', '\t':
			d.at++
		case 0:
			return ' ' // which begins no value, and is not the end
		default:
			return c
		}
	}
	return 0
}

func (d *decoder) value(g *decodePlan) (any, bool) {
	switch d.peek() {
	case '{':
		return d.object(g)
	case '[':
		return d.array(g)
	case '"':
		return d.text()
	case 't':
		return true, d.word("true")
	case 'f':
		return false, d.word("false")
	case 'n':
		return nil, d.word("null")
	}
	return d.number(g)
}

func (d *decoder) word(w string) bool {
	if len(d.data)-d.at < len(w) || string(d.data[d.at:d.at+len(w)]) != w {
		return d.fail(notJSON)
	}
	d.at += len(w)
	return true
}

func (d *decoder) array(g *decodePlan) (any, bool) {
	if len(d.path) >= maxValueDepth {
		return nil, d.fail(tooNested)
	}
	d.at++
	list := []any{}
	if d.peek() == ']' {
		d.at++
		return list, true
	}
	depth := len(d.path)
	for {
		d.path = append(d.path, item(len(list)))
		v, ok := d.value(g.item(len(list)))
		if !ok {
			return nil, false
		}
		d.path = d.path[:depth]
		list = append(list, v)
		switch d.peek() {
		case ',':
			d.at++
		case ']':
			d.at++
			return list, true
		default:
			return nil, d.fail(notJSON)
		}
	}
}

func (d *decoder) object(g *decodePlan) (any, bool) {
	if len(d.path) >= maxValueDepth {
		return nil, d.fail(tooNested)
	}
	d.at++
	object := make(map[string]any)
	if d.peek() == '}' {
		return object, d.close(object, g)
	}
	for {
		if !d.member(object, g) {
			return nil, false
		}
		switch d.peek() {
		case ',':
			d.at++
		case '}':
			return object, d.close(object, g)
		default:
			return nil, d.fail(notJSON)
		}
	}
}

// member reads one member into object.
func (d *decoder) member(object map[string]any, g *decodePlan) bool {
	if d.peek() != '"' {
		return d.fail(notJSON)
	}
	name, inner, ok := d.name(g)
	if !ok {
		return false
	}
	if d.peek() != ':' {
		return d.fail(notJSON)
	}
	d.at++
	depth := len(d.path)
	d.path = append(d.path, member(name))
	v, ok := d.value(inner)
	if !ok {
		return false
	}
	d.path = d.path[:depth]
	before := len(object)
	if object[name] = v; len(object) == before {
		return d.fail(duplicateName)
	}
	return true
}

// name reads the name of a member and returns the guide of its value.
func (d *decoder) name(g *decodePlan) (string, *decodePlan, bool) {
	inside, ok := d.plain()
	if !ok {
		name, ok := d.escaped()
		if !ok {
			return "", nil, false
		}
		inside = []byte(name)
	}
	if g == nil {
		return string(inside), nil, true
	}
	if m := g.members[string(inside)]; m != nil {
		return m.name, m.guide, true
	}
	return string(inside), g.rest, true
}

// close reads the end of an object and adds what is absent of its defaults.
func (d *decoder) close(object map[string]any, g *decodePlan) bool {
	if d.fill && g != nil {
		for _, m := range g.defaults {
			if _, ok := object[m.name]; ok {
				continue
			}
			if d.defaultBytesLeft -= len(m.text); d.defaultBytesLeft < 0 {
				return d.fail(tooLong)
			}
			d.patches = append(d.patches, patch{at: d.at, joined: len(object) > 0, text: m.text})
			object[m.name] = m.value()
		}
	}
	d.at++
	return true
}

// text reads a string.
func (d *decoder) text() (any, bool) {
	if inside, ok := d.plain(); ok {
		return string(inside), true
	}
	s, ok := d.escaped()
	if !ok {
		return nil, false
	}
	return s, true
}

// plain reads a string that has no escape and returns what stands between its
// quotes. It reads nothing when the string has one, or has no end.
func (d *decoder) plain() ([]byte, bool) {
	rest := d.data[d.at+1:]
	end := bytes.IndexByte(rest, '"')
	if end < 0 || bytes.IndexByte(rest[:end], '\\') >= 0 {
		return nil, false
	}
	d.at += end + 2
	return rest[:end], true
}

// escaped reads a string that may have escapes.
func (d *decoder) escaped() (string, bool) {
	d.at++
	for end := d.at; end < len(d.data); end++ {
		switch d.data[end] {
		case '"':
			s, ok := jsontext.AppendUnescaped(nil, d.data[d.at:end])
			d.at = end + 1
			return string(s), ok || d.fail(notJSON)
		case '\\':
			end++
		}
	}
	return "", d.fail(notJSON)
}
