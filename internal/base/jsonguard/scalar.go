package jsonguard

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf16"

	"github.com/mcpd/mcpd/internal/base/jsontext"
)

// quoted reads the rest of a string after its opening quote, including the closing one.
// It reports whether the string contains an escape.
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
			return escaped, syntax(s.at, "a string contains an unescaped control character")
		}
	}
}

const (
	ones  = 0x0101010101010101
	highs = 0x80 * ones
)

// plain skips unescaped bytes of a string, eight at a time. Bytes of 0x80 and above
// were already checked to be UTF-8.
func (s *scanner) plain() {
	data, at := s.data, s.at
	for at+8 <= len(data) {
		word := binary.LittleEndian.Uint64(data[at:])
		quote, back := word^('"'*ones), word^('\\'*ones)
		// The lowest set high bit marks the first byte that is below a space, a quote
		// or a backslash; borrows can only set bits above it.
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

// escape reads an escape, including both halves of a surrogate pair.
func (s *scanner) escape() *Error {
	r, length := jsontext.Escape(s.data[s.at:])
	switch {
	case length > 0 && utf16.IsSurrogate(r) && !s.limits.Halves:
		return &Error{Kind: BadUTF8, Offset: s.at, Message: "a string contains an unpaired surrogate escape"}
	case length > 0:
		s.at += length
		return nil
	case s.at+1 == len(s.data):
		return syntax(s.at+1, "the JSON text ends inside a string")
	case s.data[s.at+1] == 'u':
		return syntax(s.at, "an escape in a string needs four hexadecimal digits after \\u")
	}
	return syntax(s.at, "a string contains an invalid escape")
}

// unescape returns the name with its escapes resolved. quoted has validated them.
func (s *scanner) unescape(n name) name {
	start := len(s.unescaped)
	s.unescaped, _ = jsontext.AppendUnescaped(s.unescaped, s.data[n.start:n.end])
	return name{start: start, end: len(s.unescaped), escaped: true}
}

// overflow is 2^1024 - 2^970 in decimal, the smallest number that rounds to infinity as
// a float64.
const overflow = "" +
	"1797693134862315807937289714053034150799341327100378269361737789804449682927647509466490179775872070963" +
	"3028641669288791094655554785194040263065748867150582068190890200070838367627385484581771153176447573027" +
	"0069855571366959622842914819860834936475292719074168444365510704342711559699508093042880177904174497792"

// maxExponent is the largest absolute exponent. Beyond it, decoders stop counting and
// return something else.
const maxExponent = 9999

// A decimal is a number in decimal notation.
type decimal struct {
	whole, fraction []byte // digits before and after the point
	exponent        int
}

// number reads a number (RFC 8259 section 6) and checks its range.
func (s *scanner) number() *Error {
	start := s.at
	var d decimal
	if s.data[s.at] == '-' {
		s.at++
	}
	d.whole = s.digits()
	if len(d.whole) == 0 || len(d.whole) > 1 && d.whole[0] == '0' {
		return syntax(start, "a number must start with one zero or a digit from 1 to 9")
	}
	if s.skip('.') {
		if d.fraction = s.digits(); len(d.fraction) == 0 {
			return s.missing("a digit after the decimal point")
		}
	}
	if s.skip('e') || s.skip('E') {
		negative := s.skip('-')
		if !negative {
			s.skip('+')
		}
		digits := s.digits()
		if len(digits) == 0 {
			return s.missing("a digit of the exponent")
		}
		if d.exponent = small(digits); d.exponent > maxExponent {
			return outOfRange(start)
		}
		if negative {
			d.exponent = -d.exponent
		}
	}
	if d.overflows() {
		return outOfRange(start)
	}
	return nil
}

func outOfRange(at int) *Error {
	return &Error{Kind: BadNumber, Offset: at, Message: "a number is outside the range of a 64-bit float"}
}

// skip consumes the byte c if it is next.
func (s *scanner) skip(c byte) bool {
	if s.at < len(s.data) && s.data[s.at] == c {
		s.at++
		return true
	}
	return false
}

func (s *scanner) digits() []byte {
	start := s.at
	for s.at < len(s.data) && '0' <= s.data[s.at] && s.data[s.at] <= '9' {
		s.at++
	}
	return s.data[start:s.at]
}

// small returns the value of the digits, or a value above maxExponent.
func small(digits []byte) int {
	n := 0
	for _, c := range digits {
		if n = n*10 + int(c-'0'); n > maxExponent {
			break
		}
	}
	return n
}

// overflows reports whether the number rounds to infinity as a float64.
func (d decimal) overflows() bool {
	if len(d.whole)+d.exponent < len(overflow) {
		return false
	}
	// The number is 0.digits × 10^magnitude, and the first digit is not zero.
	digits := bytes.TrimLeft(d.whole, "0")
	magnitude := len(digits) + d.exponent
	rest := d.fraction
	if len(digits) == 0 {
		rest = bytes.TrimLeft(d.fraction, "0")
		magnitude -= len(d.fraction) - len(rest)
		if len(rest) == 0 {
			return false
		}
	}
	if magnitude != len(overflow) {
		return magnitude > len(overflow)
	}
	for i := range len(overflow) {
		c := byte('0')
		switch {
		case i < len(digits):
			c = digits[i]
		case i < len(digits)+len(rest):
			c = rest[i-len(digits)]
		}
		if c != overflow[i] {
			return c > overflow[i]
		}
	}
	return true
}
