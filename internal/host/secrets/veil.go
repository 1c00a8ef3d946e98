package secrets

import (
	"bytes"
	"encoding/json"

	"github.com/mcpd/mcpd/internal/base/redact"
)

// Redact returns text with "[secret:name]" in place of each value that has
// been resolved or that a variable or a file holds. A value of six bytes and more is found
// through any nesting of the escapes of JSON, scripts, URLs and HTML, in any case, in
// base64 at every place in a longer text, in hexadecimal and in quoted-printable, also
// where lines end in between: docs/language.md says what is covered. Of values of four and
// five bytes the usual forms are found. Values shorter than
// four bytes are not replaced. A text without any is returned as it is, but for the end of
// one that was cut, which may be a part of a value.
func (s *Store) Redact(text string) string { return s.covered().over(text) }

// Net finds the values that [Store.Redact] replaces, for those who look for others in the
// same text.
func (s *Store) Net() redact.Net { return s.covered() }

// RedactBytes is [Store.Redact] for bytes that nobody has cut. It returns b itself when
// there is nothing to replace, and never changes it.
func (s *Store) RedactBytes(b []byte) []byte {
	v := s.covered()
	return v.replaced(b, find(v, b))
}

// RedactJSON is [Store.RedactBytes] for a JSON value, of which JSON comes out: a
// number that a value is part of becomes text. Nil is nothing, and so is what is
// no JSON and holds a value.
func (s *Store) RedactJSON(raw json.RawMessage) json.RawMessage {
	v := s.covered()
	shown := s.RedactBytes(raw)
	if len(raw) == 0 || len(shown) == len(raw) && &shown[0] == &raw[0] || json.Valid(shown) {
		return shown
	}
	return v.overJSON(raw)
}

// overJSON hides values in a JSON value, number by number and text by text.
func (v *veil) overJSON(raw json.RawMessage) json.RawMessage {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil {
		return nil
	}
	// What was decoded always encodes.
	shown, _ := json.Marshal(v.overValue(value))
	return shown
}

func (v *veil) overValue(value any) any {
	switch value := value.(type) {
	case map[string]any:
		shown := make(map[string]any, len(value))
		for name, member := range value {
			shown[v.over(name)] = v.overValue(member)
		}
		return shown
	case []any:
		for i := range value {
			value[i] = v.overValue(value[i])
		}
		return value
	case string:
		return v.over(value)
	case json.Number:
		if shown := v.over(value.String()); shown != value.String() {
			return shown
		}
	}
	return value
}
