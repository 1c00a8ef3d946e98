package secrets

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"math/rand/v2"
	"mime/quotedprintable"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"
)

// encoder encodes a value as a program that echoes it.
type encoder struct {
	name   string
	encode func(string) string
}

// each returns an encoder of single bytes.
func each(write func(byte) string) func(string) string {
	return func(value string) string {
		var b strings.Builder
		for i := range len(value) {
			b.WriteString(write(value[i]))
		}
		return b.String()
	}
}

// units returns an encoder of UTF-16 code units that keeps letters and digits.
func units(format string) func(string) string {
	return func(value string) string {
		var b strings.Builder
		for _, r := range value {
			if r < 0x80 && isAlphanumeric(byte(r)) {
				b.WriteRune(r)
				continue
			}
			for _, unit := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&b, format, unit)
			}
		}
		return b.String()
	}
}

// points returns an encoder of code points that keeps letters and digits.
func points(format string) func(string) string {
	return func(value string) string {
		var b strings.Builder
		for _, r := range value {
			if r < 0x80 && isAlphanumeric(byte(r)) {
				b.WriteRune(r)
			} else {
				fmt.Fprintf(&b, format, r)
			}
		}
		return b.String()
	}
}

func wrapped(text string, width int, end string) string {
	var b strings.Builder
	for len(text) > width {
		b.WriteString(text[:width] + end)
		text = text[width:]
	}
	return b.String() + text
}

func base64Of(e *base64.Encoding, before, after string) func(string) string {
	return func(value string) string { return e.EncodeToString([]byte(before + value + after)) }
}

func jsonOf(escapeHTML bool) func(string) string {
	return func(value string) string { return inJSON(value, escapeHTML) }
}

func printable(value string) string {
	var b bytes.Buffer
	w := quotedprintable.NewWriter(&b)
	if _, err := w.Write([]byte(value)); err != nil || w.Close() != nil {
		panic("a buffer cannot be written")
	}
	return b.String()
}

func both(outer, inner func(string) string) func(string) string {
	return func(value string) string { return outer(inner(value)) }
}

func escapePunctuation(value string) string {
	return each(func(c byte) string {
		if isAlphanumeric(c) || c >= 0x80 {
			return string([]byte{c})
		}
		return `\` + string([]byte{c})
	})(value)
}

// encoders are the documented encodings. The first 18 revealed secrets when only the usual
// forms were searched.
var encoders = []encoder{
	{`JSON with \u002B`, units(`\u%04X`)},
	{`JSON with \u003d`, units(`\u%04x`)},
	{"HTML with &#x3D;", points("&#x%X;")},
	{"HTML with &#x2f;", points("&#x%x;")},
	{"HTML with &#47;", points("&#%d;")},
	{"HTML with &apos;", func(v string) string { return strings.ReplaceAll(html.EscapeString(v), "&#39;", "&apos;") }},
	{"HTML with names", func(v string) string {
		return strings.NewReplacer("&", "&amp;", "+", "&plus;", "/", "&sol;", "=", "&equals;", `"`, "&quot;", "'", "&apos;", "<", "&lt;", ">", "&gt;", "%", "&percnt;").Replace(v)
	}},
	{"percent, keeping /", func(v string) string { return percentEncode(v, "-_.~/") }},
	{"MIME base64", func(v string) string {
		return wrapped(base64.StdEncoding.EncodeToString([]byte("the key is "+v)), 76, "\r\n")
	}},
	{"PEM base64", func(v string) string {
		return wrapped(base64.StdEncoding.EncodeToString([]byte(v)), 64, "\n")
	}},
	{"base64 in short lines", func(v string) string { return wrapped(base64.StdEncoding.EncodeToString([]byte(v)), 4, "\n  ") }},
	{"base64 after a byte", base64Of(base64.StdEncoding, "x", "")},
	{"base64 after two bytes", base64Of(base64.StdEncoding, "xy", "")},
	{"URL base64 after two bytes", base64Of(base64.URLEncoding, "xy", "z")},
	{"doubled double quotes", func(v string) string { return strings.ReplaceAll(v, `"`, `""`) }},
	{"doubled single quotes", func(v string) string { return strings.ReplaceAll(v, `'`, `''`) }},
	{"upper case", strings.ToUpper},
	{"lower case", strings.ToLower},

	{"as it is", func(v string) string { return v }},
	{"JSON", jsonOf(false)},
	{"JSON for HTML", jsonOf(true)},
	{`JSON with \/`, func(v string) string { return strings.ReplaceAll(inJSON(v, false), "/", `\/`) }},
	{"JSON in ASCII", func(v string) string { return inASCII(inJSON(v, false)) }},
	{"a query", url.QueryEscape},
	{"a path", url.PathEscape},
	{"encodeURIComponent", func(v string) string { return percentEncode(v, uriComponentUnescaped) }},
	{"encodeURI", func(v string) string { return percentEncode(v, uriComponentUnescaped+uriReserved) }},
	{"percent in lower case", func(v string) string { return lowerEscapes(url.QueryEscape(v)) }},
	{"HTML", html.EscapeString},
	{"base64", base64Of(base64.StdEncoding, "", "")},
	{"base64 without padding", base64Of(base64.RawStdEncoding, "", "")},
	{"URL base64", base64Of(base64.URLEncoding, "", "")},
	{"basic credentials", base64Of(base64.StdEncoding, "user:", "")},
	{"hexadecimal", func(v string) string { return hex.EncodeToString([]byte(v)) }},
	{"upper-case hexadecimal", func(v string) string { return fmt.Sprintf("%X", v) }},
	{"JSON in JSON", both(jsonOf(false), jsonOf(false))},

	// In addition to the first 36.
	{"percent for every byte", each(func(c byte) string { return fmt.Sprintf("%%%02x", c) })},
	{`\x for every byte`, each(func(c byte) string { return fmt.Sprintf(`\x%02X`, c) })},
	{"octal for every byte", each(func(c byte) string { return fmt.Sprintf(`\%03o`, c) })},
	{`\u{}`, points(`\u{%x}`)},
	{`\U`, points(`\U%08x`)},
	{`\u for every unit`, func(v string) string {
		var b strings.Builder
		for _, unit := range utf16.Encode([]rune(v)) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
		return b.String()
	}},
	{"a literal of Go", func(v string) string { q := strconv.Quote(v); return q[1 : len(q)-1] }},
	{"a literal of Go in ASCII", func(v string) string { q := strconv.QuoteToASCII(v); return q[1 : len(q)-1] }},
	{"backslashes before punctuation", escapePunctuation},
	{"a word of a shell", func(v string) string { return strings.ReplaceAll(v, "'", `'\''`) }},
	{"quoted-printable", printable},
	{"hexadecimal with colons", func(v string) string { return joinBytes(v, ":", func(c byte) string { return fmt.Sprintf("%02X", c) }) }},
	{"hexadecimal with blanks", func(v string) string { return joinBytes(v, " ", func(c byte) string { return fmt.Sprintf("%02x", c) }) }},
	{"hexadecimal with dashes", func(v string) string { return joinBytes(v, "-", func(c byte) string { return fmt.Sprintf("%02x", c) }) }},
	{"a list of bytes", func(v string) string {
		return joinBytes(v, ", ", func(c byte) string { return fmt.Sprintf("0x%02x", c) })
	}},
	{"a list of numbers", func(v string) string { return joinBytes(v, ",", func(c byte) string { return strconv.Itoa(int(c)) }) }},
	{"percent twice", both(url.QueryEscape, url.QueryEscape)},
	{"percent three times", both(url.PathEscape, both(url.PathEscape, url.PathEscape))},
	{"HTML twice", both(html.EscapeString, html.EscapeString)},
	{"JSON in HTML", both(html.EscapeString, jsonOf(false))},
	{"JSON in a query", both(url.QueryEscape, jsonOf(true))},
	{"HTML in JSON", both(units(`\u%04x`), html.EscapeString)},
	{"a query in HTML in JSON", both(jsonOf(true), both(points("&#x%x;"), url.QueryEscape))},
	{"base64 in a query", both(url.QueryEscape, base64Of(base64.StdEncoding, "xy", ""))},
	{"base64 in JSON", both(units(`\u%04x`), base64Of(base64.StdEncoding, "", ""))},
	{"wrapped base64 in JSON", both(jsonOf(false), func(v string) string {
		return wrapped(base64.StdEncoding.EncodeToString([]byte("x"+v)), 16, "\r\n")
	})},
	{"base64 in base64", both(base64Of(base64.StdEncoding, "", ""), base64Of(base64.StdEncoding, "", ""))},
	{"JSON in base64", both(base64Of(base64.StdEncoding, `{"key":"`, `"}`), jsonOf(false))},
	{"a query in base64", both(base64Of(base64.URLEncoding, "a=", "&b"), url.QueryEscape)},
	{"HTML in base64", both(base64Of(base64.StdEncoding, "<", ">"), html.EscapeString)},
	{"hexadecimal in base64", both(base64Of(base64.StdEncoding, "", ""), func(v string) string { return hex.EncodeToString([]byte(v)) })},
}

const specials = ` !"#$%&'()*+,-./:;<=>?@[\]^_{|}~` + "`"

// randomSecrets returns values with many special characters.
func randomSecrets(r *rand.Rand, n int) []string {
	alphabets := []string{
		specials,
		"abcXYZ0189" + specials,
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
		`%\&;"'u x4125`,
		"0123456789abcdef",
	}
	var all []string
	for i := range n {
		alphabet := alphabets[i%len(alphabets)]
		b := make([]byte, 10+r.IntN(40))
		for i := range b {
			b[i] = alphabet[r.IntN(len(alphabet))]
		}
		value := strings.TrimSpace(string(b))
		if i%7 == 0 {
			value += "äß→😀é"
		}
		all = append(all, value)
	}
	return append(all, `p@ss/w "rd"+<é>`, "hunter2", `aB+/=<>&"'%\`, "sk_live_4eC39HqLyjWDarjtT1zdp7dc", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U")
}

// Hosts echo values by every encoder, between other texts.
func TestRedact_encoders(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: one goroutine works here alone")
	}
	rounds := 100
	if os.Getenv("MCPD_LONG") != "" {
		rounds = 5000
	}
	values := randomSecrets(rand.New(rand.NewPCG(4, 33)), rounds)
	for _, e := range encoders {
		t.Run(e.name, func(t *testing.T) {
			for _, value := range values {
				s := holding(t, value)
				shown := e.encode(value)
				for _, text := range []string{shown, "before " + shown + " after", `{"a":"` + shown + `"}`, "<b>" + shown + "</b>", "k=" + shown + "&l=1"} {
					got := s.Redact(text)
					if !strings.Contains(got, "[secret:a]") {
						t.Fatalf("%q\nas %q\nis shown in %q", value, shown, got)
					}
					if b := string(s.RedactBytes([]byte(text))); b != got {
						t.Fatalf("the bytes become %q, the text %q", b, got)
					}
				}
			}
		})
	}
}

// TestRedact_neighbours checks that only the value is replaced.
func TestRedact_neighbours(t *testing.T) {
	const value = `aB+/=<>&"'%\xyz`
	s := holding(t, value)
	for _, e := range encoders {
		if strings.Contains(e.name, "base64") || e.name == "basic credentials" {
			continue // a digit holds bits of two bytes
		}
		if got := s.Redact("before " + e.encode(value) + " after"); got != "before [secret:a] after" {
			t.Errorf("%s: got %q", e.name, got)
		}
	}
}

// The text before a value ends with an escape that the first digits of the value complete.
func TestRedact_besideHalfAnEscape(t *testing.T) {
	s := holding(t, "deadbeefcafe1234")
	for _, before := range []string{"%", "%D", "%25", `\x`, `\xD`, `\u`, `\uD83`, `C:\\\\x`, "&#x", "&#xD;%", "=3D%"} {
		for _, value := range []string{"deadbeefcafe1234", "DEADBEEFCAFE1234", "DeadBeef CAFE1234"} {
			if got := s.Redact(before + value + ";"); !strings.Contains(got, "[secret:a]") {
				t.Errorf("%s%s is shown: %q", before, value, got)
			}
		}
	}
}

// TestRedact_ordinaryText checks that texts without values stay unchanged.
func TestRedact_ordinaryText(t *testing.T) {
	s := holding(t, "hunter2", "correct horse", "abcd", "Tr0ub4dor&3")
	for _, text := range []string{
		"the hunter has two dogs, 100% of them", `{"path":"C:\\new\\folder","n":12,"t":"a\tb"}`,
		"&amp; &lt;b&gt; &unknown; &#0; &#x110000; &;", "%zz %4 %", `\u12 \xzz \u{} \u{1234567} \`, "correct, horse", "ABCD a b c d",
		"=\r\n==\r\n", `""''` + "``",
	} {
		if got := s.Redact(text); got != text {
			t.Errorf("%q becomes %q", text, got)
		}
	}
}

func TestRedactJSON_encodersStayJSON(t *testing.T) {
	for _, value := range randomSecrets(rand.New(rand.NewPCG(5, 33)), 50) {
		s := holding(t, value)
		for _, e := range encoders {
			raw, err := json.Marshal(map[string]any{"a": []any{1, e.encode(value)}, e.encode(value): true})
			if err != nil {
				t.Fatal(err)
			}
			if got := s.RedactJSON(raw); !json.Valid(got) || strings.Count(string(got), "[secret:a]") < 2 {
				t.Fatalf("%s: %s becomes %s", e.name, raw, got)
			}
		}
	}
}

// adversarial are worst-case texts for a search that rescans, with adversarialValues.
var adversarial = map[string]string{
	"a value without its end": strings.Repeat("a", 200), "heads": "sk_l", "prefixes": "sk_live_0123456789", "percent signs": "%25", "open percent": "%2",
	"nested percent": "%2%", "hex of percent": "%3", "backslashes": `\`, "unicode": `\u005c`, "open unicode": `\u{`, "entities": "&amp;", "semicolons": ";",
	"open entities": "&a", "empty entities": "&;", "quotes": `"`, "blanks": " ", "soft breaks": "=\r\n", "digits": "3", "surrogates": `\ud83d`, "one value": "hunter2",
}

func adversarialValues(t testing.TB) *Store {
	values := map[string]string{"a": strings.Repeat("a", 60<<10) + "b", "h": "hunter2"}
	for i := range 50 {
		values[fmt.Sprint("s", i)] = fmt.Sprintf("sk_live_0123456789%0*d", i+1, i)
	}
	s := New(Options{LookupEnv: func(name string) (string, bool) { return values[name], true }})
	var defs []Definition
	for name := range values {
		defs = append(defs, Definition{Name: name, Env: name})
	}
	s.Set(defs)
	s.currentRedactor()
	return s
}

// TestRedact_chainsOfEscapes checks that deeply nested escapes neither fail nor leave a value.
func TestRedact_chainsOfEscapes(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: one goroutine works here alone")
	}
	s := holding(t, "hunter2/+")
	shown := "hunter2%2F%2b"
	for range 1000 {
		shown = strings.ReplaceAll(shown, "%2", "%252")
		if len(shown) > 1<<16 {
			break
		}
	}
	if got := s.Redact("a " + shown + " b"); got != "a [secret:a] b" {
		t.Errorf("got %.100s", got)
	}
	for size := 10; size <= 1_000_000; size *= 10 {
		for name, piece := range adversarial {
			text := strings.Repeat(piece, size/len(piece)+1)[:size]
			if got := canonicalOf(text); len(got) > len(text) {
				t.Errorf("%s: the canonical form of %d bytes has %d", name, len(text), len(got))
			}
		}
	}
}

// BenchmarkRedactAdversarial varies the length of texts: the time for each byte stays constant.
func BenchmarkRedactAdversarial(b *testing.B) {
	s := adversarialValues(b)
	for name, piece := range adversarial {
		for size := 10; size <= 1_000_000; size *= 10 {
			text := []byte(strings.Repeat(piece, size/len(piece)+1)[:size])
			b.Run(fmt.Sprintf("%s/%d", name, size), func(b *testing.B) {
				b.SetBytes(int64(size))
				for b.Loop() {
					s.RedactBytes(text)
				}
			})
		}
	}
}

// BenchmarkRedactPlain scans host responses without values.
func BenchmarkRedactPlain(b *testing.B) {
	values := map[string][]secretForms{}
	for i := range 20 {
		values[fmt.Sprint(i)] = []secretForms{newSecretForms(fmt.Sprintf("secret-value-number-%d", i))}
	}
	s := New(Options{})
	s.redactor.Store(newRedactor(values))
	for name, piece := range map[string]string{
		"prose": "An ordinary sentence of an answer, as hosts send them. ",
		"json":  `{"id":12345,"name":"An item","tags":["a","b"],"ok":true,"path":"/items/12345"},`,
		"html":  `<p class="a">An item &amp; another&#39;s</p><a href="/items?id=1&amp;page=2">more</a>`,
		"words": "lorem",
	} {
		text := []byte(strings.Repeat(piece, 64<<10/len(piece)))
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				s.RedactBytes(text)
			}
		})
	}
}
