package audit

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
)

const (
	// maxClaims is how many bytes the claims of a principal take in a record.
	maxClaims = 16 << 10
	// maxValueDepth is how many objects and lists of claims are open at once.
	maxValueDepth = 6
)

// appendObject appends the members of a map in the order of their names, the
// values of secret-looking ones masked, until so many bytes are used.
func appendObject(dst []byte, members map[string]any, depth, end int) []byte {
	return appendMembers(dst, members, end, func(dst []byte, value any) []byte { return appendValue(dst, value, depth, end) })
}

// appendPairs appends the entries of a map of texts, the values of
// secret-looking names masked.
func appendPairs(dst []byte, pairs map[string]string) []byte {
	return appendMembers(dst, pairs, math.MaxInt, appendText)
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
		dst = append(appendText(comma(dst, '{'), name), ':')
		if looksSecret(name) {
			dst = append(dst, mark...)
		} else {
			dst = appendOne(dst, members[name])
		}
	}
	return append(appendLeft(dst, left, '{'), '}')
}

// appendValue appends a decoded value. What JSON has no form for is null.
func appendValue(dst []byte, value any, depth, end int) []byte {
	switch value := value.(type) {
	case string:
		return appendText(dst, value)
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
		return appendValue(dst, f, depth, end)
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
		return appendObject(dst, value, depth-1, end)
	case []any:
		if depth == 0 {
			return append(dst, `"`+ellipsis+`"`...)
		}
		return appendItems(dst, value, end, func(dst []byte, item any) []byte { return appendValue(dst, item, depth-1, end) })
	case []string:
		return appendTexts(dst, value)
	}
	return append(dst, "null"...)
}

// appendTexts appends a list of texts, each of at most [maxName] bytes.
func appendTexts(dst []byte, texts []string) []byte {
	return appendItems(dst, texts, math.MaxInt, func(dst []byte, text string) []byte { return appendString(dst, text, maxName) })
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
