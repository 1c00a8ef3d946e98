package schema

import (
	"bytes"

	"github.com/mcpd/mcpd/internal/base/jsontext"
)

// maxDefaultBytes bounds the defaults added to one value.
const maxDefaultBytes = 256 << 10

// maxValueDepth bounds the nesting of a value. Callers check a lower limit first; this one
// protects the stack from values that were not checked.
const maxValueDepth = 256

// decoder decodes a JSON text to nil, bool, float64, int64, *big.Int, string, []any and
// map[string]any. It follows a decode plan and records the additions of the plan.
type decoder struct {
	data []byte
	at   int
	// exact decodes every integer as an integer.
	exact bool
	// lenient rounds numbers that a float64 cannot hold, and rejects nothing. whole keeps
	// integers with more digits than a float64 exact.
	lenient, whole bool
	// numbers are the numbers that the reader of the arguments can hold.
	numbers Numbers
	// fill adds the defaults of missing members, within the limit.
	fill             bool
	defaultBytesLeft int
	patches          []patch
	// path is the location of the current value.
	path location
	// rejected are numbers that the arguments cannot hold. rewritten are numbers that change in
	// the text.
	rejected  []mismatch
	rewritten []patch
	// flaw says why the text is invalid.
	flaw string
}

// Flaws of a text.
const (
	notJSON       = "is not valid JSON"
	tooNested     = "is nested too deeply"
	tooLong       = "is too long once the defaults are filled in"
	duplicateName = "has two members of the same name"
)

// document decodes the whole text. If it is not exactly one JSON value, it returns false and
// sets flaw.
func (d *decoder) document(p *decodePlan) (any, bool) {
	v, ok := d.value(p)
	if ok && d.peek() != 0 {
		ok = d.fail(notJSON)
	}
	return v, ok
}

func (d *decoder) fail(flaw string) bool {
	d.flaw = flaw
	return false
}

// peek skips white space and returns the next byte without consuming it, or 0 at the end.
func (d *decoder) peek() byte {
	for d.at < len(d.data) {
		switch c := d.data[d.at]; c {
		case ' ', '\n', '\r', '\t':
			d.at++
		case 0:
			return ' ' // starts no value, and is not the end
		default:
			return c
		}
	}
	return 0
}

func (d *decoder) value(p *decodePlan) (any, bool) {
	switch d.peek() {
	case '{':
		return d.object(p)
	case '[':
		return d.array(p)
	case '"':
		return d.text()
	case 't':
		return true, d.word("true")
	case 'f':
		return false, d.word("false")
	case 'n':
		return nil, d.word("null")
	}
	return d.number(p)
}

func (d *decoder) word(w string) bool {
	if len(d.data)-d.at < len(w) || string(d.data[d.at:d.at+len(w)]) != w {
		return d.fail(notJSON)
	}
	d.at += len(w)
	return true
}

func (d *decoder) array(p *decodePlan) (any, bool) {
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
		v, ok := d.value(p.item(len(list)))
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

func (d *decoder) object(p *decodePlan) (any, bool) {
	if len(d.path) >= maxValueDepth {
		return nil, d.fail(tooNested)
	}
	d.at++
	object := make(map[string]any)
	if d.peek() == '}' {
		return object, d.close(object, p)
	}
	for {
		if !d.member(object, p) {
			return nil, false
		}
		switch d.peek() {
		case ',':
			d.at++
		case '}':
			return object, d.close(object, p)
		default:
			return nil, d.fail(notJSON)
		}
	}
}

// member decodes one member into object.
func (d *decoder) member(object map[string]any, p *decodePlan) bool {
	if d.peek() != '"' {
		return d.fail(notJSON)
	}
	name, inner, ok := d.name(p)
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

// name decodes the name of a member and returns the plan of its value.
func (d *decoder) name(p *decodePlan) (string, *decodePlan, bool) {
	inside, ok := d.plain()
	if !ok {
		name, ok := d.escaped()
		if !ok {
			return "", nil, false
		}
		inside = []byte(name)
	}
	if p == nil {
		return string(inside), nil, true
	}
	if m := p.members[string(inside)]; m != nil {
		return m.name, m.plan, true
	}
	return string(inside), p.rest, true
}

// close consumes the end of an object and adds missing defaults.
func (d *decoder) close(object map[string]any, p *decodePlan) bool {
	if d.fill && p != nil {
		for _, m := range p.defaults {
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

// text decodes a string.
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

// plain decodes a string without escapes and returns the bytes between the quotes. It consumes
// nothing if the string has an escape or no end.
func (d *decoder) plain() ([]byte, bool) {
	rest := d.data[d.at+1:]
	end := bytes.IndexByte(rest, '"')
	if end < 0 || bytes.IndexByte(rest[:end], '\\') >= 0 {
		return nil, false
	}
	d.at += end + 2
	return rest[:end], true
}

// escaped decodes a string that may have escapes.
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
