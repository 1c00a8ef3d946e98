package yaml

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// MaxPrinted is the most bytes that a printed document may have. Indents make it
// many times what it is printed of.
const MaxPrinted = 16 << 20

// ErrLong says that a document would have more than [MaxPrinted].
var ErrLong = errors.New("the document is longer than 16 MiB")

// Print returns JSON as a YAML document in block style. step is called for
// every value. The error is that of step, or [ErrLong].
func Print(text []byte, step func() error) (string, error) {
	tokens := json.NewDecoder(bytes.NewReader(text))
	tokens.UseNumber()
	v, err := ordered(tokens, step)
	if err != nil {
		return "", err
	}
	out := Append(nil, v)
	if len(out) > MaxPrinted {
		return "", ErrLong
	}
	return string(out), nil
}

// ordered reads one value with its members in their order.
func ordered(tokens *json.Decoder, step func() error) (any, error) {
	if err := step(); err != nil {
		return nil, err
	}
	token, err := tokens.Token()
	if err != nil {
		return nil, fmt.Errorf("read JSON: %w", err)
	}
	switch token {
	case json.Delim('['):
		list := []any{}
		for tokens.More() {
			v, err := ordered(tokens, step)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err = tokens.Token()
		return list, err
	case json.Delim('{'):
		m := &Map{}
		for tokens.More() {
			name, err := tokens.Token()
			if err != nil {
				return nil, fmt.Errorf("read JSON: %w", err)
			}
			v, err := ordered(tokens, step)
			if err != nil {
				return nil, err
			}
			m.Names, m.Values = append(m.Names, fmt.Sprint(name)), append(m.Values, v)
		}
		_, err = tokens.Token()
		return m, err
	}
	return token, nil
}
