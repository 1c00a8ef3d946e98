package redact

import (
	"bytes"
	"encoding/json"

	"github.com/mcpd/mcpd/internal/base/jsontext"
)

// HideJSON is [Text.Hide] for a JSON value: texts, names and numbers are looked
// at one by one, so that what comes out is JSON again. It is nil for what is
// not JSON. The others find nothing where there is no sensitive value.
func (t Text) HideJSON(raw json.RawMessage, others ...Net) json.RawMessage {
	if !t.Hides() || len(raw) == 0 {
		return raw
	}
	if t.isTooMuch(len(raw)) {
		return json.RawMessage(quotedMark)
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil {
		return nil
	}
	hidden, _ := jsontext.Marshal(t.hidden(value, others)) // decoded JSON always encodes
	return hidden
}

func (t Text) hidden(value any, others []Net) any {
	switch value := value.(type) {
	case map[string]any:
		shown := make(map[string]any, len(value))
		for name, member := range value {
			shown[t.Hide(name, others...)] = t.hidden(member, others)
		}
		return shown
	case []any:
		for i := range value {
			value[i] = t.hidden(value[i], others)
		}
		return value
	case string:
		return t.Hide(value, others...)
	case json.Number:
		if shown := t.Hide(value.String(), others...); shown != value.String() {
			return shown
		}
		return value
	default:
		return value
	}
}
