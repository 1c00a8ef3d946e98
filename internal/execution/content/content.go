// Package content makes the content blocks of MCP out of values that are JSON
// already, without decoding them.
package content

import (
	"encoding/json"
	"fmt"
)

// None returns content without blocks.
func None() json.RawMessage { return json.RawMessage("[]") }

const before, after = `[{"type":"text","text":`, `}]`

// Text returns content with one text block; text is a JSON string.
func Text(text []byte) json.RawMessage {
	block := make([]byte, 0, len(before)+len(text)+len(after))
	return append(append(append(block, before...), text...), after...)
}

// Value returns content with one text block that holds the JSON of a value.
func Value(value []byte) json.RawMessage {
	block := make([]byte, 0, len(before)+len(value)+len(value)/8+16+len(after))
	block = append(append(block, before...), '"')
	for _, c := range value {
		switch {
		case c == '"' || c == '\\':
			block = append(block, '\\', c)
		case c < ' ':
			block = fmt.Appendf(block, `\u%04x`, c)
		default:
			block = append(block, c)
		}
	}
	return append(append(block, '"'), after...)
}
