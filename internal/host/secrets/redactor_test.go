package secrets

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/internal/base/redact"
	"github.com/mcpd/mcpd/internal/base/truncate"
)

const password = `p@ss/w "rd"+<é>`

// holding returns a Store with resolved values under the names a, b, ...
func holding(t *testing.T, values ...string) *Store {
	t.Helper()
	s := New(Options{LookupEnv: func(name string) (string, bool) { return values[name[0]-'a'], true }})
	for n := range values {
		name := string(rune('a' + n))
		s.Set([]Definition{{Name: name, Env: name}})
		if _, err := s.Resolve(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func TestRedact_truncated(t *testing.T) {
	before := strings.Repeat("x", truncate.Least)
	s := holding(t, "hunter2") // 14 bytes in hexadecimal, the longest form
	for text, want := range map[string]string{
		"hunter2, and hunter":                             "[secret:a], and hunter",
		"hunter2, and no other, but hunter … [cut]":       "[secret:a], and no othe … [cut]",
		"it is, as we know, hunter2 … [cut]":              "it is, as we  … [cut]",
		"hunter2 is, as we know, hunter2hun … [cut]":      "[secret:a] is, as we kno … [cut]",
		"it is, as hunter2hunter … [cut]":                 "it is, as  … [cut]",
		"it is, as hunter2 hunter … [cut]\n  at hunter2":  "it is, as [secret:a] … [cut]\n  at [secret:a]",
		"it is, as hunter2 another … [cut] hunt … [cut]!": "it is, as [secret:a] … [cut] … [cut]!",
	} {
		if got := s.Redact(before + text); got != before+want {
			t.Errorf("%q is %q, want %q", text, got[min(len(got), len(before)):], want)
		}
	}
	for _, text := range []string{"hunt … [cut]", "and a text that says … [cut] itself", before + "hunt"} {
		if got := s.Redact(text); got != text {
			t.Errorf("%.20q of %d bytes is %.20q of %d", text, len(text), got, len(got))
		}
	}
}

// Values may overlap each other and themselves.
func TestRedactBytes(t *testing.T) {
	s := holding(t, "aabaab", "abaa", "baabb", "bbbb")
	r := rand.New(rand.NewPCG(1, 2))
	hidden := 0
	for range 5000 {
		text := make([]byte, r.IntN(40))
		for i := range text {
			text[i] = "aab"[r.IntN(3)]
		}
		want, before := s.Redact(string(text)), string(text)
		if got := string(s.RedactBytes(text)); got != want || string(text) != before {
			t.Fatalf("%s is %s, and as text %s", before, got, want)
		}
		if want != before {
			hidden++
		}
	}
	if hidden < 1000 {
		t.Errorf("only %d texts hold a value", hidden)
	}
}

// Both may be secrets, or one is chosen by a caller.
func TestRedact_overlapping(t *testing.T) {
	s := holding(t, "sk_live_AB12CD", "AB12CDEF")
	if got := s.Redact("a sk_live_AB12CDEF, AB12CDEF"); got != "a [secret:a], [secret:b]" {
		t.Errorf("got %s", got)
	}
	chosen := redact.NewText(json.RawMessage(`["the key is sk_live_","sk_live_"]`), []string{"/*"})
	if got := chosen.Hide("the key is sk_live_AB12CD; sk_live_?", s.Matcher()); got != "[sensitive]; [sensitive]?" {
		t.Errorf("got %s", got)
	}
	if got := chosen.HideJSON(json.RawMessage(`{"it is sk_live_AB12CD":["a sk_live_ sk_live_AB12CD"]}`), s.Matcher()); string(got) != `{"it is [secret:a]":["a [sensitive] [secret:a]"]}` {
		t.Errorf("got %s", got)
	}
}

func TestRedact_forms(t *testing.T) {
	s := holding(t, password)
	jsoned, err := json.Marshal(password)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{
		"as it is":                     password,
		"in hexadecimal":               hex.EncodeToString([]byte(password)),
		"in upper-case hexadecimal":    fmt.Sprintf("%X", password),
		"in a query":                   url.QueryEscape(password),
		"in a path":                    url.PathEscape(password),
		"in a path, lower-case":        `p@ss%2fw%20%22rd%22+%3c%c3%a9%3e`,
		"in JSON":                      strings.Trim(string(jsoned), `"`),
		"in base64":                    base64.StdEncoding.EncodeToString([]byte(password)),
		"in base64 without padding":    base64.RawStdEncoding.EncodeToString([]byte(password)),
		"in base64 for URLs":           base64.URLEncoding.EncodeToString([]byte(password)),
		"in base64 after one byte":     base64.StdEncoding.EncodeToString([]byte(":" + password)),
		"in base64 after two bytes":    base64.StdEncoding.EncodeToString([]byte("u:" + password)),
		"in base64 between other text": base64.StdEncoding.EncodeToString([]byte("user:" + password + "@host")),
	}
	for name, form := range rows {
		t.Run(name, func(t *testing.T) {
			got := s.Redact("before " + form + " after")
			if !strings.Contains(got, "[secret:a]") || !strings.HasPrefix(got, "before ") || !strings.HasSuffix(got, " after") {
				t.Errorf("got %q", got)
			}
			if b := s.RedactBytes([]byte("before " + form + " after")); string(b) != got {
				t.Errorf("the bytes become %q, the text %q", b, got)
			}
		})
	}
}

func TestRedact_base64(t *testing.T) {
	s := holding(t, "canary-0123456789")
	for before := range 16 {
		for after := range 16 {
			plain := strings.Repeat("<", before) + "canary-0123456789" + strings.Repeat("~", after)
			for _, e := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding} {
				if got := s.Redact(e.EncodeToString([]byte(plain))); !strings.Contains(got, "[secret:a]") {
					t.Errorf("%d before, %d after: %q", before, after, got)
				}
			}
		}
	}
}

func TestRedact_longestFirst(t *testing.T) {
	s := holding(t, "hunter22", "hunter22-and-more")
	if got := s.Redact("hunter22-and-more hunter22"); got != "[secret:b] [secret:a]" {
		t.Errorf("got %q", got)
	}
}

func TestRedact_oldValues(t *testing.T) {
	value := ""
	s := New(Options{LookupEnv: func(string) (string, bool) { return value, true }})
	for i := range 3 * maxOldValues {
		value = fmt.Sprintf("value-%04d", i)
		s.Set([]Definition{{Name: "s", Env: "V"}})
		if _, err := s.Resolve(t.Context(), "s"); err != nil {
			t.Fatal(err)
		}
	}
	s.Set(nil)
	for i := range maxOldValues {
		if got := s.Redact(fmt.Sprintf("value-%04d", 3*maxOldValues-1-i)); got != "[secret:s]" {
			t.Errorf("%d values ago: %q", i, got)
		}
	}
	if n := len(s.values["s"]); n != maxOldValues {
		t.Errorf("%d values stored, want %d", n, maxOldValues)
	}
}

func TestRedact_shortValues(t *testing.T) {
	s := holding(t, "abc", "abcd")
	if got := s.Redact("abc"); got != "abc" {
		t.Errorf("got %q", got)
	}
	if got := s.Redact("abcd"); got != "[secret:b]" {
		t.Errorf("got %q", got)
	}
}

func TestRedact_allocations(t *testing.T) {
	s := holding(t, password, "another-one")
	line := strings.Repeat("nothing to see here ", 20)
	b := []byte(line)
	if n := testing.AllocsPerRun(100, func() { s.Redact(line); s.RedactBytes(b) }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
	if got := s.RedactBytes(b); &got[0] != &b[0] {
		t.Error("the bytes were copied")
	}
}

func FuzzRedact(f *testing.F) {
	f.Add("hunter22", "before ", " after")
	f.Add(password, "%", "=")
	f.Add("aaaa", "aa", "a")
	f.Fuzz(func(t *testing.T, value, before, after string) {
		v := newRedactor(map[string][]secretForms{"n": {newSecretForms(value)}})
		got := v.redact(before + value + after)
		if len(value) >= minFormLen && strings.Contains(strings.ReplaceAll(got, "[secret:n]", byteNotIn(value)), value) {
			t.Errorf("the value %q is left in %q", value, got)
		}
		plain := before + after
		form := containsAny(plain, exactForms(value)) || containsAny(canonicalOf(plain), canonicalForms(value))
		if v.redact(plain) == plain != !form {
			t.Errorf("%q becomes %q", plain, v.redact(plain))
		}
	})
}

// canonicalForms returns the canonical forms of a value.
func canonicalForms(value string) (forms []string) {
	for _, form := range decodedForms(value) {
		if form = canonicalOf(form); len(form) >= minFormLen {
			forms = append(forms, form)
		}
	}
	return forms
}

// byteNotIn returns a byte that is not in s, as a placeholder that cannot form a value with
// adjacent text.
func byteNotIn(s string) string {
	for b := range 256 {
		if one := string([]byte{byte(b)}); !strings.Contains(s, one) {
			return one
		}
	}
	return ""
}

func containsAny(s string, forms []string) bool {
	for _, f := range forms {
		if len(f) >= minFormLen && strings.Contains(s, f) {
			return true
		}
	}
	return false
}

func BenchmarkRedactLogLine(b *testing.B) {
	values := map[string][]secretForms{}
	for i := range 20 {
		values[fmt.Sprint(i)] = []secretForms{newSecretForms(fmt.Sprintf("secret-value-number-%d", i))}
	}
	v := newRedactor(values)
	line := strings.Repeat("an ordinary line of a log ", 8)
	b.ReportAllocs()
	for b.Loop() {
		v.redact(line)
	}
}

func TestRedact_urlAndHTML(t *testing.T) {
	const value = `it's <a/b> & "c"+d~!`
	v := newRedactor(map[string][]secretForms{"n": {newSecretForms(value)}})
	for _, shown := range []string{
		"it's%20%3Ca%2Fb%3E%20%26%20%22c%22%2Bd~!",                     // encodeURIComponent
		"it's%20%3Ca/b%3E%20&%20%22c%22+d~!",                           // encodeURI
		"it%27s+%3Ca%2Fb%3E+%26+%22c%22%2Bd~%21",                       // a form
		"it%27s+%3ca%2fb%3e+%26+%22c%22%2bd~%21",                       // a form, in lower case
		"it&#39;s &lt;a/b&gt; &amp; &#34;c&#34;+d~!",                   // HTML
		"dXNlcjppdCUyN3MrJTNDYSUyRmIlM0UrJTI2KyUyMmMlMjIlMkJkfiUyMQ==", // a client and its secret in a header
	} {
		if got := v.redact(shown); !strings.Contains(got, "[secret:n]") {
			t.Errorf("%s becomes %s", shown, got)
		}
	}
}

func TestRedact_json(t *testing.T) {
	for value, shown := range map[string][]string{
		"aws/Secret/Key":  {`{"a":"aws\/Secret\/Key"}`},
		`pa"ss\word-42`:   {`{"a":"pa\"ss\\word-42"}`, `"{\"a\":\"pa\\\"ss\\\\word-42\"}"`},
		"geheimß-ü":       {`{"a":"geheim\u00df-\u00fc"}`, "geheimß-ü"},
		"two\u2028\"l\"s": {"{\"a\":\"two\u2028\\\"l\\\"s\"}", `"two\u2028\"l\"s"`},
	} {
		v := newRedactor(map[string][]secretForms{"n": {newSecretForms(value)}})
		for _, text := range shown {
			if got := v.redact(text); !strings.Contains(got, "[secret:n]") {
				t.Errorf("%s becomes %s", text, got)
			}
		}
	}
}
