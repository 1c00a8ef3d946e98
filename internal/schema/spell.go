package schema

import (
	"encoding/binary"
	"math"
	"math/big"
)

// spell returns bytes that are the same for equal values and differ for
// different ones: members are sorted, and a number is spelled by its value. The
// bytes are good until the next call.
func (r *run) spell(v any) []byte {
	r.scratch = appendSpelling(r.scratch[:0], v)
	return r.scratch
}

func appendSpelling(b []byte, v any) []byte {
	switch v := v.(type) {
	case bool:
		if v {
			return append(b, 't')
		}
		return append(b, 'f')
	case int64:
		return binary.BigEndian.AppendUint64(append(b, 'i'), uint64(v))
	case float64:
		if v == math.Trunc(v) && v >= -edge && v < edge {
			return appendSpelling(b, int64(v))
		}
		if r := rational(v); r != nil && r.IsInt() {
			return appendSpelling(b, r.Num())
		}
		return binary.BigEndian.AppendUint64(append(b, 'd'), math.Float64bits(v))
	case *big.Int:
		return appendSpelledText(append(b, 'b'), v.String())
	case string:
		return appendSpelledText(append(b, '"'), v)
	case []any:
		b = append(b, '[')
		for _, item := range v {
			b = appendSpelling(b, item)
		}
		return append(b, ']')
	case map[string]any:
		b = append(b, '{')
		for _, name := range sortedNames(v) {
			b = appendSpelling(appendSpelledText(b, name), v[name])
		}
		return append(b, '}')
	}
	return append(b, 'n')
}

// appendSpelledText appends a string after its length, so that no two rows of
// strings read alike.
func appendSpelledText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}
