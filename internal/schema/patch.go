package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strconv"
)

// A patch is a text to write into a JSON text: a member before the closing brace of an
// object, or a number in the place of another.
type patch struct {
	at int
	// length is how many bytes are replaced.
	length int
	// joined says that the object has a member before this one.
	joined bool
	text   []byte
}

// splice returns text with the patches, which are in the order of their
// places, written into it: text itself when there are none.
func splice(text []byte, patches []patch) []byte {
	if len(patches) == 0 {
		return text
	}
	size := len(text)
	for _, p := range patches {
		size += len(p.text) + 1
	}
	out := make([]byte, 0, size)
	from := 0
	for _, p := range patches {
		out = append(out, text[from:p.at]...)
		if p.joined {
			out = append(out, ',')
		}
		out = append(out, p.text...)
		from = p.at + p.length
	}
	return append(out, text[from:]...)
}

// appendMember appends "name":value.
func appendMember(b []byte, name string, value any) ([]byte, error) {
	b, err := appendJSON(b, name)
	if err != nil {
		return b, err
	}
	return appendJSON(append(b, ':'), value)
}

// appendJSON appends the JSON text of a value.
func appendJSON(b []byte, value any) ([]byte, error) {
	switch v := value.(type) {
	case nil:
		return append(b, "null"...), nil
	case bool:
		return strconv.AppendBool(b, v), nil
	case int64:
		return strconv.AppendInt(b, v, 10), nil
	case *big.Int:
		return v.Append(b, 10), nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return b, fmt.Errorf("write a number as JSON: it is not finite")
		}
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return b, fmt.Errorf("write a value as JSON: %w", err)
	}
	return append(b, bytes.TrimSuffix(text.Bytes(), []byte("\n"))...), nil
}
