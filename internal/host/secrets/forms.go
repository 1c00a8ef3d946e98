package secrets

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/mcpd/mcpd/internal/base/redact"
)

const (
	// minFormLen is the minimum length of a replaced text, in bytes: with shorter ones, half of
	// every log would be placeholders.
	minFormLen = 4
	// minDecodedLen is the minimum length of a value to search in canonical text, which ignores
	// case, blanks and escapes.
	minDecodedLen = 6
	// maxListedLen is the maximum length of a value to search as a list of bytes and as
	// encodings within base64. Each costs a multiple of its length.
	maxListedLen = 4 << 10
)

// exactForms returns the forms of a value in original text.
func exactForms(value string) []string {
	if len(value) < minFormLen {
		return nil
	}
	lower := hex.EncodeToString([]byte(value))
	path, query := url.PathEscape(value), url.QueryEscape(value)
	list := []string{
		value,
		lower, strings.ToUpper(lower),
		path, query, lowerEscapes(path), lowerEscapes(query), percentEncode(value, uriComponentUnescaped), percentEncode(value, uriComponentUnescaped+uriReserved),
		inJSON(value, true), inJSON(value, false), inJSON(inJSON(value, false), false),
		strings.ReplaceAll(inJSON(value, false), "/", `\/`), inASCII(inJSON(value, false)), redact.Stringified(inJSON(value, false)),
	}
	list = append(list, html.EscapeString(value))
	list = append(list, inBase64(value)...)
	if query != value {
		// as OAuth client credentials are sent (RFC 6749 section 2.3.1)
		list = append(list, inBase64(query)...)
	}
	return list
}

// decodedForms returns the forms of a value in canonical text. It needs no forms for escapes,
// case, blanks and base64 alphabets.
func decodedForms(value string) []string {
	if len(value) < minDecodedLen {
		return nil
	}
	list := []string{value, strings.ReplaceAll(value, " ", "+"), strings.ToUpper(value), strings.ToLower(value), quotedPrintable(value)}
	// If all bytes are escaped, a backslash of the value is not next to the byte it quotes.
	list = append(list, strings.ReplaceAll(value, `\`, ""))
	within := []string{value, url.QueryEscape(value)}
	if len(value) <= maxListedLen {
		plain := inJSON(value, false)
		within = append(within,
			url.PathEscape(value), percentEncode(value, uriComponentUnescaped), inJSON(value, true), plain, inASCII(plain),
			html.EscapeString(value), base64.StdEncoding.EncodeToString([]byte(value)), base64.URLEncoding.EncodeToString([]byte(value)),
			hex.EncodeToString([]byte(value)))
		for _, hexList := range [][2]string{{"", ":"}, {"", "-"}, {"", ","}, {"0x", ",0x"}, {"0x", "0x"}} {
			list = append(list, hexList[0]+joinBytes(value, hexList[1], func(c byte) string { return hex.EncodeToString([]byte{c}) }))
		}
		list = append(list, joinBytes(value, ",", func(c byte) string { return strconv.Itoa(int(c)) }))
	}
	list = append(list, hex.EncodeToString([]byte(value)))
	for _, text := range within {
		for before := range 3 {
			list = append(list, base64Core(base64.StdEncoding, text, before))
		}
	}
	return list
}

func joinBytes(value, separator string, write func(byte) string) string {
	bytes := make([]string, len(value))
	for i := range len(value) {
		bytes[i] = write(value[i])
	}
	return strings.Join(bytes, separator)
}

// quotedPrintable returns a value in quoted-printable (RFC 2045 section 6.7), without line
// ends.
func quotedPrintable(value string) string {
	var b strings.Builder
	for i := range len(value) {
		if c := value[i]; c < ' ' || c >= 0x7f || c == '=' {
			fmt.Fprintf(&b, "=%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// inBase64 returns the base64 forms of a value, at any position in the encoded text.
func inBase64(value string) []string {
	var list []string
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		list = append(list, encoding.EncodeToString([]byte(value)))
		for before := range 3 {
			list = append(list, base64Core(encoding, value, before))
		}
	}
	return list
}

// inASCII returns JSON text with \u escapes for non-ASCII characters.
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

// base64Core returns the part of a base64 text that depends only on the value, with before
// bytes in front of it. A digit holds six bits.
func base64Core(e *base64.Encoding, value string, before int) string {
	padded := append(make([]byte, before), value...)
	encoded := e.WithPadding(base64.NoPadding).EncodeToString(padded)
	first, last := (8*before+5)/6, 8*len(padded)/6
	return encoded[first:last]
}

// The characters that encodeURIComponent and encodeURI of JavaScript do not escape, in addition
// to letters and digits (ECMA-262 section 19.2.6).
const (
	uriComponentUnescaped = "-_.!~*'()"
	uriReserved           = ";/?:@&=+$,#"
)

// percentEncode escapes all characters of a value except letters, digits and the given signs.
func percentEncode(value, signs string) string {
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

// lowerEscapes converts %2F in a URL to %2f.
func lowerEscapes(escaped string) string {
	b := []byte(escaped)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:i+3], bytes.ToLower(b[i+1:i+3]))
		}
	}
	return string(b)
}

// inJSON returns the value as the content of a JSON string.
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
