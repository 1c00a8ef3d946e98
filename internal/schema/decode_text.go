package schema

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

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
	var b []byte
	for d.at < len(d.data) {
		c := d.data[d.at]
		d.at++
		switch c {
		case '"':
			return string(b), true
		case '\\':
			var ok bool
			if b, ok = d.escape(b); !ok {
				return "", d.fail(notJSON)
			}
		default:
			b = append(b, c)
		}
	}
	return "", d.fail(notJSON)
}

// escape reads an escape, after its backslash, and appends what it stands for.
func (d *decoder) escape(b []byte) ([]byte, bool) {
	if d.at == len(d.data) {
		return b, false
	}
	c := d.data[d.at]
	d.at++
	switch c {
	case '"', '\\', '/':
		return append(b, c), true
	case 'b':
		return append(b, '\b'), true
	case 'f':
		return append(b, '\f'), true
	case 'n':
		return append(b, '\n'), true
	case 'r':
		return append(b, '\r'), true
	case 't':
		return append(b, '\t'), true
	case 'u':
		r, ok := d.hex()
		if ok && utf16.IsSurrogate(r) {
			r = d.pair(r)
		}
		return utf8.AppendRune(b, r), ok
	}
	return b, false
}

// pair reads the second half of a surrogate pair, if one follows.
func (d *decoder) pair(first rune) rune {
	before := d.at
	if d.word(`\u`) {
		if second, ok := d.hex(); ok {
			if r := utf16.DecodeRune(first, second); r != utf8.RuneError {
				return r
			}
		}
	}
	d.at, d.flaw = before, ""
	return utf8.RuneError
}

// hex reads the four hexadecimal digits of an escape.
func (d *decoder) hex() (rune, bool) {
	if len(d.data)-d.at < 4 {
		return utf8.RuneError, false
	}
	r, err := strconv.ParseUint(string(d.data[d.at:d.at+4]), 16, 32)
	d.at += 4
	return rune(r), err == nil
}
