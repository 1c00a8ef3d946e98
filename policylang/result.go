package policylang

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Result decodes what a call returned for policies that judge it: all those of one
// tool decode it alike. The text has passed the gate.
func (p *Policy) Result(text json.RawMessage) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, fmt.Errorf("read the result: %w", err)
	}
	return typeNumbers(value, p.result), nil
}

// ReadsContent reports whether the policy looks at the content blocks of a result.
func (p *Policy) ReadsContent() bool {
	return p.verdict.names["content"] || p.when != nil && p.when.names["content"]
}
