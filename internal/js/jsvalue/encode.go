package jsvalue

import (
	"errors"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/dop251/goja"

	"github.com/mcpd/mcpd/internal/base/jsontext"
)

// Encoder writes values of a runtime as JSON, like JSON.stringify, within limits of bytes, depth
// and steps. It runs user code only as getters, proxy traps and toJSON, which can be interrupted.
// It never stores a list that is longer than the value.
type Encoder struct {
	Out      []byte
	MaxBytes int // limit of Out in bytes
	depth    int // limit of stack
	steps    int
	stack    []*goja.Object
	// stopped reports whether the call is over. It is called at every step, which may take long: a
	// member is looked up along all prototypes.
	stopped func() bool
	Layout  Layout
	// BigInts writes a BigInt as an integer.
	BigInts bool
	// Awaited makes promises an error; otherwise their JSON is {}.
	Awaited bool
}

// EncodeError is the error for a value that exceeds a limit or cannot be JSON.
type EncodeError struct {
	Limit   string // name of the limit; empty for a value that JSON cannot hold
	Message string
}

func (e *EncodeError) Error() string { return e.Message }

// errPromise is the error for a promise in a result.
var errPromise = &EncodeError{Message: "there is a promise in it: write await before the call, or await Promise.all([…]) for several"}

// ErrStopped ends the walk when the call is over.
var ErrStopped = errors.New("the call is over")

// NewEncoder returns an encoder with limits of bytes and depth.
func NewEncoder(bytes, depth int, stopped func() bool) *Encoder {
	return &Encoder{MaxBytes: bytes, depth: depth, stopped: stopped}
}

// Encode appends v to Out. It returns false if v is undefined, a function or a symbol, which JSON
// omits.
func (e *Encoder) Encode(v goja.Value) (bool, error) {
	wrote, err := e.value("", nil, v)
	if err == nil && len(e.Out) > e.MaxBytes {
		err = e.tooLarge()
	}
	return wrote, err
}

func (e *Encoder) tooLarge() error {
	return &EncodeError{"output", "the value is larger than " + strconv.Itoa(e.MaxBytes) + " bytes of JSON"}
}

// step counts one visited value. It returns an error for more values than MaxBytes.
func (e *Encoder) step() error {
	e.steps++
	if e.steps > e.MaxBytes || len(e.Out) > e.MaxBytes {
		return e.tooLarge()
	}
	if e.stopped() {
		return ErrStopped
	}
	return nil
}

func (e *Encoder) value(key string, holder *goja.Object, v goja.Value) (bool, error) {
	if err := e.step(); err != nil {
		return false, err
	}
	v = e.Layout.replace(holder, key, ToJSON(key, v))
	if o, ok := v.(*goja.Object); ok {
		return e.object(o)
	}
	return e.primitive(v)
}

func (e *Encoder) primitive(v goja.Value) (bool, error) {
	switch v := v.(type) {
	case nil:
		return false, nil
	case goja.String:
		return true, e.Text(v)
	}
	switch x := v.Export().(type) {
	case int64:
		e.Out = strconv.AppendInt(e.Out, x, 10)
	case float64:
		e.number(v, x)
	case bool:
		e.Out = strconv.AppendBool(e.Out, x)
	case *big.Int:
		return true, e.bigint(x)
	default:
		if !goja.IsNull(v) {
			return false, nil
		}
		e.Out = append(e.Out, "null"...)
	}
	return true, nil
}

// bigint writes a BigInt, if the reader accepts integers of any size.
func (e *Encoder) bigint(b *big.Int) error {
	switch {
	case !e.BigInts:
		return &EncodeError{"", "a BigInt cannot be written as JSON; write String(value)"}
	case b.BitLen() > maxBigIntBits || len(strings.TrimPrefix(b.Text(10), "-")) > maxBigInt:
		return &EncodeError{"", "a BigInt of more than 308 digits cannot be written as JSON"}
	}
	e.Out = b.Append(e.Out, 10)
	return nil
}

func (e *Encoder) number(v goja.Value, f float64) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		e.Out = append(e.Out, "null"...)
		return
	}
	e.Out = append(e.Out, v.String()...)
}

// ToJSON returns the result of v.toJSON(key), or v if it has no such method.
func ToJSON(key string, v goja.Value) goja.Value {
	o, ok := v.(*goja.Object)
	if !ok {
		return v
	}
	method := o.Get("toJSON")
	if _, ok := method.(*goja.Object); !ok {
		return v
	}
	call, ok := Callable(method)
	if !ok {
		return v
	}
	return call(o, goja.StringFromUTF16(utf16Of(key)))
}

func (e *Encoder) object(o *goja.Object) (bool, error) {
	kind := KindOf(o)
	switch kind {
	case Function:
		return false, nil
	case Number:
		return e.primitive(o.ToNumber())
	case String:
		return e.primitive(o.ToString())
	case Boolean:
		e.Out = strconv.AppendBool(e.Out, o.Export() == true)
		return true, nil
	}
	if len(e.stack) >= e.depth {
		return false, &EncodeError{"depth", "the value is nested deeper than " + strconv.Itoa(e.depth)}
	}
	for _, outer := range e.stack {
		if outer == o {
			return false, &EncodeError{"", "the value contains itself, which JSON cannot hold"}
		}
	}
	if e.Awaited && kind == Plain && PromiseOf(o) != nil {
		return false, errPromise
	}
	e.stack = append(e.stack, o)
	var err error
	if kind == Array {
		err = e.array(o)
	} else {
		err = e.members(o, kind)
	}
	e.stack = e.stack[:len(e.stack)-1]
	return true, err
}

func (e *Encoder) array(o *goja.Object) error {
	e.Out = append(e.Out, '[')
	length := LengthOf(o)
	for i := int64(0); i < length; i++ {
		e.separate(i == 0)
		key := strconv.FormatInt(i, 10)
		wrote, err := e.value(key, o, o.Get(key))
		if err != nil {
			return err
		}
		if !wrote {
			e.Out = append(e.Out, "null"...)
		}
	}
	e.finish(length == 0)
	e.Out = append(e.Out, ']')
	return nil
}

func (e *Encoder) members(o *goja.Object, kind Kind) error {
	e.Out = append(e.Out, '{')
	keys, err := e.keys(o, kind)
	if err != nil {
		return err
	}
	empty := true
	for _, key := range keys {
		before := len(e.Out)
		e.separate(empty)
		e.Quote(key)
		e.Out = append(e.Out, ':')
		if e.Layout.Gap != "" {
			e.Out = append(e.Out, ' ')
		}
		wrote, err := e.value(key, o, o.Get(key))
		if err != nil {
			return err
		}
		if !wrote {
			e.Out = e.Out[:before]
			continue
		}
		empty = false
	}
	e.finish(empty)
	e.Out = append(e.Out, '}')
	return nil
}

// keys returns the names of the members to write. It counts the elements of a typed array before it
// lists them.
func (e *Encoder) keys(o *goja.Object, kind Kind) ([]string, error) {
	if e.Layout.Only != nil {
		return e.Layout.Only, nil
	}
	if kind == TypedArray {
		if e.steps += TypedLength(o); e.steps > e.MaxBytes {
			return nil, e.tooLarge()
		}
	}
	return o.Keys(), nil
}

// Text writes a string. Lone surrogates are escaped, because UTF-8 cannot hold them.
func (e *Encoder) Text(s goja.String) error {
	if len(e.Out)+s.Length() > e.MaxBytes {
		return e.tooLarge()
	}
	if HasLoneSurrogate(s) {
		e.quoteUTF16(s)
	} else {
		e.Quote(s.String())
	}
	return nil
}

const HexDigits = "0123456789abcdef"

// Quote writes a string as JSON. It escapes only what must be escaped.
func (e *Encoder) Quote(s string) { e.Out = jsontext.AppendValid(e.Out, s) }

// quoteUTF16 writes a string with lone surrogates, which it escapes.
func (e *Encoder) quoteUTF16(s goja.String) {
	e.Out = append(e.Out, '"')
	for i := 0; i < s.Length(); i++ {
		c := rune(s.CharAt(i))
		if utf16.IsSurrogate(c) {
			if i+1 < s.Length() {
				if r := utf16.DecodeRune(c, rune(s.CharAt(i+1))); r != utf8.RuneError {
					e.Out = utf8.AppendRune(e.Out, r)
					i++
					continue
				}
			}
			e.Out = append(e.Out, '\\', 'u', HexDigits[c>>12], HexDigits[c>>8&15], HexDigits[c>>4&15], HexDigits[c&15])
			continue
		}
		if c < ' ' || c == '"' || c == '\\' {
			e.Out = jsontext.AppendEscape(e.Out, byte(c))
			continue
		}
		e.Out = utf8.AppendRune(e.Out, c)
	}
	e.Out = append(e.Out, '"')
}

// HasLoneSurrogate reports whether the string may hold a lone surrogate, which is U+FFFD after the
// conversion.
func HasLoneSurrogate(s goja.String) bool {
	return strings.ContainsRune(s.String(), utf8.RuneError)
}

// Layout has the options of JSON.stringify.
type Layout struct {
	Gap      string   // indent of one level
	Only     []string // names of the members to write; nil means all
	Replacer func(this goja.Value, args ...goja.Value) goja.Value
}

// replace calls the replacer, if there is one. The outermost value has no holder.
func (l Layout) replace(holder *goja.Object, key string, v goja.Value) goja.Value {
	if l.Replacer == nil {
		return v
	}
	var this goja.Value = goja.Undefined()
	if holder != nil {
		this = holder
	}
	if v == nil {
		v = goja.Undefined()
	}
	return l.Replacer(this, goja.StringFromUTF16(utf16Of(key)), v)
}

// separate starts a member or an element.
func (e *Encoder) separate(first bool) {
	if !first {
		e.Out = append(e.Out, ',')
	}
	e.indent(len(e.stack))
}

// finish starts the line of the closing bracket.
func (e *Encoder) finish(empty bool) {
	if !empty {
		e.indent(len(e.stack) - 1)
	}
}

func (e *Encoder) indent(levels int) {
	if e.Layout.Gap == "" {
		return
	}
	e.Out = append(e.Out, '\n')
	for range levels {
		e.Out = append(e.Out, e.Layout.Gap...)
	}
}

func utf16Of(s string) []uint16 { return utf16.Encode([]rune(s)) }
