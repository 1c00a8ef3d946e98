package mcp

import (
	"bytes"
	"encoding/json"
)

// cursor walks over the members of a JSON object, or the elements of an
// array, without decoding them. The text has passed the JSON gate, so that the
// cursor need not judge it; on other text it stops early, and nothing worse.
type cursor struct {
	data []byte
	pos  int
}

// members returns a cursor over the object that data is.
func members(data []byte) (cursor, bool) { return opened(data, '{') }

// elements returns a cursor over the array that data is.
func elements(data []byte) (cursor, bool) { return opened(data, '[') }

func opened(data []byte, bracket byte) (cursor, bool) {
	c := cursor{data: data}
	c.space()
	if c.peek() != bracket {
		return cursor{}, false
	}
	c.pos++
	return c, true
}

// member returns the next member of an object: its name, and the text of its value.
func (c *cursor) member() (name, value []byte, ok bool) {
	if name, ok = c.name(); !ok {
		return nil, nil, false
	}
	value = c.value()
	return name, value, len(value) > 0
}

// name returns the name of the next member of an object, and moves to its value.
func (c *cursor) name() (name []byte, ok bool) {
	c.separators()
	if c.peek() != '"' {
		return nil, false
	}
	name = c.value()
	c.separators()
	return unquoted(name), c.pos < len(c.data)
}

// enter moves into the object that is the next value, if it is one. Its members
// follow; [cursor.leave] moves behind it.
func (c *cursor) enter() bool {
	if c.peek() != '{' {
		return false
	}
	c.pos++
	return true
}

// leave moves behind the object whose members were read, all of them.
func (c *cursor) leave() {
	if c.peek() == '}' {
		c.pos++
	}
}

// element returns the text of the next element of an array.
func (c *cursor) element() (value []byte, ok bool) {
	c.separators()
	if c.peek() == ']' {
		return nil, false
	}
	value = c.value()
	return value, len(value) > 0
}

// member returns the value of the named member of an object; nil when the
// object has none, or is none.
func member(object []byte, name string) []byte {
	c, ok := members(object)
	for ok {
		var key, value []byte
		if key, value, ok = c.member(); ok && string(key) == name {
			return value
		}
	}
	return nil
}

// peek returns the next byte, and 0 at the end.
func (c *cursor) peek() byte {
	if c.pos < len(c.data) {
		return c.data[c.pos]
	}
	return 0
}

func (c *cursor) space() {
	for c.pos < len(c.data) {
		switch c.data[c.pos] {
		case ' ', '\t', '\n', '\r':
			c.pos++
		default:
			return
		}
	}
}

// separators skips white space, commas and colons.
func (c *cursor) separators() {
	for c.space(); c.peek() == ',' || c.peek() == ':'; c.space() {
		c.pos++
	}
}

// value returns the text of the value that begins here and moves behind it.
func (c *cursor) value() []byte {
	start := c.pos
	switch c.peek() {
	case '"':
		c.text()
	case '{', '[':
		c.container()
	default:
		c.scalar()
	}
	return c.data[start:c.pos]
}

// text moves behind the string that begins here.
func (c *cursor) text() {
	c.pos++
	for {
		i := bytes.IndexByte(c.data[c.pos:], '"')
		if i < 0 {
			c.pos = len(c.data)
			return
		}
		c.pos += i + 1
		if !escaped(c.data[:c.pos-1]) {
			return
		}
	}
}

// escaped reports whether the byte that follows head is escaped: whether head
// ends in an odd number of backslashes.
func escaped(head []byte) bool {
	odd := false
	for i := len(head) - 1; i >= 0 && head[i] == '\\'; i-- {
		odd = !odd
	}
	return odd
}

// container moves behind the object or array that begins here.
func (c *cursor) container() {
	for depth := 0; c.pos < len(c.data); {
		switch c.data[c.pos] {
		case '"':
			c.text()
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		c.pos++
		if depth == 0 {
			return
		}
	}
}

// scalar moves behind the number or literal that begins here.
func (c *cursor) scalar() {
	for c.pos < len(c.data) {
		switch c.data[c.pos] {
		case ',', ':', '}', ']', ' ', '\t', '\n', '\r':
			return
		}
		c.pos++
	}
}

// unquoted returns what the JSON string text says.
func unquoted(text []byte) []byte {
	if len(text) < 2 || text[0] != '"' {
		return nil
	}
	if bytes.IndexByte(text, '\\') < 0 {
		return text[1 : len(text)-1]
	}
	var s string
	if json.Unmarshal(text, &s) != nil {
		return nil
	}
	return []byte(s)
}

// text returns the string that a JSON value is; ok is false when it is no string.
func text(value []byte) (s string, ok bool) {
	if len(value) < 2 || value[0] != '"' {
		return "", false
	}
	return string(unquoted(value)), true
}

func isObject(value []byte) bool { return len(value) > 0 && value[0] == '{' }

func isNull(value []byte) bool { return len(value) == 0 || string(value) == "null" }

// isInteger reports whether a JSON value is a number written as an integer.
func isInteger(value []byte) bool {
	digits := bytes.TrimPrefix(value, []byte("-"))
	for _, b := range digits {
		if b < '0' || b > '9' {
			return false
		}
	}
	return len(digits) > 0
}
