// Package content makes the content blocks of MCP out of values that are JSON
// already, without decoding them.
package content

import (
	"encoding/json"
	"fmt"
)

// None returns content without blocks.
func None() json.RawMessage { return json.RawMessage("[]") }

// Text returns content with one text block; text is a JSON string.
func Text(text []byte) json.RawMessage {
	const before, after = `[{"type":"text","text":`, `}]`
	block := make([]byte, 0, len(before)+len(text)+len(after))
	return append(append(append(block, before...), text...), after...)
}

// Value returns content with one text block that holds the JSON of a value.
func Value(value []byte) json.RawMessage {
	quoted := make([]byte, 1, len(value)+len(value)/8+2)
	quoted[0] = '"'
	for _, c := range value {
		switch {
		case c == '"' || c == '\\':
			quoted = append(quoted, '\\', c)
		case c < ' ':
			quoted = fmt.Appendf(quoted, `\u%04x`, c)
		default:
			quoted = append(quoted, c)
		}
	}
	return Text(append(quoted, '"'))
}
