package scripting

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/dop251/goja"
)

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
