package scripting

import (
	"errors"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/dop251/goja"
)

// encoder writes values of a runtime as JSON, with the meaning of
// JSON.stringify, within a budget of bytes, of depth and of steps. It runs
// user code only as getters, proxy traps and toJSON, which can be interrupted,
// and never keeps a list that is longer than what it walks.
type encoder struct {
	out   []byte
	bytes int // the most that out may have
	depth int // the most that stack may have
	steps int
	stack []*goja.Object
	// stopped reports whether the call is over; it is asked at every step, which
	// may be a long one: a member is looked for along all prototypes.
	stopped func() bool
	layout  layout
	// bigints writes a BigInt as the integer that it is.
	bigints bool
	// awaited refuses promises, of which JSON has no more than {}.
	awaited bool
}

// encodeError says which bound a value exceeded.
type encodeError struct {
	limit   string // the name of the bound; empty for a value that JSON cannot hold
	message string
}

func (e *encodeError) Error() string { return e.message }

// errPromise refuses a promise within a result.
var errPromise = &encodeError{message: "there is a promise in it: write await before the call, or await Promise.all([…]) for several"}

// errStopped ends the walk of a call that is over.
var errStopped = errors.New("the call is over")

func newEncoder(bytes, depth int, stopped func() bool) *encoder {
	return &encoder{bytes: bytes, depth: depth, stopped: stopped}
}

// encode appends v to out. It reports false when v is undefined, a function or
// a symbol, which JSON leaves out.
func (e *encoder) encode(v goja.Value) (bool, error) {
	wrote, err := e.value("", nil, v)
	if err == nil && len(e.out) > e.bytes {
		err = e.tooLarge()
	}
	return wrote, err
}

func (e *encoder) tooLarge() error {
	return &encodeError{"output", "the value is larger than " + strconv.Itoa(e.bytes) + " bytes of JSON"}
}

// step counts one visited value, and ends a walk that visits more values than
// its output may have bytes.
func (e *encoder) step() error {
	e.steps++
	if e.steps > e.bytes || len(e.out) > e.bytes {
		return e.tooLarge()
	}
	if e.stopped() {
		return errStopped
	}
	return nil
}

func (e *encoder) value(key string, holder *goja.Object, v goja.Value) (bool, error) {
	if err := e.step(); err != nil {
		return false, err
	}
	v = e.layout.replace(holder, key, toJSON(key, v))
	if o, ok := v.(*goja.Object); ok {
		return e.object(o)
	}
	return e.primitive(v)
}

func (e *encoder) primitive(v goja.Value) (bool, error) {
	switch v := v.(type) {
	case nil:
		return false, nil
	case goja.String:
		return true, e.text(v)
	}
	switch x := v.Export().(type) {
	case int64:
		e.out = strconv.AppendInt(e.out, x, 10)
	case float64:
		e.number(v, x)
	case bool:
		e.out = strconv.AppendBool(e.out, x)
	case *big.Int:
		return true, e.bigint(x)
	default:
		if !goja.IsNull(v) {
			return false, nil
		}
		e.out = append(e.out, "null"...)
	}
	return true, nil
}

// bigint writes a BigInt where integers of any size are read.
func (e *encoder) bigint(b *big.Int) error {
	switch {
	case !e.bigints:
		return &encodeError{"", "a BigInt cannot be written as JSON; write String(value)"}
	case b.BitLen() > maxBigIntBits || len(strings.TrimPrefix(b.Text(10), "-")) > maxBigInt:
		return &encodeError{"", "a BigInt of more than 308 digits cannot be written as JSON"}
	}
	e.out = b.Append(e.out, 10)
	return nil
}

func (e *encoder) number(v goja.Value, f float64) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		e.out = append(e.out, "null"...)
		return
	}
	e.out = append(e.out, v.String()...)
}

// toJSON returns what v.toJSON(key) returns, or v when it has no such method.
func toJSON(key string, v goja.Value) goja.Value {
	o, ok := v.(*goja.Object)
	if !ok {
		return v
	}
	method := o.Get("toJSON")
	if _, ok := method.(*goja.Object); !ok {
		return v
	}
	call, ok := callable(method)
	if !ok {
		return v
	}
	return call(o, goja.StringFromUTF16(utf16Of(key)))
}

func (e *encoder) object(o *goja.Object) (bool, error) {
	kind := kindOf(o)
	switch kind {
	case kindFunction:
		return false, nil
	case kindNumber:
		return e.primitive(o.ToNumber())
	case kindString:
		return e.primitive(o.ToString())
	case kindBoolean:
		e.out = strconv.AppendBool(e.out, o.Export() == true)
		return true, nil
	}
	if len(e.stack) >= e.depth {
		return false, &encodeError{"depth", "the value is nested deeper than " + strconv.Itoa(e.depth)}
	}
	for _, outer := range e.stack {
		if outer == o {
			return false, &encodeError{"", "the value contains itself, which JSON cannot hold"}
		}
	}
	if e.awaited && kind == kindPlain && promiseOf(o) != nil {
		return false, errPromise
	}
	e.stack = append(e.stack, o)
	var err error
	if kind == kindArray {
		err = e.array(o)
	} else {
		err = e.members(o, kind)
	}
	e.stack = e.stack[:len(e.stack)-1]
	return true, err
}

func (e *encoder) array(o *goja.Object) error {
	e.out = append(e.out, '[')
	length := lengthOf(o)
	for i := int64(0); i < length; i++ {
		e.separate(i == 0)
		key := strconv.FormatInt(i, 10)
		wrote, err := e.value(key, o, o.Get(key))
		if err != nil {
			return err
		}
		if !wrote {
			e.out = append(e.out, "null"...)
		}
	}
	e.finish(length == 0)
	e.out = append(e.out, ']')
	return nil
}

func (e *encoder) members(o *goja.Object, kind objectKind) error {
	e.out = append(e.out, '{')
	keys, err := e.keys(o, kind)
	if err != nil {
		return err
	}
	empty := true
	for _, key := range keys {
		before := len(e.out)
		e.separate(empty)
		e.quote(key)
		e.out = append(e.out, ':')
		if e.layout.gap != "" {
			e.out = append(e.out, ' ')
		}
		wrote, err := e.value(key, o, o.Get(key))
		if err != nil {
			return err
		}
		if !wrote {
			e.out = e.out[:before]
			continue
		}
		empty = false
	}
	e.finish(empty)
	e.out = append(e.out, '}')
	return nil
}

// keys returns the names of the members to write. The elements of a typed
// array are counted before they are listed.
func (e *encoder) keys(o *goja.Object, kind objectKind) ([]string, error) {
	if e.layout.only != nil {
		return e.layout.only, nil
	}
	if kind == kindTyped {
		if e.steps += typedLength(o); e.steps > e.bytes {
			return nil, e.tooLarge()
		}
	}
	return o.Keys(), nil
}

// text writes a string. Lone surrogates, which UTF-8 cannot hold, are escaped.
func (e *encoder) text(s goja.String) error {
	if len(e.out)+s.Length() > e.bytes {
		return e.tooLarge()
	}
	if lone(s) {
		e.quoteUTF16(s)
	} else {
		e.quote(s.String())
	}
	return nil
}

const hexDigits = "0123456789abcdef"

// quote writes a string as JSON does: only what must be escaped is.
func (e *encoder) quote(s string) {
	e.out = append(e.out, '"')
	from := 0
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		e.out = append(e.out, s[from:i]...)
		e.out = appendEscape(e.out, c)
		from = i + 1
	}
	e.out = append(e.out, s[from:]...)
	e.out = append(e.out, '"')
}

func appendEscape(out []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(out, '\\', c)
	case '\b':
		return append(out, `\b`...)
	case '\t':
		return append(out, `\t`...)
	case '\n':
		return append(out, `\n`...)
	case '\f':
		return append(out, `\f`...)
	case '\r':
		return append(out, `\r`...)
	}
	return append(out, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

// quoteUTF16 writes a string that has lone surrogates, with these escaped.
func (e *encoder) quoteUTF16(s goja.String) {
	e.out = append(e.out, '"')
	for i := 0; i < s.Length(); i++ {
		c := rune(s.CharAt(i))
		if utf16.IsSurrogate(c) {
			if i+1 < s.Length() {
				if r := utf16.DecodeRune(c, rune(s.CharAt(i+1))); r != utf8.RuneError {
					e.out = utf8.AppendRune(e.out, r)
					i++
					continue
				}
			}
			e.out = append(e.out, '\\', 'u', hexDigits[c>>12], hexDigits[c>>8&15], hexDigits[c>>4&15], hexDigits[c&15])
			continue
		}
		if c < ' ' || c == '"' || c == '\\' {
			e.out = appendEscape(e.out, byte(c))
			continue
		}
		e.out = utf8.AppendRune(e.out, c)
	}
	e.out = append(e.out, '"')
}

// lone reports whether the string may hold a lone surrogate, which shows as
// U+FFFD once it is converted.
func lone(s goja.String) bool {
	return strings.ContainsRune(s.String(), utf8.RuneError)
}

// layout is what JSON.stringify takes beside the value.
type layout struct {
	gap      string   // the indent of one level
	only     []string // the names of the members to write; nil means all
	replacer func(this goja.Value, args ...goja.Value) goja.Value
}

// replace asks the replacer, if there is one. The outermost value has no holder.
func (l layout) replace(holder *goja.Object, key string, v goja.Value) goja.Value {
	if l.replacer == nil {
		return v
	}
	var this goja.Value = goja.Undefined()
	if holder != nil {
		this = holder
	}
	if v == nil {
		v = goja.Undefined()
	}
	return l.replacer(this, goja.StringFromUTF16(utf16Of(key)), v)
}

// separate begins a new member or element.
func (e *encoder) separate(first bool) {
	if !first {
		e.out = append(e.out, ',')
	}
	e.indent(len(e.stack))
}

// finish goes to the line of the closing bracket.
func (e *encoder) finish(empty bool) {
	if !empty {
		e.indent(len(e.stack) - 1)
	}
}

func (e *encoder) indent(levels int) {
	if e.layout.gap == "" {
		return
	}
	e.out = append(e.out, '\n')
	for range levels {
		e.out = append(e.out, e.layout.gap...)
	}
}

func utf16Of(s string) []uint16 { return utf16.Encode([]rune(s)) }
