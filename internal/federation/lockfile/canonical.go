package lockfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// decode decodes JSON that has passed jsonguard, so it is unambiguous and of bounded depth.
// Numbers stay as they are written.
func decode(raw []byte) (value any, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	err = d.Decode(&value)
	return value, err
}

// appendValue appends a decoded value in canonical form (RFC 8785, except for [appendNumber]).
func appendValue(dst []byte, value any) []byte {
	switch value := value.(type) {
	case string:
		return appendText(dst, value, isControl)
	case json.Number:
		return appendNumber(dst, string(value))
	case bool:
		return strconv.AppendBool(dst, value)
	case []any:
		dst = append(dst, '[')
		for i, item := range value {
			dst = appendValue(appendComma(dst, i), item)
		}
		return append(dst, ']')
	case map[string]any:
		dst = append(dst, '{')
		for i, name := range sortedNames(value) {
			dst = append(appendText(appendComma(dst, i), name, isControl), ':')
			dst = appendValue(dst, value[name])
		}
		return append(dst, '}')
	}
	return append(dst, "null"...)
}

func appendComma(dst []byte, i int) []byte {
	if i == 0 {
		return dst
	}
	return append(dst, ',')
}

func sortedNames(object map[string]any) []string {
	names := slices.AppendSeq(make([]string, 0, len(object)), maps.Keys(object))
	slices.SortFunc(names, compareNames)
	return names
}

// compareNames compares two names by UTF-16 code units (RFC 8785 section 3.2.3). This is the
// byte order, except that characters beyond U+FFFF are surrogates and therefore sort before
// U+E000 and later.
func compareNames(a, b string) int {
	const private, beyond = 0xee, 0xf0 // the first bytes of U+E000 and of U+10000
	for i := range min(len(a), len(b)) {
		if a[i] == b[i] {
			continue
		}
		if a[i] >= private && b[i] >= private && (a[i] >= beyond) != (b[i] >= beyond) {
			return strings.Compare(b[i:], a[i:])
		}
		return strings.Compare(a[i:], b[i:])
	}
	return len(a) - len(b)
}

func isControl(r rune) bool { return r < 0x20 }

// appendText appends a text as a JSON string. It escapes hidden characters and what JSON
// requires.
func appendText(dst []byte, text string, hidden func(rune) bool) []byte {
	dst = append(dst, '"')
	for _, r := range text {
		switch short := shortEscape(r); {
		case short != 0:
			dst = append(dst, '\\', short)
		case hidden(r):
			for _, unit := range utf16.AppendRune(nil, r) {
				dst = fmt.Appendf(dst, `\u%04x`, unit)
			}
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return append(dst, '"')
}

// shortEscape returns the character after the backslash in the short escape of r, or 0.
func shortEscape(r rune) byte {
	switch r {
	case '"', '\\':
		return byte(r)
	case '\b':
		return 'b'
	case '\f':
		return 'f'
	case '\n':
		return 'n'
	case '\r':
		return 'r'
	case '\t':
		return 't'
	}
	return 0
}

// A number has an exponent (ECMA-262, Number::toString) if its first digit is more than
// maxPoint places before the point, or more than -minPoint after it.
const (
	maxPoint = 21
	minPoint = -6
)

// appendNumber appends a JSON number in a form that is unique for its value. It is the form of
// RFC 8785 for each number that is the shortest spelling of a float64. Numbers are not rounded
// to float64, so different numbers never have the same form.
func appendNumber(dst []byte, number string) []byte {
	number, negative := strings.CutPrefix(number, "-")
	digits, point := decimal(number)
	if digits == "" {
		return append(dst, '0')
	}
	if negative {
		dst = append(dst, '-')
	}
	switch n := len(digits); {
	case point > maxPoint || point <= minPoint:
		dst = append(dst, digits[0])
		if n > 1 {
			dst = append(append(dst, '.'), digits[1:]...)
		}
		dst = append(dst, 'e')
		if point > 0 {
			dst = append(dst, '+')
		}
		return strconv.AppendInt(dst, int64(point-1), 10)
	case point >= n:
		return append(append(dst, digits...), strings.Repeat("0", point-n)...)
	case point > 0:
		return append(append(append(dst, digits[:point]...), '.'), digits[point:]...)
	}
	return append(append(append(dst, "0."...), strings.Repeat("0", -point)...), digits...)
}

// decimal returns the digits of a number without leading and trailing zeros, and the position
// of the point relative to the first digit: the number is 0.digits × 10^point. Zero has no
// digits.
func decimal(number string) (digits string, point int) {
	mantissa := number
	if i := strings.IndexAny(number, "eE"); i >= 0 {
		mantissa = number[:i]
		point, _ = strconv.Atoi(number[i+1:]) // jsonguard bounds it
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	written := whole + fraction
	digits = strings.TrimLeft(written, "0")
	point += len(whole) - (len(written) - len(digits))
	return strings.TrimRight(digits, "0"), point
}
