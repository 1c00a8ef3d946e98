package scripting

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/dop251/goja"
)

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

func (d *decoder) stringValue() (goja.Value, error) {
	start, escaped, err := d.scanString()
	if err != nil {
		return nil, err
	}
	raw := d.src[start : d.at-1]
	if !escaped {
		return d.rt.ToValue(raw), nil
	}
	return goja.StringFromUTF16(unescape(raw)), nil
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
