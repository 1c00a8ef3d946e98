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

// decode returns the value of JSON that the gate has let through, so that it is of one
// reading and of bounded depth. Numbers are as they are written.
func decode(raw []byte) (value any, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	err = d.Decode(&value)
	return value, err
}

// appendValue appends a decoded value in its canonical form (RFC 8785, but for
// [appendNumber]).
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

// compareNames compares two names by their UTF-16 code units (RFC 8785 section 3.2.3).
// Their bytes have the same order, but for characters beyond U+FFFF: these are surrogates
// there, and so before those from U+E000 on.
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

// appendText appends a text as JSON, with escapes for what is hidden and where JSON wants
// them.
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

// shortEscape returns what stands for a character behind a backslash where it has an escape
// of its own, or 0.
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

// Where a number is written with an exponent (ECMA-262, Number::toString): when its first
// digit stands more than maxPoint places before the point, or more than minPoint behind.
const (
	maxPoint = 21
	minPoint = -6
)

// appendNumber appends a JSON number in the one form that all numbers of its value have.
// That is the form of RFC 8785 for each number that is the shortest spelling of a float64;
// but no number is rounded to one, and so different numbers never have the same form.
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

// decimal returns the digits of a number without zeros at either end, and where the point
// stands, counted from the first of them: the number is 0.digits × 10^point. Zero has no
// digits.
func decimal(number string) (digits string, point int) {
	mantissa := number
	if i := strings.IndexAny(number, "eE"); i >= 0 {
		mantissa = number[:i]
		point, _ = strconv.Atoi(number[i+1:]) // the gate bounds it
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	written := whole + fraction
	digits = strings.TrimLeft(written, "0")
	point += len(whole) - (len(written) - len(digits))
	return strings.TrimRight(digits, "0"), point
}
