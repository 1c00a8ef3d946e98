package scripting

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/dop251/goja"
)

// The bounds of JSON that enters a runtime.
const (
	maxDecodeDepth  = 512
	maxDecodeValues = 1_000_000
)

// decoder turns JSON text into values of one runtime, without running any
// script. It is strict JSON, reads each byte once, and recurses no deeper than
// its bound.
type decoder struct {
	rt     *goja.Runtime
	src    string
	at     int
	depth  int
	values int
	// freeze makes every object and array immutable; nil leaves them as they are.
	freeze goja.Callable
	// big says where a number is a BigInt, of the value that is being read.
	big *bigints
	// stopped reports whether the call is over; nil means that there is none.
	stopped func() bool
}

// decodeError says why text is not JSON, or exceeds a bound. It repeats none of the text.
type decodeError struct {
	at      int
	message string
}

func (e *decodeError) Error() string {
	return fmt.Sprintf("%s at byte %d of the JSON text", e.message, e.at)
}

func (d *decoder) document() (goja.Value, error) {
	v, err := d.value()
	if err != nil {
		return nil, err
	}
	if d.space(); d.at < len(d.src) {
		return nil, d.fail("unexpected text after the value")
	}
	return v, nil
}

func (d *decoder) fail(message string) error { return &decodeError{d.at, message} }

// unexpected tells the end of the text and a wrong byte apart.
func (d *decoder) unexpected() error {
	if d.at >= len(d.src) {
		return d.fail("unexpected end")
	}
	return d.fail("unexpected character")
}

func (d *decoder) space() {
	for d.at < len(d.src) {
		switch d.src[d.at] {
		case ' ', '\n', '\r', '\t':
			d.at++
		default:
			return
		}
	}
}

// peek returns the next byte after white space, 0 at the end.
func (d *decoder) peek() byte {
	d.space()
	if d.at >= len(d.src) {
		return 0
	}
	return d.src[d.at]
}

func (d *decoder) value() (goja.Value, error) {
	if d.values++; d.values > maxDecodeValues {
		return nil, d.fail("more than 1,000,000 values")
	}
	if d.stopped != nil && d.stopped() {
		return nil, errStopped
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
		raw := d.src[start : d.at-1]
		if !escaped {
			return d.rt.ToValue(raw), nil
		}
		return goja.StringFromUTF16(unescape(raw)), nil
	case 't':
		return d.literal("true", d.rt.ToValue(true))
	case 'f':
		return d.literal("false", d.rt.ToValue(false))
	case 'n':
		return d.literal("null", goja.Null())
	default:
		return d.number()
	}
}

func (d *decoder) literal(word string, v goja.Value) (goja.Value, error) {
	if !strings.HasPrefix(d.src[d.at:], word) {
		return nil, d.unexpected()
	}
	d.at += len(word)
	return v, nil
}

func (d *decoder) nested(read func() (*goja.Object, error)) (goja.Value, error) {
	if d.depth++; d.depth > maxDecodeDepth {
		return nil, d.fail("nested deeper than 512")
	}
	d.at++
	o, err := read()
	d.depth--
	if err != nil {
		return nil, err
	}
	if d.freeze != nil {
		if _, err := d.freeze(nil, o); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// object parses the members of an object. Those whose names are array indexes
// are defined first and in ascending order, which is how JavaScript shows them
// anyway: goja moves all of them for each that comes out of order.
func (d *decoder) object() (*goja.Object, error) {
	o := d.rt.NewObject()
	if d.peek() == '}' {
		d.at++
		return o, nil
	}
	var indexed []indexedMember
	for {
		name, v, err := d.member()
		if err != nil {
			return nil, err
		}
		if index, ok := arrayIndex(name); ok {
			indexed = append(indexed, indexedMember{index, name, v})
		} else if err := define(o, name, v); err != nil {
			return nil, err
		}
		switch d.peek() {
		case ',':
			d.at++
		case '}':
			d.at++
			return o, defineIndexed(o, indexed)
		default:
			return nil, d.unexpected()
		}
	}
}

func (d *decoder) member() (string, goja.Value, error) {
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
	outer := d.big
	d.big = outer.member(name)
	v, err := d.value()
	d.big = outer
	return name, v, err
}

type indexedMember struct {
	index uint32
	name  string
	value goja.Value
}

func defineIndexed(o *goja.Object, members []indexedMember) error {
	slices.SortFunc(members, func(a, b indexedMember) int { return cmp.Compare(a.index, b.index) })
	for _, m := range members {
		if err := define(o, m.name, m.value); err != nil {
			return err
		}
	}
	return nil
}

// arrayIndex reports whether a name is an array index in canonical form
// (ECMA-262 section 6.1.7).
func arrayIndex(name string) (uint32, bool) {
	if name == "" || len(name) > 10 || name[0] < '0' || name[0] > '9' || name[0] == '0' && len(name) > 1 {
		return 0, false
	}
	n, err := strconv.ParseUint(name, 10, 32)
	return uint32(n), err == nil && n < 1<<32-1
}

// define sets a member of a plain object. The one name that would change the
// object itself becomes a member like any other.
func define(o *goja.Object, name string, v goja.Value) error {
	if name == "__proto__" {
		return o.DefineDataProperty(name, v, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_TRUE)
	}
	return o.Set(name, v)
}

func (d *decoder) array() (*goja.Object, error) {
	if d.peek() == ']' {
		d.at++
		return d.rt.NewArray(), nil
	}
	var items []any
	outer := d.big
	d.big = outer.item()
	defer func() { d.big = outer }()
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
			return d.rt.NewArray(items...), nil
		default:
			return nil, d.unexpected()
		}
	}
}

func (d *decoder) number() (goja.Value, error) {
	start := d.at
	if !d.scanNumber() {
		return nil, d.unexpected()
	}
	text := d.src[start:d.at]
	if d.big != nil && d.big.here {
		if v, ok := d.bigint(text); ok {
			return v, nil
		}
		return nil, d.fail("no integer")
	}
	if len(text) < 16 && !strings.ContainsAny(text, ".eE") && text != "-0" {
		n, err := strconv.ParseInt(text, 10, 64)
		return d.rt.ToValue(n), err
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		d.at = start
		return nil, d.fail("number out of range")
	}
	return d.rt.ToValue(f), nil
}

// scanNumber moves behind a number as RFC 8259 writes it, and reports whether there is one.
func (d *decoder) scanNumber() bool {
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

func (d *decoder) byteIs(set string) bool {
	return d.at < len(d.src) && strings.IndexByte(set, d.src[d.at]) >= 0
}

func (d *decoder) digits() bool {
	start := d.at
	for d.at < len(d.src) && d.src[d.at] >= '0' && d.src[d.at] <= '9' {
		d.at++
	}
	return d.at > start
}

// text reads a string that becomes a name. A lone surrogate becomes U+FFFD in it.
func (d *decoder) text() (string, error) {
	start, escaped, err := d.scanString()
	if err != nil {
		return "", err
	}
	raw := d.src[start : d.at-1]
	if !escaped {
		return raw, nil
	}
	return string(utf16.Decode(unescape(raw))), nil
}

// scanString moves behind a string, checking its escapes, and returns where
// its inside begins.
func (d *decoder) scanString() (start int, escaped bool, err error) {
	d.at++
	start = d.at
	for d.at < len(d.src) {
		switch c := d.src[d.at]; {
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
			r, size := utf8.DecodeRuneInString(d.src[d.at:])
			if r == utf8.RuneError && size == 1 {
				return 0, false, d.fail("invalid UTF-8")
			}
			d.at += size
		}
	}
	return 0, false, d.fail("unexpected end")
}

// escape moves behind the escape that begins here.
func (d *decoder) escape() bool {
	rest := d.src[d.at+1:]
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

// unescape returns the inside of a JSON string, whose escapes are known to be
// valid, as UTF-16. Lone surrogates stay what they are.
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

// unescaped returns the byte that a one-letter escape stands for.
func unescaped(letter byte) byte {
	if i := strings.IndexByte("bfnrt", letter); i >= 0 {
		return "\b\f\n\r\t"[i]
	}
	return letter
}
