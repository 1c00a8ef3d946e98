package builtins

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"

	"github.com/dop251/goja"

	"github.com/mcpd/mcpd/internal/js/jsvalue"
)

// BytesOf returns the bytes of an ArrayBuffer or a typed array. They are
// shared with the script.
func (r *Realm) BytesOf(v goja.Value) ([]byte, bool) {
	o, ok := v.(*goja.Object)
	if !ok {
		return nil, false
	}
	switch o.ExportType() {
	case jsvalue.BufferType:
		return o.Export().(goja.ArrayBuffer).Bytes(), true
	case jsvalue.BytesType:
		return o.Export().([]byte), true
	}
	if jsvalue.KindOf(o) != jsvalue.TypedArray {
		return nil, false
	}
	buffer, ok := o.Get("buffer").Export().(goja.ArrayBuffer)
	if !ok {
		return nil, false
	}
	all := buffer.Bytes()
	from, length := o.Get("byteOffset").ToInteger(), o.Get("byteLength").ToInteger()
	if from < 0 || length < 0 || from+length > int64(len(all)) {
		return nil, false
	}
	return all[from : from+length], true
}

// NewBytes returns a Uint8Array of data. The script owns data afterwards.
func (r *Realm) NewBytes(data []byte) goja.Value {
	return r.Construct("Uint8Array", r.newBuffer(data))
}

func (r *Realm) newBuffer(data []byte) goja.Value {
	return r.Runtime.ToValue(r.Runtime.NewArrayBuffer(data))
}

// Construct returns a new object of a class of the engine.
func (r *Realm) Construct(class string, args ...goja.Value) *goja.Object {
	o, err := r.Runtime.New(r.Builtin(class), args...)
	if err != nil {
		panic(err)
	}
	return o
}

// maxText limits the text that one native function reads, in bytes or UTF-16 units: it cannot be
// interrupted while it reads.
const maxText = 16 << 20

func (r *Realm) bounded(v goja.Value) goja.String {
	text, ok := v.ToString().(goja.String)
	if !ok { // the engine does not convert numbers and booleans
		text = r.Runtime.ToValue(v.String()).(goja.String)
	}
	if text.Length() > maxText {
		panic(r.tooLong())
	}
	return text
}

func (r *Realm) tooLong() *goja.Object {
	return r.RangeError("the text is longer than 16 MiB")
}

// atob decodes base64 to a string with one character per byte.
func (r *Realm) atob(c goja.FunctionCall) goja.Value {
	text := strings.Map(func(c rune) rune {
		if strings.ContainsRune(" \t\n\f\r", c) {
			return -1
		}
		return c
	}, r.bounded(c.Argument(0)).String())
	if len(text)%4 == 0 {
		text = strings.TrimSuffix(strings.TrimSuffix(text, "="), "=")
	}
	data, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil {
		panic(r.TypeError("atob: the text is not base64"))
	}
	units := make([]uint16, len(data))
	for i, b := range data {
		units[i] = uint16(b)
	}
	return goja.StringFromUTF16(units)
}

// btoa encodes a string with one character per byte as base64.
func (r *Realm) btoa(c goja.FunctionCall) goja.Value {
	text := r.bounded(c.Argument(0))
	data := make([]byte, text.Length())
	for i := range data {
		unit := text.CharAt(i)
		if unit > 0xFF {
			panic(r.TypeError("btoa: the text has characters beyond U+00FF; encode it with TextEncoder first"))
		}
		data[i] = byte(unit)
	}
	return r.Runtime.ToValue(base64.StdEncoding.EncodeToString(data))
}

// makeTextEncoder returns TextEncoder, with encode only.
func (r *Realm) makeTextEncoder() *goja.Object {
	class, prototype := r.Class("TextEncoder", func(*goja.Object, goja.ConstructorCall) {})
	r.Accessor(prototype, "encoding", func(goja.FunctionCall) goja.Value { return r.Runtime.ToValue("utf-8") }, nil)
	r.Method(prototype, "encode", func(c goja.FunctionCall) goja.Value {
		text := ""
		if v := c.Argument(0); !goja.IsUndefined(v) {
			text = r.bounded(v).String()
		}
		return r.NewBytes([]byte(text))
	})
	return class
}

type textDecoder struct{ fatal, keepBOM bool }

// makeTextDecoder returns TextDecoder for UTF-8, without streaming.
func (r *Realm) makeTextDecoder() *goja.Object {
	class, prototype := r.Class("TextDecoder", func(this *goja.Object, c goja.ConstructorCall) {
		if label := c.Argument(0); !goja.IsUndefined(label) {
			switch strings.ToLower(strings.TrimSpace(label.String())) {
			case "utf-8", "utf8", "unicode-1-1-utf-8":
			default:
				panic(r.Runtime.NewTypeError("TextDecoder knows utf-8 only"))
			}
		}
		r.Bind(this, &textDecoder{
			fatal:   Option(c.Argument(1), "fatal").ToBoolean(),
			keepBOM: Option(c.Argument(1), "ignoreBOM").ToBoolean(),
		})
	})
	r.Accessor(prototype, "encoding", func(goja.FunctionCall) goja.Value { return r.Runtime.ToValue("utf-8") }, nil)
	r.Method(prototype, "decode", func(c goja.FunctionCall) goja.Value {
		return r.decodeText(Self[*textDecoder](r, c.This), c.Argument(0))
	})
	return class
}

func (r *Realm) decodeText(d *textDecoder, v goja.Value) goja.Value {
	var data []byte
	if !goja.IsUndefined(v) {
		var ok bool
		if data, ok = r.BytesOf(v); !ok {
			panic(r.TypeError("TextDecoder.decode needs an ArrayBuffer or a typed array"))
		}
	}
	if len(data) > maxText {
		panic(r.tooLong())
	}
	if d.fatal && !utf8.Valid(data) {
		panic(r.TypeError("the bytes are not UTF-8"))
	}
	text := ValidUTF8(string(data))
	if !d.keepBOM {
		text = strings.TrimPrefix(text, ByteOrderMark)
	}
	return r.Runtime.ToValue(text)
}

const ByteOrderMark = "\ufeff"

// ValidUTF8 replaces invalid UTF-8 like the WHATWG Encoding standard: one U+FFFD for each maximal
// prefix of a character.
func ValidUTF8(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		if r == utf8.RuneError && size == 1 {
			size = truncated(text)
		}
		b.WriteRune(r)
		text = text[size:]
	}
	return b.String()
}

// truncated returns the length of the longest prefix of a character at the start of text, which
// does not start with a complete character; at least 1.
func truncated(text string) int {
	for n := min(3, len(text)); n > 1; n-- {
		if !utf8.FullRuneInString(text[:n]) {
			return n
		}
	}
	return 1
}
