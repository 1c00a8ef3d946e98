package lockfile

import (
	"strconv"
	"strings"
)

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
