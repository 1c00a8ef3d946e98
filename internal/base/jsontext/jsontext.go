// Package jsontext reads parts of JSON text without decoding or copying the rest, and
// writes JSON without HTML escapes.
//
// The text must have passed package jsonguard, so that a [Cursor] need not validate it;
// on other text it stops early. The decoder of encoding/json copies what it skips, and
// its package jsontext is experimental.
package jsontext

import (
	"bytes"
	"encoding/json"
	"unicode/utf16"
	"unicode/utf8"
)

// Cursor iterates over the members of a JSON object, or the elements of an array.
type Cursor struct {
	data []byte
	pos  int
}

// Members returns a cursor over the object data.
func Members(data []byte) (Cursor, bool) { return opened(data, '{') }

// Elements returns a cursor over the array data.
func Elements(data []byte) (Cursor, bool) { return opened(data, '[') }

func opened(data []byte, bracket byte) (Cursor, bool) {
	c := Cursor{data: data}
	c.space()
	if c.peek() != bracket {
		return Cursor{}, false
	}
	c.pos++
	return c, true
}

// Member returns the name and the value of the next member.
func (c *Cursor) Member() (name, value []byte, ok bool) {
	if name, ok = c.Name(); !ok {
		return nil, nil, false
	}
	value = c.Value()
	return name, value, len(value) > 0
}

// Name returns the name of the next member, and moves to its value.
func (c *Cursor) Name() (name []byte, ok bool) {
	c.separators()
	if c.peek() != '"' {
		return nil, false
	}
	name = c.Value()
	c.separators()
	return Unquote(name), c.pos < len(c.data)
}

// Enter moves into the next value if it is an object. Its members follow;
// [Cursor.Leave] moves after it.
func (c *Cursor) Enter() bool {
	if c.peek() != '{' {
		return false
	}
	c.pos++
	return true
}

// Leave moves after an object after all its members were read.
func (c *Cursor) Leave() {
	if c.peek() == '}' {
		c.pos++
	}
}

// Element returns the next element of an array.
func (c *Cursor) Element() (value []byte, ok bool) {
	c.separators()
	if c.peek() == ']' {
		return nil, false
	}
	value = c.Value()
	return value, len(value) > 0
}

// Get returns the value of a member of an object, or nil if it is missing or object is
// not an object.
func Get(object []byte, name string) []byte {
	c, ok := Members(object)
	for ok {
		var key, value []byte
		if key, value, ok = c.Member(); ok && string(key) == name {
			return value
		}
	}
	return nil
}

// At returns a cursor before the value data.
func At(data []byte) Cursor { return Cursor{data: data} }

// Next moves to the next name, value or closing bracket, and returns its first byte, or
// 0 at the end.
func (c *Cursor) Next() byte {
	c.separators()
	return c.peek()
}

// Skip consumes a bracket if it is next.
func (c *Cursor) Skip(bracket byte) {
	if c.Next() == bracket {
		c.pos++
	}
}

// More moves to the next member or element, and reports whether there is one. Otherwise
// it moves after the closing bracket.
func (c *Cursor) More(closing byte) bool {
	next := c.Next()
	if next == closing {
		c.pos++
	}
	return next != closing && next != 0
}

// Offset returns the position of the cursor.
func (c *Cursor) Offset() int { return c.pos }

// From returns the text from an offset to the cursor.
func (c *Cursor) From(offset int) []byte { return c.data[offset:c.pos] }

// peek returns the next byte, or 0 at the end.
func (c *Cursor) peek() byte {
	if c.pos < len(c.data) {
		return c.data[c.pos]
	}
	return 0
}

func (c *Cursor) space() {
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
func (c *Cursor) separators() {
	for c.space(); c.peek() == ',' || c.peek() == ':'; c.space() {
		c.pos++
	}
}

// Value returns the value at the cursor and moves after it.
func (c *Cursor) Value() []byte {
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

// text moves after the string at the cursor.
func (c *Cursor) text() {
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

// escaped reports whether the byte after head is escaped: head ends in an odd number of
// backslashes.
func escaped(head []byte) bool {
	odd := false
	for i := len(head) - 1; i >= 0 && head[i] == '\\'; i-- {
		odd = !odd
	}
	return odd
}

// container moves after the object or array at the cursor.
func (c *Cursor) container() {
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

// scalar moves after the number or literal at the cursor.
func (c *Cursor) scalar() {
	for c.pos < len(c.data) {
		switch c.data[c.pos] {
		case ',', ':', '}', ']', ' ', '\t', '\n', '\r':
			return
		}
		c.pos++
	}
}

// Unquote returns the content of a JSON string, or nil for any other value.
func Unquote(text []byte) []byte {
	if len(text) < 2 || text[0] != '"' {
		return nil
	}
	if bytes.IndexByte(text, '\\') < 0 {
		return text[1 : len(text)-1]
	}
	s, ok := AppendUnescaped(nil, text[1:len(text)-1])
	if !ok {
		return nil
	}
	return s
}

// AppendUnescaped appends the content of a string, given the text between its quotes. A
// lone surrogate becomes U+FFFD. ok is false for an invalid escape.
func AppendUnescaped(out, inside []byte) ([]byte, bool) {
	for {
		at := bytes.IndexByte(inside, '\\')
		if at < 0 {
			return append(out, inside...), true
		}
		out = append(out, inside[:at]...)
		r, n := Escape(inside[at:])
		if n == 0 {
			return out, false
		}
		out, inside = utf8.AppendRune(out, r), inside[at+n:]
	}
}

// Escape returns the character and the length of the escape at the start of text,
// including both halves of a surrogate pair. A lone surrogate is returned as it is. The
// length is 0 for an invalid escape.
func Escape(text []byte) (r rune, length int) {
	if len(text) > 1 && plainEscapes[text[1]] != 0 {
		return rune(plainEscapes[text[1]]), 2
	}
	return escapedUTF16(text)
}

// plainEscapes maps the character after a backslash to the escaped character.
var plainEscapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// escapedUTF16 is [Escape] for \u and four digits.
func escapedUTF16(text []byte) (r rune, length int) {
	r, ok := escaped4(text)
	if !ok {
		return 0, 0
	}
	if utf16.IsSurrogate(r) {
		if second, ok := escaped4(text[6:]); ok {
			if both := utf16.DecodeRune(r, second); both != utf8.RuneError {
				return both, 12
			}
		}
	}
	return r, 6
}

// escaped4 returns the value of the \uXXXX at the start of text.
func escaped4(text []byte) (r rune, ok bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	for _, c := range text[2:6] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// Text returns the content of a JSON string; ok is false for another value.
func Text(value []byte) (s string, ok bool) {
	if len(value) < 2 || value[0] != '"' {
		return "", false
	}
	return string(Unquote(value)), true
}

// IsObject reports whether a value is an object.
func IsObject(value []byte) bool { return len(value) > 0 && value[0] == '{' }

// IsNull reports whether a value is null or absent.
func IsNull(value []byte) bool { return len(value) == 0 || string(value) == "null" }

// IsInteger reports whether a JSON value is a number in integer notation.
func IsInteger(value []byte) bool {
	digits := bytes.TrimPrefix(value, []byte("-"))
	for _, b := range digits {
		if b < '0' || b > '9' {
			return false
		}
	}
	return len(digits) > 0
}

// Marshal is [json.Marshal] without escapes for <, > and &, which would make text for
// models and people longer.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// AppendString appends s as a JSON string. Invalid UTF-8 becomes U+FFFD. It escapes
// only quotes, backslashes and control characters.
func AppendString(dst []byte, s string) []byte {
	if utf8.ValidString(s) {
		return AppendValid(dst, s)
	}
	return AppendValid(dst, string([]rune(s))) // the conversion replaces each invalid byte
}

// AppendValid is [AppendString] for valid UTF-8, which it does not check.
func AppendValid[T string | []byte](dst []byte, s T) []byte {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		for i+8 <= len(s) {
			w := s[i : i+8]
			word := uint64(w[0]) | uint64(w[1])<<8 | uint64(w[2])<<16 | uint64(w[3])<<24 |
				uint64(w[4])<<32 | uint64(w[5])<<40 | uint64(w[6])<<48 | uint64(w[7])<<56 // compiled to one load
			// A byte gets its high bit if it is a control character, a quote or a backslash. The
			// bits of bytes above such a byte may be wrong.
			quote, backslash := word^ones*'"', word^ones*'\\'
			if ((word-ones*' ')&^word|(quote-ones)&^quote|(backslash-ones)&^backslash)&highs != 0 {
				break
			}
			i += 8
		}
		for end := min(i+8, len(s)); i < end; i++ {
			if b := s[i]; b < ' ' || b == '"' || b == '\\' {
				dst = AppendEscape(append(dst, s[start:i]...), b)
				start = i + 1
			}
		}
	}
	return append(append(dst, s[start:]...), '"')
}

// AppendEscape appends the escape of a quote, a backslash or a control character (RFC
// 8259 section 7), the short one if there is one.
func AppendEscape(dst []byte, b byte) []byte {
	switch b {
	case '"', '\\':
		return append(dst, '\\', b)
	case '\b':
		return append(dst, '\\', 'b')
	case '\f':
		return append(dst, '\\', 'f')
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	const hex = "0123456789abcdef"
	return append(dst, '\\', 'u', '0', '0', hex[b>>4], hex[b&15])
}
