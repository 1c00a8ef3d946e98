package schema

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// Numbers says which numbers the reader of the arguments can hold. The decoded value and the
// text of the arguments always hold the same numbers: a number that one of them cannot hold is
// a violation, or is rounded in both.
type Numbers uint8

const (
	// ForGo is for functions in Go: integers are int64, other numbers are float64.
	ForGo Numbers = iota
	// ForScripts is for scripts in JavaScript, where numbers are float64: integers range from
	// -(2^53-1) to 2^53-1.
	ForScripts
	// ForText is for a reader that forwards the text, such as an upstream: where the schema
	// does not determine the type of a number, integers of any size are exact.
	ForText
)

const (
	// maxSafeInteger is the largest integer up to which every integer is a distinct float64.
	maxSafeInteger = 1<<53 - 1
	// maxBigIntDigits bounds the digits of an unbounded integer. The limits check of JSON
	// rejects longer integers, which exceed a float64.
	maxBigIntDigits = 308
	// exactDigits is the number of digits that every float64 preserves.
	exactDigits = 15
)

// number decodes a number: to int64 where the schema requires an integer, or *big.Int if the
// plan says so, and to float64 elsewhere.
func (d *decoder) number(p *decodePlan) (any, bool) {
	start := d.at
	for d.at < len(d.data) && isNumeric(d.data[d.at]) {
		d.at++
	}
	text := d.data[start:d.at]
	if len(text) == 0 || text[0] == '+' || text[0] == '.' {
		return nil, d.fail(notJSON)
	}
	if d.exact || p != nil && p.integer || d.whole && isLongInteger(text) {
		if i, ok := d.integer(text, p); ok {
			return i, true
		}
	}
	f, err := strconv.ParseFloat(string(text), 64)
	switch {
	case errors.Is(err, strconv.ErrRange) && !d.exact && !d.lenient:
		d.reject(tooLarge)
		return f, true
	case err != nil:
		return nil, d.fail(notJSON)
	case d.exact || d.lenient:
		return f, true
	case p != nil && p.integer:
		if f == math.Trunc(f) {
			d.reject(d.rangeMessage(p))
		}
		return f, true
	}
	return d.double(f, text, p), true
}

// isLongInteger reports whether a number is written with more digits than every float64
// preserves, without a point or exponent.
func isLongInteger(text []byte) bool {
	return len(text) > exactDigits && !bytes.ContainsAny(text, ".eE")
}

// integer decodes a number where an integer is required. It returns false if the number is not
// an integer or out of range.
func (d *decoder) integer(text []byte, p *decodePlan) (any, bool) {
	i, ok := integral(text)
	if !ok {
		if !d.exact && !d.whole && !p.big {
			return nil, false
		}
		b := bigInteger(text)
		return b, b != nil
	}
	if d.exact || d.lenient {
		return i, true
	}
	if d.numbers == ForScripts && !p.big && (i > maxSafeInteger || i < -maxSafeInteger) {
		d.reject(d.rangeMessage(p))
	}
	if bytes.ContainsAny(text, ".eE") || string(text) == "-0" {
		d.rewrite(len(text), strconv.AppendInt(nil, i, 10))
	}
	return i, true
}

// rangeMessage describes the allowed integers.
func (d *decoder) rangeMessage(p *decodePlan) string {
	switch {
	case p.big:
		return notBigInt
	case d.numbers == ForScripts:
		return unsafeInteger
	}
	return int64Overflow
}

// double returns the float64 of a number, and rewrites the text to the same value. It rejects
// an integer that would lose digits, because it may be an ID.
func (d *decoder) double(f float64, text []byte, p *decodePlan) any {
	plain := !bytes.ContainsAny(text, ".eE")
	switch {
	case f == 0 && text[0] == '-':
		f = 0
	case plain && len(text) <= exactDigits, sameDecimal(text, f):
		return f
	case !plain:
	case d.numbers != ForText || p != nil && p.number:
		d.reject(imprecise)
		return f
	default:
		if i, err := strconv.ParseInt(string(text), 10, 64); err == nil {
			return i
		}
		if b := bigInteger(text); b != nil {
			return b
		}
		d.reject(notBigInt)
		return f
	}
	d.rewrite(len(text), appendDouble(nil, f))
	return f
}

// reject records a number that is out of range.
func (d *decoder) reject(words string) {
	if len(d.rejected) < maxViolations {
		d.rejected = append(d.rejected, mismatch{path: d.path.pointer(), message: words})
	}
}

// rewrite replaces the text of the current number.
func (d *decoder) rewrite(length int, text []byte) {
	d.rewritten = append(d.rewritten, patch{at: d.at - length, length: length, text: text})
}

func isNumeric(c byte) bool {
	return '0' <= c && c <= '9' || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E'
}

// maxIntegerBytes bounds the text of an integer with a point or exponent. A longer text is not
// treated as an int64.
const maxIntegerBytes = 64

// integral returns the exact value of an integer in the range of int64, also if it is written
// with a point or exponent.
func integral(text []byte) (int64, bool) {
	if len(text) <= maxIntegerBytes {
		if i, err := strconv.ParseInt(string(text), 10, 64); err == nil {
			return i, true
		}
	}
	if len(text) > maxIntegerBytes || !bytes.ContainsAny(text, ".eE") {
		return 0, false
	}
	n, ok := decimalOf(text)
	switch {
	case !ok || n.exponent < 0 || n.exponent > 18:
		return 0, false
	case n.digits == "":
		return 0, true
	}
	i, err := strconv.ParseInt(n.sign+n.digits+strings.Repeat("0", n.exponent), 10, 64)
	return i, err == nil
}

// bigInteger returns the value of an integer written only in digits, and nil for other or too
// long numbers.
func bigInteger(text []byte) *big.Int {
	if len(bytes.TrimPrefix(text, []byte("-"))) > maxBigIntDigits || bytes.ContainsAny(text, ".eE") {
		return nil
	}
	b, _ := new(big.Int).SetString(string(text), 10)
	return b
}

// decimal is a number as digits times a power of ten. The digits have no leading or trailing
// zeros; zero has no digits.
type decimal struct {
	sign, digits string
	exponent     int
}

// decimalOf parses a number. It returns false if the exponent is extremely large.
func decimalOf(text []byte) (n decimal, ok bool) {
	mantissa := text
	if i := bytes.IndexAny(text, "eE"); i >= 0 {
		var err error
		if n.exponent, err = strconv.Atoi(string(text[i+1:])); err != nil {
			return n, false
		}
		mantissa = text[:i]
	}
	whole, fraction, _ := strings.Cut(string(mantissa), ".")
	if strings.HasPrefix(whole, "-") {
		n.sign, whole = "-", whole[1:]
	}
	n.exponent -= len(fraction)
	digits := strings.TrimLeft(whole+fraction, "0")
	n.digits = strings.TrimRight(digits, "0")
	n.exponent += len(digits) - len(n.digits)
	if n.digits == "" {
		return decimal{}, true
	}
	return n, true
}

// sameDecimal reports whether text equals the shortest decimal for f, as JavaScript and CEL
// print it.
func sameDecimal(text []byte, f float64) bool {
	written, ok := decimalOf(text)
	if !ok {
		return false
	}
	var room [32]byte
	shortest, _ := decimalOf(strconv.AppendFloat(room[:0], f, 'e', -1, 64))
	return written == shortest
}

// appendDouble appends a number as JavaScript prints it.
func appendDouble(b []byte, f float64) []byte {
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		return strconv.AppendFloat(b, f, 'e', -1, 64)
	}
	return strconv.AppendFloat(b, f, 'f', -1, 64)
}

// numberRule holds the rules of a number. Limits are int64, float64, *big.Int, or nil for no
// limit; values are one of the first three.
type numberRule struct {
	min, max, above, below, step any
}

func (n *numberRule) check(v any, r *run) bool {
	for _, limit := range [...]any{n.min, n.above, n.max, n.below} {
		if tied(v, limit) && !r.step(costOfDecimal) {
			return false
		}
	}
	ok := true
	if n.min != nil && compare(v, n.min) < 0 {
		ok = r.reject(func() string { return fmt.Sprintf(atLeast, numeral(n.min)) })
	}
	if n.above != nil && compare(v, n.above) <= 0 {
		ok = r.reject(func() string { return fmt.Sprintf(greaterThan, numeral(n.above)) })
	}
	if n.max != nil && compare(v, n.max) > 0 {
		ok = r.reject(func() string { return fmt.Sprintf(atMost, numeral(n.max)) })
	}
	if n.below != nil && compare(v, n.below) >= 0 {
		ok = r.reject(func() string { return fmt.Sprintf(lessThan, numeral(n.below)) })
	}
	if n.step != nil && !n.multiple(v, r) {
		ok = r.reject(func() string { return fmt.Sprintf(multipleOf, numeral(n.step)) })
	}
	return ok
}

// numeral returns the digits of a number.
func numeral(v any) string {
	switch v := v.(type) {
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case *big.Int:
		return v.String()
	}
	return ""
}

// compare compares two numbers exactly.
func compare(a, b any) int {
	_, one := a.(*big.Int)
	_, other := b.(*big.Int)
	if one || other {
		return compareBig(a, b)
	}
	switch a := a.(type) {
	case int64:
		if b, ok := b.(int64); ok {
			return cmp.Compare(a, b)
		}
		return -compareFloat(b.(float64), a)
	case float64:
		if b, ok := b.(int64); ok {
			return compareFloat(a, b)
		}
		return cmp.Compare(a, b.(float64))
	}
	return 0
}

// compareBig compares two numbers if one exceeds int64.
func compareBig(a, b any) int {
	x, ofDouble := a.(float64)
	y, withDouble := b.(float64)
	switch {
	case ofDouble:
		return -compareBigDouble(integerOf(b), x)
	case withDouble:
		return compareBigDouble(integerOf(a), y)
	}
	return integerOf(a).Cmp(integerOf(b))
}

// integerOf returns an int64 or *big.Int as *big.Int.
func integerOf(v any) *big.Int {
	if i, ok := v.(int64); ok {
		return big.NewInt(i)
	}
	b, _ := v.(*big.Int)
	return b
}

// compareBigDouble compares an integer with the decimal for f. The decimal matters only if the
// integer rounds to f.
func compareBigDouble(i *big.Int, f float64) int {
	if rounded, _ := i.Float64(); rounded != f {
		return cmp.Compare(rounded, f)
	}
	return new(big.Rat).SetInt(i).Cmp(rational(f))
}

// tied reports whether [compare] needs the decimal of a number.
func tied(a, b any) bool {
	i, isBig := a.(*big.Int)
	f, isDouble := b.(float64)
	if !isBig {
		if i, isBig = b.(*big.Int); isBig {
			f, isDouble = a.(float64)
		}
	}
	if !isBig || !isDouble {
		return false
	}
	rounded, _ := i.Float64()
	return rounded == f
}

// edge is the smallest float64 above every int64.
const edge = 1 << 63

func compareFloat(f float64, i int64) int {
	switch {
	case f >= edge:
		return 1
	case f < -edge:
		return -1
	}
	// A float64 with a fraction is small enough that int64 converts exactly.
	if whole := math.Trunc(f); whole != f {
		return cmp.Compare(f, float64(i))
	}
	return cmp.Compare(int64(f), i)
}

const (
	// costOfMultiple is the number of steps to divide numbers with fractions.
	costOfMultiple = 120
	// costOfDecimal is the number of steps to compare an integer with a decimal.
	costOfDecimal = 120
)

func (n *numberRule) multiple(v any, r *run) bool {
	_, whole := n.step.(int64)
	if _, is := v.(int64); (!is || !whole) && !r.step(costOfMultiple) {
		return false
	}
	return multiple(v, n.step)
}

// multiple reports whether v is an integer times step. Numbers with fractions are treated as
// their shortest decimals, so 0.3 is a multiple of 0.1.
func multiple(v, step any) bool {
	if v, ok := v.(int64); ok {
		if step, ok := step.(int64); ok {
			return v%step == 0
		}
	}
	a, b := rational(v), rational(step)
	if a == nil || b == nil || b.Sign() == 0 {
		return false
	}
	return new(big.Rat).Quo(a, b).IsInt()
}

// rational returns the number as its shortest decimal.
func rational(v any) *big.Rat {
	r, ok := new(big.Rat).SetString(numeral(v))
	if !ok {
		return nil
	}
	return r
}
