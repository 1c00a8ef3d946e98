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
	// shortest is the length of the shortest text that is replaced, in bytes: in
	// place of shorter ones, half of every log would be marks.
	minFormLen = 4
	// shortestDecoded is the length of the shortest value that is looked for in the
	// canonical form of a text, where case, blanks and escapes do not count.
	minDecodedLen = 6
	// longestListed is the length of the longest value of which the lists of bytes and
	// the encodings within base64 are looked for. Each takes a multiple of its length to compute.
	maxListedLen = 4 << 10
)

// exactForms returns the texts by which a value may be seen, byte by byte.
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
		// As the id and the secret of a client are sent (RFC 6749 section 2.3.1).
		list = append(list, inBase64(query)...)
	}
	return list
}

// decodedForms returns the texts by which a value may be seen once a text is canonical.
// Escapes, case, blanks and the alphabet of base64 need no form of their own there.
func decodedForms(value string) []string {
	if len(value) < minDecodedLen {
		return nil
	}
	list := []string{value, strings.ReplaceAll(value, " ", "+"), strings.ToUpper(value), strings.ToLower(value), quotedPrintable(value)}
	// Where all bytes are escaped, a backslash of the value is not beside what it quotes.
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

// quotedPrintable returns a value as quoted-printable (RFC 2045 section 6.7), without the
// ends of lines.
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

// inBase64 returns what a value looks like in base64, wherever it stands in what
// is encoded.
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
func base64Core(e *base64.Encoding, value string, before int) string {
	padded := append(make([]byte, before), value...)
	encoded := e.WithPadding(base64.NoPadding).EncodeToString(padded)
	first, last := (8*before+5)/6, 8*len(padded)/6
	return encoded[first:last]
}

// What encodeURIComponent and encodeURI of JavaScript leave as it is beside letters
// and digits (ECMA-262 section 19.2.6).
const (
	uriComponentUnescaped = "-_.!~*'()"
	uriReserved           = ";/?:@&=+$,#"
)

// escapedBut returns a value with percent signs in the place of all but letters,
// digits and some other signs.
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
