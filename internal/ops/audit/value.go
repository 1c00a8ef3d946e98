package audit

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"

	"github.com/mcpd/mcpd/internal/base/redact"
)

const (
	// maxClaims is how many bytes the claims of a principal take in a record.
	maxClaims = 16 << 10
	// maxValueDepth is how many objects and lists of claims are open at once.
	maxValueDepth = 6
)

// pen appends values from outside as JSON. What it cuts it veils before, as a part of a
// value is not known; what it leaves whole is for [encoder.cover] to veil.
type pen struct {
	veil redact.Veil // nil hides nothing
}

// text appends a text, cut at [maxText].
func (p pen) text(dst []byte, s string) []byte { return p.string(dst, s, maxText) }

func (p pen) string(dst []byte, s string, most int) []byte {
	if len(s) > most && p.veil != nil {
		s = p.veil.Redact(s)
	}
	return appendString(dst, s, most)
}

// object appends the members of a map in the order of their names, the values of
// secret-looking ones masked, until so many bytes are used.
func (p pen) object(dst []byte, members map[string]any, depth, end int) []byte {
	return appendMembers(dst, members, end, func(dst []byte, value any) []byte { return p.value(dst, value, depth, end) })
}

// pairs appends the entries of a map of texts, the values of secret-looking names masked.
func (p pen) pairs(dst []byte, pairs map[string]string) []byte {
	return appendMembers(dst, pairs, math.MaxInt, p.text)
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
	return append(appendLeft(dst, left, '{'), '}')
}

// value appends a decoded value. What JSON has no form for is null.
func (p pen) value(dst []byte, value any, depth, end int) []byte {
	switch value := value.(type) {
	case string:
		return p.text(dst, value)
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
		return p.value(dst, f, depth, end)
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
		return p.object(dst, value, depth-1, end)
	case []any:
		if depth == 0 {
			return append(dst, `"`+ellipsis+`"`...)
		}
		return appendItems(dst, value, end, func(dst []byte, item any) []byte { return p.value(dst, item, depth-1, end) })
	case []string:
		return p.texts(dst, value)
	}
	return append(dst, "null"...)
}

// texts appends a list of texts, each of at most [maxName] bytes.
func (p pen) texts(dst []byte, texts []string) []byte {
	return appendItems(dst, texts, math.MaxInt, func(dst []byte, text string) []byte { return p.string(dst, text, maxName) })
}

func appendItems[V any](dst []byte, items []V, end int, appendOne func([]byte, V) []byte) []byte {
	dst = append(dst, '[')
	for i, item := range items {
		if i == maxMembers || len(dst) > end {
			dst = appendLeft(dst, len(items)-i, '[')
			break
		}
		dst = appendOne(comma(dst, '['), item)
	}
	return append(dst, ']')
}

// appendLeft says how many members or items were left out.
func appendLeft(dst []byte, left int, open byte) []byte {
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

// comma appends a comma unless the bracket was opened just now.
func comma(dst []byte, open byte) []byte {
	if dst[len(dst)-1] == open {
		return dst
	}
	return append(dst, ',')
}

// appendFloat appends a number as ECMAScript writes it (RFC 8785 section 3.2.2.3).
func appendFloat(dst []byte, f float64) []byte {
	if f == 0 {
		return append(dst, '0')
	}
	if size := math.Abs(f); size >= 1e-6 && size < 1e21 {
		return strconv.AppendFloat(dst, f, 'f', -1, 64)
	}
	dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
	// Exponents have no leading zero there: e-09 is e-9.
	if n := len(dst); n >= 4 && dst[n-4] == 'e' && dst[n-2] == '0' {
		dst[n-2] = dst[n-1]
		dst = dst[:n-1]
	}
	return dst
}
