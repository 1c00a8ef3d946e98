package secrets

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/mcpd/mcpd/internal/redact"
)

// shortest is the length of the shortest text that is replaced, in bytes: in
// place of shorter ones, half of every log would be marks.
const shortest = 4

// Redact returns text with "[secret:name]" in place of each value that has
// been resolved or that a variable or a file holds, and of its forms in base64 (both alphabets, at every place in
// a longer text), in hexadecimal, in a URL, in HTML and in JSON. Values shorter than
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
	first := find(v, b, 0)
	if first == len(b) {
		return b
	}
	return replaced(v, b, first)
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

// forms returns the texts by which a value may be seen.
func forms(value string) []string {
	if len(value) < shortest {
		return nil
	}
	lower := hex.EncodeToString([]byte(value))
	path, query := url.PathEscape(value), url.QueryEscape(value)
	list := []string{
		value,
		lower, strings.ToUpper(lower),
		path, query, lowerEscapes(path), lowerEscapes(query), escapedBut(value, component), escapedBut(value, component+reserved),
		inJSON(value, true), inJSON(value, false), inJSON(inJSON(value, false), false),
		strings.ReplaceAll(inJSON(value, false), "/", `\/`), inASCII(inJSON(value, false)), redact.Stringified(inJSON(value, false)),
	}
	list = append(list, html.EscapeString(value))
	list = append(list, inBase64(value)...)
	if query != value {
		// As the id and the secret of a client are sent (RFC 6749 section 2.3.1).
		list = append(list, inBase64(query)...)
	}
	return list
}

// inBase64 returns what a value looks like in base64, wherever it stands in what
// is encoded.
func inBase64(value string) []string {
	var list []string
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		list = append(list, encoding.EncodeToString([]byte(value)))
		for before := range 3 {
			list = append(list, inner(encoding, value, before))
		}
	}
	return list
}

// inASCII returns JSON text with everything beyond ASCII as \u escapes.
func inASCII(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r < utf8.RuneSelf {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}

// inner returns the part of a text in base64 that a value at the given place
// alone decides, whatever stands beside it. A digit holds six bits.
func inner(e *base64.Encoding, value string, before int) string {
	padded := append(make([]byte, before), value...)
	encoded := e.WithPadding(base64.NoPadding).EncodeToString(padded)
	first, last := (8*before+5)/6, 8*len(padded)/6
	return encoded[first:last]
}

// What encodeURIComponent and encodeURI of JavaScript leave as it is beside letters
// and digits (ECMA-262 section 19.2.6).
const (
	component = "-_.!~*'()"
	reserved  = ";/?:@&=+$,#"
)

// escapedBut returns a value with percent signs in the place of all but letters,
// digits and some other signs.
func escapedBut(value, signs string) string {
	var b strings.Builder
	for i := range len(value) {
		c := value[i]
		if letter := c | 0x20; letter >= 'a' && letter <= 'z' || c >= '0' && c <= '9' || strings.IndexByte(signs, c) >= 0 {
			b.WriteByte(c)
			continue
		}
		fmt.Fprintf(&b, "%%%02X", c)
	}
	return b.String()
}

// lowerEscapes returns a URL's %2F as %2f.
func lowerEscapes(escaped string) string {
	b := []byte(escaped)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:i+3], bytes.ToLower(b[i+1:i+3]))
		}
	}
	return string(b)
}

// inJSON returns the value as it stands in a JSON string.
func inJSON(value string, escapeHTML bool) string {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(escapeHTML)
	if e.Encode(value) != nil {
		return value
	}
	text := strings.TrimSuffix(out.String(), "\n")
	return text[1 : len(text)-1] // without the quotes
}
