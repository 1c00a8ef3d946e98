package schema

import (
	"bytes"
	"math"
	"strconv"
)

// number reads a number: as an int64 when an integer is wanted and it is one,
// as a float64 otherwise.
func (d *decoder) number(integer bool) (any, bool) {
	start := d.at
	for d.at < len(d.data) && isNumeric(d.data[d.at]) {
		d.at++
	}
	text := d.data[start:d.at]
	if len(text) == 0 || text[0] == '+' || text[0] == '.' {
		return nil, d.fail(notJSON)
	}
	if integer || d.exact {
		if i, ok := integral(text); ok {
			return i, true
		}
	}
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		return nil, d.fail(notJSON)
	}
	if integer && f == math.Trunc(f) && len(d.unheld) < mostViolations {
		d.unheld = append(d.unheld, d.path.pointer())
	}
	return f, true
}

func isNumeric(c byte) bool {
	return '0' <= c && c <= '9' || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E'
}

// longestInteger is how many characters of an integer with a point or an
// exponent are looked at: more than that, and it was not written for an int64.
const longestInteger = 64

// integral returns the value of a number that is an integer and fits an int64,
// exactly, also when it is written with a point or an exponent.
func integral(text []byte) (int64, bool) {
	if len(text) <= longestInteger {
		if i, err := strconv.ParseInt(string(text), 10, 64); err == nil {
			return i, true
		}
	}
	if len(text) > longestInteger || !bytes.ContainsAny(text, ".eE") {
		return 0, false
	}
	mantissa, exponent := text, 0
	if i := bytes.IndexAny(text, "eE"); i >= 0 {
		var err error
		if exponent, err = strconv.Atoi(string(text[i+1:])); err != nil {
			return 0, false
		}
		mantissa = text[:i]
	}
	whole, fraction, _ := bytes.Cut(mantissa, []byte("."))
	digits := append(bytes.Clone(whole), fraction...)
	exponent -= len(fraction)
	for exponent < 0 && len(digits) > 1 && digits[len(digits)-1] == '0' {
		digits = digits[:len(digits)-1]
		exponent++
	}
	switch zero := len(bytes.Trim(digits, "-0")) == 0; {
	case zero:
		return 0, true
	case exponent < 0 || exponent > 18:
		return 0, false
	}
	digits = append(digits, "000000000000000000"[:exponent]...)
	i, err := strconv.ParseInt(string(digits), 10, 64)
	return i, err == nil
}
