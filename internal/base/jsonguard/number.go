package jsonguard

import "bytes"

// overflow is 2^1024 - 2^970, the smallest number that rounds to infinity as a
// float64, in decimal.
const overflow = "" +
	"1797693134862315807937289714053034150799341327100378269361737789804449682927647509466490179775872070963" +
	"3028641669288791094655554785194040263065748867150582068190890200070838367627385484581771153176447573027" +
	"0069855571366959622842914819860834936475292719074168444365510704342711559699508093042880177904174497792"

// maxExponent is the greatest exponent, either way, that a number may be
// written with. Beyond it decoders stop counting and read something else.
const maxExponent = 9999

// A decimal is a number as it is written.
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
		return syntax(start, "a number must begin with one zero or a digit from 1 to 9")
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

// skip reads the byte c if it is the next one.
func (s *scanner) skip(c byte) bool {
	if s.at < len(s.data) && s.data[s.at] == c {
		s.at++
		return true
	}
	return false
}

// digits reads as many digits as there are.
func (s *scanner) digits() []byte {
	start := s.at
	for s.at < len(s.data) && '0' <= s.data[s.at] && s.data[s.at] <= '9' {
		s.at++
	}
	return s.data[start:s.at]
}

// small returns the value of the digits, or more than maxExponent.
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
	// The number is 0.digits × 10^magnitude, with the first digit not zero.
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
