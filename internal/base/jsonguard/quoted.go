package jsonguard

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// quoted reads the rest of a string, after its opening quote up to and with
// its closing one. It reports whether the string holds an escape.
func (s *scanner) quoted() (escaped bool, err *Error) {
	for {
		s.plain()
		if s.at == len(s.data) {
			return escaped, syntax(s.at, "the JSON text ends inside a string")
		}
		switch s.data[s.at] {
		case '"':
			s.at++
			return escaped, nil
		case '\\':
			escaped = true
			if err := s.escape(); err != nil {
				return escaped, err
			}
		default:
			return escaped, syntax(s.at, "a string holds a control character that is not escaped")
		}
	}
}

const (
	ones  = 0x0101010101010101
	highs = 0x80 * ones
)

// plain skips bytes that stand for themselves in a string, eight at a time.
// What begins with a byte of 0x80 or above is known to be UTF-8.
func (s *scanner) plain() {
	data, at := s.data, s.at
	for at+8 <= len(data) {
		word := binary.LittleEndian.Uint64(data[at:])
		quote, back := word^('"'*ones), word^('\\'*ones)
		// The lowest high bit set marks the first byte that is below a space, a
		// quote or a backslash; borrows can only add bits above it.
		special := ((word-' '*ones)&^word | (quote-ones)&^quote | (back-ones)&^back) & highs
		if special != 0 {
			s.at = at + bits.TrailingZeros64(special)/8
			return
		}
		at += 8
	}
	for at < len(data) && data[at] >= ' ' && data[at] != '"' && data[at] != '\\' {
		at++
	}
	s.at = at
}

// escape reads an escape, with both halves of a surrogate pair.
func (s *scanner) escape() *Error {
	start := s.at
	s.at++
	if s.at == len(s.data) {
		return syntax(s.at, "the JSON text ends inside a string")
	}
	c := s.data[s.at]
	s.at++
	if c == 'u' {
		first, ok := hex4(s.data[s.at:])
		if !ok {
			return syntax(start, "an escape in a string needs four hexadecimal digits after \\u")
		}
		s.at += 4
		if !utf16.IsSurrogate(first) {
			return nil
		}
		if second, ok := escaped4(s.data[s.at:]); ok && utf16.DecodeRune(first, second) != utf8.RuneError {
			s.at += 6
			return nil
		}
		if s.limits.Halves {
			return nil
		}
		return &Error{Kind: BadUTF8, Offset: start, Message: "a string escapes half of a surrogate pair without its other half"}
	}
	if plainEscape(c) == 0 {
		return syntax(start, "a string holds an escape that JSON does not have")
	}
	return nil
}

// plainEscape returns the byte that a backslash and c stand for, or 0 when
// there is no such escape.
func plainEscape(c byte) byte {
	switch c {
	case '"', '\\', '/':
		return c
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return 0
}

// escaped4 returns the value of the \uXXXX that data begins with.
func escaped4(data []byte) (rune, bool) {
	if len(data) < 2 || data[0] != '\\' || data[1] != 'u' {
		return 0, false
	}
	return hex4(data[2:])
}

// hex4 returns the value of the four hexadecimal digits that data begins with.
func hex4(data []byte) (rune, bool) {
	if len(data) < 4 {
		return 0, false
	}
	var r rune
	for _, c := range data[:4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// unescape returns the name with its escapes resolved. It has been read by
// quoted, so they are well formed.
func (s *scanner) unescape(n name) name {
	inside := s.data[n.start:n.end]
	start, plain := len(s.unescaped), s.unescaped
	for at := 0; at < len(inside); {
		if inside[at] != '\\' {
			plain = append(plain, inside[at])
			at++
			continue
		}
		r, ok := escaped4(inside[at:])
		if !ok {
			plain = append(plain, plainEscape(inside[at+1]))
			at += 2
			continue
		}
		at += 6
		if utf16.IsSurrogate(r) {
			second, _ := escaped4(inside[at:])
			r = utf16.DecodeRune(r, second)
			at += 6
		}
		plain = utf8.AppendRune(plain, r)
	}
	s.unescaped = plain
	return name{start: start, end: len(plain), escaped: true}
}
