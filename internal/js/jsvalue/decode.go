package jsvalue

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/dop251/goja"
)

// Limits of JSON that enters a runtime.
const (
	MaxDecodeDepth  = 512
	MaxDecodeValues = 1_000_000
)

// Decoder decodes JSON text to values of one runtime, without running any script. It accepts strict
// JSON only, reads each byte once, and limits its recursion.
type Decoder struct {
	Runtime *goja.Runtime
	Src     string
	at      int
	depth   int
	values  int
	// Freeze makes every object and array immutable; may be nil.
	Freeze goja.Callable
	// Big has the positions of BigInts in the value that is being decoded.
	Big *BigInts
	// Stopped reports whether the call is over; may be nil.
	Stopped func() bool
}

// decodeError is the error for text that is not JSON, or exceeds a limit. It repeats none of the
// text.
type decodeError struct {
	at      int
	message string
}

func (e *decodeError) Error() string {
	return fmt.Sprintf("%s at byte %d of the JSON text", e.message, e.at)
}

// Document returns the value of the whole text.
func (d *Decoder) Document() (goja.Value, error) {
	v, err := d.value()
	if err != nil {
		return nil, err
	}
	if d.space(); d.at < len(d.Src) {
		return nil, d.fail("unexpected text after the value")
	}
	return v, nil
}

func (d *Decoder) fail(message string) error { return &decodeError{d.at, message} }

// unexpected returns the error for the end of the text, or for a wrong byte.
func (d *Decoder) unexpected() error {
	if d.at >= len(d.Src) {
		return d.fail("unexpected end")
	}
	return d.fail("unexpected character")
}

func (d *Decoder) space() {
	for d.at < len(d.Src) {
		switch d.Src[d.at] {
		case ' ', '\n', '\r', '\t':
			d.at++
		default:
			return
		}
	}
}

// peek returns the next byte after white space, 0 at the end.
func (d *Decoder) peek() byte {
	d.space()
	if d.at >= len(d.Src) {
		return 0
	}
	return d.Src[d.at]
}

func (d *Decoder) value() (goja.Value, error) {
	if d.values++; d.values > MaxDecodeValues {
		return nil, d.fail("more than 1,000,000 values")
	}
	if d.Stopped != nil && d.Stopped() {
		return nil, ErrStopped
	}
	switch c := d.peek(); c {
	case '{':
		return d.nested(d.object)
	case '[':
		return d.nested(d.array)
	case '"':
		start, escaped, err := d.scanString()
		if err != nil {
			return nil, err
		}
		raw := d.Src[start : d.at-1]
		if !escaped {
			return d.Runtime.ToValue(raw), nil
		}
		return goja.StringFromUTF16(unescape(raw)), nil
	case 't':
		return d.literal("true", d.Runtime.ToValue(true))
	case 'f':
		return d.literal("false", d.Runtime.ToValue(false))
	case 'n':
		return d.literal("null", goja.Null())
	default:
		return d.number()
	}
}

func (d *Decoder) literal(word string, v goja.Value) (goja.Value, error) {
	if !strings.HasPrefix(d.Src[d.at:], word) {
		return nil, d.unexpected()
	}
	d.at += len(word)
	return v, nil
}

func (d *Decoder) nested(read func() (*goja.Object, error)) (goja.Value, error) {
	if d.depth++; d.depth > MaxDecodeDepth {
		return nil, d.fail("nested deeper than 512")
	}
	d.at++
	o, err := read()
	d.depth--
	if err != nil {
		return nil, err
	}
	if d.Freeze != nil {
		if _, err := d.Freeze(nil, o); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// object decodes the members of an object. Members with array indexes as names are defined first,
// in ascending order. JavaScript enumerates them in this order anyway, and goja moves all of them
// for each that comes out of order.
func (d *Decoder) object() (*goja.Object, error) {
	o := d.Runtime.NewObject()
	if d.peek() == '}' {
		d.at++
		return o, nil
	}
	var indexed []IndexedMember
	for {
		name, v, err := d.member()
		if err != nil {
			return nil, err
		}
		if index, ok := ArrayIndex(name); ok {
			indexed = append(indexed, IndexedMember{index, name, v})
		} else if err := Define(o, name, v); err != nil {
			return nil, err
		}
		switch d.peek() {
		case ',':
			d.at++
		case '}':
			d.at++
			return o, DefineIndexed(o, indexed)
		default:
			return nil, d.unexpected()
		}
	}
}

func (d *Decoder) member() (string, goja.Value, error) {
	if d.peek() != '"' {
		return "", nil, d.unexpected()
	}
	name, err := d.text()
	if err != nil {
		return "", nil, err
	}
	if d.peek() != ':' {
		return "", nil, d.unexpected()
	}
	d.at++
	outer := d.Big
	d.Big = outer.member(name)
	v, err := d.value()
	d.Big = outer
	return name, v, err
}

// IndexedMember is a member with an array index as name.
type IndexedMember struct {
	Index uint32
	Name  string
	Value goja.Value
}

// DefineIndexed defines members in ascending order of their indexes, as the engine lists them.
func DefineIndexed(o *goja.Object, members []IndexedMember) error {
	slices.SortFunc(members, func(a, b IndexedMember) int { return cmp.Compare(a.Index, b.Index) })
	for _, m := range members {
		if err := Define(o, m.Name, m.Value); err != nil {
			return err
		}
	}
	return nil
}

// ArrayIndex reports whether a name is an array index in canonical form
// (ECMA-262 section 6.1.7).
func ArrayIndex(name string) (uint32, bool) {
	if name == "" || len(name) > 10 || name[0] < '0' || name[0] > '9' || name[0] == '0' && len(name) > 1 {
		return 0, false
	}
	n, err := strconv.ParseUint(name, 10, 32)
	return uint32(n), err == nil && n < 1<<32-1
}

// Define sets a member of a plain object. __proto__ becomes a member like any other.
func Define(o *goja.Object, name string, v goja.Value) error {
	if name == "__proto__" {
		return o.DefineDataProperty(name, v, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_TRUE)
	}
	return o.Set(name, v)
}

func (d *Decoder) array() (*goja.Object, error) {
	if d.peek() == ']' {
		d.at++
		return d.Runtime.NewArray(), nil
	}
	var items []any
	outer := d.Big
	d.Big = outer.item()
	defer func() { d.Big = outer }()
	for {
		v, err := d.value()
		if err != nil {
			return nil, err
		}
		items = append(items, v)
		switch d.peek() {
		case ',':
			d.at++
		case ']':
			d.at++
			return d.Runtime.NewArray(items...), nil
		default:
			return nil, d.unexpected()
		}
	}
}

func (d *Decoder) number() (goja.Value, error) {
	start := d.at
	if !d.scanNumber() {
		return nil, d.unexpected()
	}
	text := d.Src[start:d.at]
	if d.Big != nil && d.Big.here {
		if v, ok := d.bigint(text); ok {
			return v, nil
		}
		return nil, d.fail("no integer")
	}
	if len(text) < 16 && !strings.ContainsAny(text, ".eE") && text != "-0" {
		n, err := strconv.ParseInt(text, 10, 64)
		return d.Runtime.ToValue(n), err
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		d.at = start
		return nil, d.fail("number out of range")
	}
	return d.Runtime.ToValue(f), nil
}

// scanNumber skips a number in the syntax of RFC 8259, and reports whether there is one.
func (d *Decoder) scanNumber() bool {
	if d.byteIs("-") {
		d.at++
	}
	switch {
	case d.byteIs("0"):
		d.at++
	case !d.digits():
		return false
	}
	if d.byteIs(".") {
		if d.at++; !d.digits() {
			return false
		}
	}
	if !d.byteIs("eE") {
		return true
	}
	if d.at++; d.byteIs("+-") {
		d.at++
	}
	return d.digits()
}

func (d *Decoder) byteIs(set string) bool {
	return d.at < len(d.Src) && strings.IndexByte(set, d.Src[d.at]) >= 0
}

func (d *Decoder) digits() bool {
	start := d.at
	for d.at < len(d.Src) && d.Src[d.at] >= '0' && d.Src[d.at] <= '9' {
		d.at++
	}
	return d.at > start
}

// text decodes a string that becomes a name. Lone surrogates become U+FFFD.
func (d *Decoder) text() (string, error) {
	start, escaped, err := d.scanString()
	if err != nil {
		return "", err
	}
	raw := d.Src[start : d.at-1]
	if !escaped {
		return raw, nil
	}
	return string(utf16.Decode(unescape(raw))), nil
}

// scanString skips a string, checks its escapes, and returns the start of its content.
func (d *Decoder) scanString() (start int, escaped bool, err error) {
	d.at++
	start = d.at
	for d.at < len(d.Src) {
		switch c := d.Src[d.at]; {
		case c == '"':
			d.at++
			return start, escaped, nil
		case c < ' ':
			return 0, false, d.fail("control character in a string")
		case c == '\\':
			escaped = true
			if !d.escape() {
				return 0, false, d.fail("invalid escape in a string")
			}
		case c < utf8.RuneSelf:
			d.at++
		default:
			r, size := utf8.DecodeRuneInString(d.Src[d.at:])
			if r == utf8.RuneError && size == 1 {
				return 0, false, d.fail("invalid UTF-8")
			}
			d.at += size
		}
	}
	return 0, false, d.fail("unexpected end")
}

// escape skips an escape sequence.
func (d *Decoder) escape() bool {
	rest := d.Src[d.at+1:]
	if rest == "" {
		return false
	}
	if rest[0] != 'u' {
		d.at += 2
		return strings.IndexByte(`"\/bfnrt`, rest[0]) >= 0
	}
	if len(rest) < 5 {
		return false
	}
	d.at += 6
	_, err := strconv.ParseUint(rest[1:5], 16, 16)
	return err == nil
}

// unescape returns the content of a JSON string with valid escapes as UTF-16. Lone surrogates are
// preserved.
func unescape(raw string) []uint16 {
	out := make([]uint16, 0, len(raw))
	for i := 0; i < len(raw); {
		c := raw[i]
		switch {
		case c == '\\' && raw[i+1] == 'u':
			n, _ := strconv.ParseUint(raw[i+2:i+6], 16, 16)
			out = append(out, uint16(n))
			i += 6
		case c == '\\':
			out = append(out, uint16(unescaped(raw[i+1])))
			i += 2
		case c < utf8.RuneSelf:
			out = append(out, uint16(c))
			i++
		default:
			r, size := utf8.DecodeRuneInString(raw[i:])
			out = utf16.AppendRune(out, r)
			i += size
		}
	}
	return out
}

// unescaped returns the byte for a one-letter escape.
func unescaped(letter byte) byte {
	if i := strings.IndexByte("bfnrt", letter); i >= 0 {
		return "\b\f\n\r\t"[i]
	}
	return letter
}

// maxBigInt is the maximum number of digits of a BigInt.
const maxBigInt = 308

// maxBigIntBits is the maximum size of a BigInt with maxBigInt digits.
const maxBigIntBits = 1024

func (d *Decoder) bigint(text string) (goja.Value, bool) {
	if len(strings.TrimPrefix(text, "-")) > maxBigInt {
		return nil, false
	}
	b, ok := new(big.Int).SetString(text, 10)
	if !ok {
		return nil, false
	}
	return d.Runtime.ToValue(b), true
}
