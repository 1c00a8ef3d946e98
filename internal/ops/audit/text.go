package audit

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcpd/mcpd/internal/base/redact"
)

const (
	// maxText is the maximum length of a string in a record, in bytes; longer ones end
	// in an ellipsis.
	maxText = 1 << 10
	// maxName is the maximum length of a member name in bytes; members with longer
	// names are omitted.
	maxName = 128
	// maxMembers is the maximum number of members or items of a value.
	maxMembers = 64

	ellipsis = "…"
	hexits   = "0123456789abcdef"
)

// appendString appends a JSON string of at most limit bytes of s. It escapes characters
// that could control a terminal or reorder a line, and replaces invalid UTF-8 by
// U+FFFD.
func appendString(dst []byte, s string, limit int) []byte {
	cut := len(s) > limit
	if cut {
		s = s[:limit]
		for !utf8.ValidString(s[max(0, len(s)-utf8.UTFMax):]) && len(s) > limit-utf8.UTFMax {
			s = s[:len(s)-1]
		}
	}
	dst = append(dst, '"')
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			dst = appendASCII(dst, c)
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		dst = appendRune(dst, r)
		i += size
	}
	if cut {
		dst = append(dst, ellipsis...)
	}
	return append(dst, '"')
}

func appendASCII(dst []byte, c byte) []byte {
	switch {
	case c == '"' || c == '\\':
		return append(dst, '\\', c)
	case c < 0x20 || c == 0x7f:
		return appendEscape(dst, rune(c))
	}
	return append(dst, c)
}

// appendRune appends a non-ASCII character, escaped if it is not printable.
func appendRune(dst []byte, r rune) []byte {
	if r != utf8.RuneError && unicode.IsPrint(r) {
		return utf8.AppendRune(dst, r)
	}
	if r < 0x10000 {
		return appendEscape(dst, r)
	}
	r -= 0x10000
	return appendEscape(appendEscape(dst, 0xd800+r>>10), 0xdc00+r&0x3ff)
}

func appendEscape(dst []byte, r rune) []byte {
	return append(dst, '\\', 'u', hexits[r>>12&15], hexits[r>>8&15], hexits[r>>4&15], hexits[r&15])
}

// appendShown appends JSON with non-printable characters escaped as in appendString.
func appendShown(dst, raw []byte) []byte {
	for i := 0; i < len(raw); {
		if raw[i] < utf8.RuneSelf {
			if raw[i] == 0x7f {
				dst = appendEscape(dst, 0x7f)
			} else {
				dst = append(dst, raw[i])
			}
			i++
			continue
		}
		r, size := utf8.DecodeRune(raw[i:])
		dst = appendRune(dst, r)
		i += size
	}
	return dst
}

// fits reports whether a string can be a member name. Truncated or repaired names could
// collide with others.
func fits(name string) bool {
	return len(name) <= maxName && name != ellipsis && utf8.ValidString(name)
}

// secretWords are parts of names that suggest a secret value.
var secretWords = [...]string{
	"secret", "password", "passwd", "passphrase", "token", "credential", "api_key", "apikey", "api-key", "authorization",
	"cookie", "private_key", "privatekey", "private-key", "assertion", "jwt", "signature",
}

// looksSecret reports whether a member of this name probably holds a secret.
func looksSecret(name string) bool {
	name = strings.ToLower(name)
	for _, word := range secretWords {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}

const mark = `"` + redact.Mark + `"`

const (
	// maxClaims is the maximum size of the claims of a principal in a record, in bytes.
	maxClaims = 16 << 10
	// maxValueDepth is the maximum nesting of claims.
	maxValueDepth = 6
)

// valueEncoder appends untrusted values as JSON. It redacts strings before truncating them,
// because a truncated secret is not recognized. [encoder.redactFrom] redacts the strings
// that stay complete.
type valueEncoder struct {
	redactor redact.Redactor // nil redacts nothing
}

func (e valueEncoder) text(dst []byte, s string) []byte { return e.string(dst, s, maxText) }

func (e valueEncoder) string(dst []byte, s string, limit int) []byte {
	if len(s) > limit && e.redactor != nil {
		s = e.redactor.Redact(s)
	}
	return appendString(dst, s, limit)
}

// object appends the members of a map sorted by name, up to offset end. Values of names
// that look like secrets are masked.
func (e valueEncoder) object(dst []byte, members map[string]any, depth, end int) []byte {
	return appendMembers(dst, members, end, func(dst []byte, value any) []byte { return e.value(dst, value, depth, end) })
}

// pairs appends a map of strings, with the values of names that look like secrets
// masked.
func (e valueEncoder) pairs(dst []byte, pairs map[string]string) []byte {
	return appendMembers(dst, pairs, math.MaxInt, e.text)
}

func appendMembers[V any](dst []byte, members map[string]V, end int, appendOne func([]byte, V) []byte) []byte {
	var few [16]string
	names := few[:0]
	for name := range members {
		if fits(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	dst = append(dst, '{')
	left := len(members) - len(names)
	for i, name := range names {
		if i == maxMembers || len(dst) > end {
			left += len(names) - i
			break
		}
		dst = append(appendString(comma(dst, '{'), name, maxName), ':')
		if looksSecret(name) {
			dst = append(dst, mark...)
		} else {
			dst = appendOne(dst, members[name])
		}
	}
	return append(appendOmitted(dst, left, '{'), '}')
}

// value appends a decoded value. A value that JSON cannot represent becomes null.
func (e valueEncoder) value(dst []byte, value any, depth, end int) []byte {
	switch value := value.(type) {
	case string:
		return e.text(dst, value)
	case bool:
		return strconv.AppendBool(dst, value)
	case json.Number:
		if n, err := value.Int64(); err == nil {
			return strconv.AppendInt(dst, n, 10)
		}
		f, err := value.Float64()
		if err != nil {
			f = math.NaN()
		}
		return e.value(dst, f, depth, end)
	case float64:
		if math.IsNaN(value) || math.IsInf(value, 0) {
			return append(dst, "null"...)
		}
		return appendFloat(dst, value)
	case int:
		return strconv.AppendInt(dst, int64(value), 10)
	case int64:
		return strconv.AppendInt(dst, value, 10)
	case map[string]any:
		if depth == 0 {
			return append(dst, `"`+ellipsis+`"`...)
		}
		return e.object(dst, value, depth-1, end)
	case []any:
		if depth == 0 {
			return append(dst, `"`+ellipsis+`"`...)
		}
		return appendItems(dst, value, end, func(dst []byte, item any) []byte { return e.value(dst, item, depth-1, end) })
	case []string:
		return e.texts(dst, value)
	}
	return append(dst, "null"...)
}

// texts appends a list of strings, each truncated to [maxName] bytes.
func (e valueEncoder) texts(dst []byte, texts []string) []byte {
	return appendItems(dst, texts, math.MaxInt, func(dst []byte, text string) []byte { return e.string(dst, text, maxName) })
}

func appendItems[V any](dst []byte, items []V, end int, appendOne func([]byte, V) []byte) []byte {
	dst = append(dst, '[')
	for i, item := range items {
		if i == maxMembers || len(dst) > end {
			dst = appendOmitted(dst, len(items)-i, '[')
			break
		}
		dst = appendOne(comma(dst, '['), item)
	}
	return append(dst, ']')
}

// appendOmitted appends the number of omitted members or items.
func appendOmitted(dst []byte, left int, open byte) []byte {
	if left == 0 {
		return dst
	}
	dst = comma(dst, open)
	if open == '{' {
		dst = append(dst, `"`+ellipsis+`":`...)
	}
	dst = strconv.AppendInt(append(dst, `"+`...), int64(left), 10)
	return append(dst, '"')
}

// comma appends a comma unless the bracket was just opened.
func comma(dst []byte, open byte) []byte {
	if dst[len(dst)-1] == open {
		return dst
	}
	return append(dst, ',')
}

// appendFloat appends a number in ECMAScript format (RFC 8785 section 3.2.2.3).
func appendFloat(dst []byte, f float64) []byte {
	if f == 0 {
		return append(dst, '0')
	}
	if size := math.Abs(f); size >= 1e-6 && size < 1e21 {
		return strconv.AppendFloat(dst, f, 'f', -1, 64)
	}
	dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
	// ECMAScript exponents have no leading zero: e-09 becomes e-9.
	if n := len(dst); n >= 4 && dst[n-4] == 'e' && dst[n-2] == '0' {
		dst[n-2] = dst[n-1]
		dst = dst[:n-1]
	}
	return dst
}
