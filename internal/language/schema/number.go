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

// Numbers says which numbers the reader of the arguments can hold. Whatever it is, the
// decoded value and the text of the arguments stand for the same numbers: a number that
// one of the two cannot hold is a violation, or is rounded in both.
type Numbers uint8

const (
	// ForGo is for functions in Go: integers are int64, other numbers are float64.
	ForGo Numbers = iota
	// ForScripts is for bodies in JavaScript, whose numbers are float64: integers go from
	// -(2^53-1) to 2^53-1.
	ForScripts
	// ForText is for what passes the text on, such as an upstream server: where the schema
	// does not say what a number is, integers of any size are exact.
	ForText
)

const (
	// largestSafe is the largest integer up to which each one has a float64 of its own.
	maxSafeInteger = 1<<53 - 1
	// longestBigInt is how many digits an integer of any size may have. JSON with more is
	// outside of what a float64 can hold, which the gate refuses.
	maxBigIntDigits = 308
	// alwaysKept is how many digits of a number every float64 keeps.
	exactDigits = 15
)

// number reads a number. Where the schema wants an integer it is an int64, or a *big.Int
// where the guide says so; otherwise it is a float64.
func (d *decoder) number(g *decodePlan) (any, bool) {
	start := d.at
	for d.at < len(d.data) && isNumeric(d.data[d.at]) {
		d.at++
	}
	text := d.data[start:d.at]
	if len(text) == 0 || text[0] == '+' || text[0] == '.' {
		return nil, d.fail(notJSON)
	}
	if d.exact || g != nil && g.integer || d.whole && isLongInteger(text) {
		if i, ok := d.integer(text, g); ok {
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
	case g != nil && g.integer:
		if f == math.Trunc(f) {
			d.reject(d.rangeMessage(g))
		}
		return f, true
	}
	return d.double(f, text, g), true
}

// isLongInteger reports whether a number is written in more digits than every float64
// keeps, without a point or an exponent.
func isLongInteger(text []byte) bool {
	return len(text) > exactDigits && !bytes.ContainsAny(text, ".eE")
}

// integer reads a number where an integer is wanted. It reports false when the number is
// none, or is one that the place cannot hold.
func (d *decoder) integer(text []byte, g *decodePlan) (any, bool) {
	i, ok := integral(text)
	if !ok {
		if !d.exact && !d.whole && !g.big {
			return nil, false
		}
		b := bigInteger(text)
		return b, b != nil
	}
	if d.exact || d.lenient {
		return i, true
	}
	if d.numbers == ForScripts && !g.big && (i > maxSafeInteger || i < -maxSafeInteger) {
		d.reject(d.rangeMessage(g))
	}
	if bytes.ContainsAny(text, ".eE") || string(text) == "-0" {
		d.rewrite(len(text), strconv.AppendInt(nil, i, 10))
	}
	return i, true
}

// widest says which integers a place can hold.
func (d *decoder) rangeMessage(g *decodePlan) string {
	switch {
	case g.big:
		return notBigInt
	case d.numbers == ForScripts:
		return unsafeInteger
	}
	return int64Overflow
}

// double returns the value of a number where none but a float64 is wanted, and has the
// text say the same. An integer whose digits would change is refused, as it may be an ID.
func (d *decoder) double(f float64, text []byte, g *decodePlan) any {
	plain := !bytes.ContainsAny(text, ".eE")
	switch {
	case f == 0 && text[0] == '-':
		f = 0
	case plain && len(text) <= exactDigits, sameDecimal(text, f):
		return f
	case !plain:
	case d.numbers != ForText || g != nil && g.number:
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

// refuse notes a number that the place cannot hold.
func (d *decoder) reject(words string) {
	if len(d.rejected) < maxViolations {
		d.rejected = append(d.rejected, mismatch{path: d.path.pointer(), message: words})
	}
}

// rewrite replaces the number that was just read.
func (d *decoder) rewrite(length int, text []byte) {
	d.rewritten = append(d.rewritten, patch{at: d.at - length, length: length, text: text})
}

func isNumeric(c byte) bool {
	return '0' <= c && c <= '9' || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E'
}

// longestInteger is how many characters of an integer with a point or an
// exponent are looked at: more than that, and it was not written for an int64.
const maxIntegerBytes = 64

// integral returns the value of a number that is an integer and fits an int64,
// exactly, also when it is written with a point or an exponent.
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

// bigInteger returns the value of an integer that is written in digits alone, nil when
// the number is written otherwise or has too many.
func bigInteger(text []byte) *big.Int {
	if len(bytes.TrimPrefix(text, []byte("-"))) > maxBigIntDigits || bytes.ContainsAny(text, ".eE") {
		return nil
	}
	b, _ := new(big.Int).SetString(string(text), 10)
	return b
}

// A decimal is a number as digits times a power of ten: no digit at either end is a zero,
// and zero has none.
type decimal struct {
	sign, digits string
	exponent     int
}

// decimalOf takes a number apart. It reports false when the exponent is beyond all reason.
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

// sameDecimal reports whether the shortest decimal that stands for f, as JavaScript and
// CEL print it, is the number that text is.
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

// A numberRule is what a number must be. Its limits are int64, float64, *big.Int
// or nil for none; a value is one of the first three.
type numberRule struct {
	min, max, above, below, step any
}

func (n *numberRule) check(v any, r *validation) bool {
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

// numeral returns a number in digits.
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

// compareBig compares two numbers of which one is larger than an int64.
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

// integerOf returns an int64 or a *big.Int as the latter.
func integerOf(v any) *big.Int {
	if i, ok := v.(int64); ok {
		return big.NewInt(i)
	}
	b, _ := v.(*big.Int)
	return b
}

// compareBigDouble compares an integer with the decimal that f is written as. That rounds to
// f, so it is needed only where the integer rounds to f, too.
func compareBigDouble(i *big.Int, f float64) int {
	if rounded, _ := i.Float64(); rounded != f {
		return cmp.Compare(rounded, f)
	}
	return new(big.Rat).SetInt(i).Cmp(rational(f))
}

// tied reports whether [compare] needs the decimal of one of two numbers.
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

// edge is the least float64 above every int64.
const edge = 1 << 63

func compareFloat(f float64, i int64) int {
	switch {
	case f >= edge:
		return 1
	case f < -edge:
		return -1
	}
	// A float64 with a fraction is small enough for int64 to be exact as one.
	if whole := math.Trunc(f); whole != f {
		return cmp.Compare(f, float64(i))
	}
	return cmp.Compare(int64(f), i)
}

const (
	// costOfMultiple is how many steps it takes to divide numbers with fractions.
	costOfMultiple = 120
	// costOfDecimal is how many steps it takes to compare an integer with a decimal.
	costOfDecimal = 120
)

func (n *numberRule) multiple(v any, r *validation) bool {
	_, whole := n.step.(int64)
	if _, is := v.(int64); (!is || !whole) && !r.step(costOfMultiple) {
		return false
	}
	return multiple(v, n.step)
}

// multiple reports whether v is an integer times step. Numbers with a fraction
// are taken as the shortest decimals that stand for them, so that 0.3 is a
// multiple of 0.1.
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

// rational returns the number as the decimal that it is written as.
func rational(v any) *big.Rat {
	r, ok := new(big.Rat).SetString(numeral(v))
	if !ok {
		return nil
	}
	return r
}
