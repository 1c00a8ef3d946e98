package policylang

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/mcpd/mcpd/internal/jsongate"
)

// The most that a call may return for policies to judge it.
const (
	resultBytes  = 24 << 20
	resultDepth  = 72
	resultTokens = 250_000
)

// judged bounds the text of what policies judge: nothing interrupts a decoder.
func judged() jsongate.Limits {
	return jsongate.Limits{Bytes: resultBytes, Depth: resultDepth, Tokens: resultTokens, Halves: true}
}

// Result decodes what a call returned for policies that judge it: all those of one
// tool decode it alike. It refuses more than 24 MiB, or 250,000 of the characters
// []{}:, outside of strings.
func (p *Policy) Result(text json.RawMessage) (any, error) {
	if err := jsongate.Check(text, judged()); err != nil {
		return nil, fmt.Errorf("read the result: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, fmt.Errorf("read the result: %w", err)
	}
	return typeNumbers(value, p.result), nil
}

// Content decodes the content blocks of a result for policies that judge them. It
// refuses what [Policy.Result] refuses.
func (p *Policy) Content(text json.RawMessage) ([]any, error) {
	if err := jsongate.Check(text, judged()); err != nil {
		return nil, fmt.Errorf("read the content: %w", err)
	}
	var blocks []any
	if err := json.Unmarshal(text, &blocks); err != nil {
		return nil, fmt.Errorf("read the content: %w", err)
	}
	return blocks, nil
}

// ReadsContent reports whether the policy looks at the content blocks of a result.
func (p *Policy) ReadsContent() bool {
	return p.verdict.names["content"] || p.when != nil && p.when.names["content"]
}
