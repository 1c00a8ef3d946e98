package host_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/internal/language/grant"
)

// escapes formats each byte that is not a letter or digit.
func escapes(format string) func(string) string {
	return func(value string) string {
		var b strings.Builder
		for i := range len(value) {
			if c := value[i]; c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' {
				b.WriteByte(c)
			} else {
				fmt.Fprintf(&b, format, c)
			}
		}
		return b.String()
	}
}

func base64From(before string) func(string) string {
	return func(value string) string { return base64.StdEncoding.EncodeToString([]byte(before + value)) }
}

// echoes are ways in which a host echoes a value.
var echoes = map[string]func(string) string{
	"plain":        func(v string) string { return v },
	"upper":        strings.ToUpper,
	"JSON":         escapes(`\u%04X`),
	"HTML":         escapes("&#x%X;"),
	"decimal HTML": escapes("&#%d;"),
	"named HTML":   func(v string) string { return strings.ReplaceAll(html.EscapeString(v), "&#39;", "&apos;") },
	"percent":      escapes("%%%02x"),
	"query":        url.QueryEscape,
	"two escapes":  func(v string) string { return escapes(`\u%04x`)(url.QueryEscape(v)) },
	"base64":       base64From(""),
	"base64 + 1":   base64From(":"),
	"base64 + 2":   base64From("u:"),
	"hex":          func(v string) string { return hex.EncodeToString([]byte(v)) },
	"quotes":       func(v string) string { return strings.ReplaceAll(v, "'", "''") },
	"MIME": func(v string) string {
		encoded := base64From("the key is ")(v)
		return encoded[:8] + "\r\n" + encoded[8:20] + "\r\n" + encoded[20:]
	},
}

// The host echoes the secret of a request in the body, in parts, and in names and values of
// headers.
func TestHTTP_echoedSecret(t *testing.T) {
	// All characters are token characters (RFC 9110), so that it can be a header name.
	const secret = "a'B|c+d%e&f#9.Z!_~*-x$^`y"
	for name, encode := range echoes {
		t.Run(name, func(t *testing.T) {
			shown := encode(secret)
			header := strings.NewReplacer("\r\n", " ").Replace(shown)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("X-Key") != secret {
					t.Errorf("the host got %q", r.Header.Get("X-Key"))
				}
				w.Header().Set("X-Echo", "it is "+header)
				w.Header().Add("X-Echo", header)
				if isToken(shown) {
					w.Header().Set("X-"+shown, "1")
					w.Header()["x-"+shown+"-again"] = []string{"2"}
				}
				for _, piece := range []string{"it is ", shown[:1], shown[1 : len(shown)/2], shown[len(shown)/2:], ", is it?"} {
					if _, err := w.Write([]byte(piece)); err != nil {
						t.Error(err)
					}
					w.(http.Flusher).Flush()
				}
			}))
			t.Cleanup(server.Close)
			l := newLabOf(t, secret)
			l.HTTP = map[string]grant.HTTP{"echo": {
				Name: "echo", Hosts: []string{strings.TrimPrefix(server.URL, "http://")}, PrivateNetworks: true,
				Headers: []grant.Header{{Name: "X-Key", Value: grant.Value{Parts: []grant.Part{{Secret: "token"}}}}},
			}}
			var answer struct {
				Headers map[string]string
				Body    string
			}
			raw := l.do(t, "http.request", fmt.Sprintf(`{"grant":"echo","method":"GET","url":%q}`, server.URL))
			if err := json.Unmarshal([]byte(raw), &answer); err != nil {
				t.Fatalf("%s: %v", raw, err)
			}
			if got := answer.Headers["x-echo"]; strings.Count(got, "[secret:token]") != 2 {
				t.Errorf("the value of a header is %q", got)
			}
			if !strings.Contains(answer.Body, "[secret:token]") || !strings.HasPrefix(answer.Body, "it is ") {
				t.Errorf("the body is %q", answer.Body)
			}
			names := 0
			for name := range answer.Headers {
				if strings.Contains(name, "[secret:token]") {
					names++
				} else if strings.HasPrefix(name, "x-") && name != "x-echo" {
					t.Errorf("a header is called %q", name)
				}
			}
			if names == 0 && isToken(shown) {
				t.Errorf("no name of a header is hidden: %s", raw)
			}
		})
	}
}

// Redaction makes two header names equal.
func TestHTTP_headersWithOneName(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(password, "a")
		w.Header()[strings.ToUpper(password)] = []string{"b"}
		w.Header().Set(hex.EncodeToString([]byte(password)), "c")
	}))
	t.Cleanup(server.Close)
	l := newLab(t)
	l.HTTP = map[string]grant.HTTP{"echo": {Name: "echo", Hosts: []string{strings.TrimPrefix(server.URL, "http://")}, PrivateNetworks: true}}
	raw := l.do(t, "http.request", fmt.Sprintf(`{"grant":"echo","method":"GET","url":%q}`, server.URL))
	var answer struct{ Headers map[string]string }
	if err := json.Unmarshal([]byte(raw), &answer); err != nil {
		t.Fatal(err)
	}
	if got := strings.Split(answer.Headers["[secret:token]"], ", "); len(got) != 3 {
		t.Errorf("the headers are %s", raw)
	}
}

// isToken reports whether a text can be a header name.
func isToken(text string) bool { return !strings.ContainsAny(text, "\r\n \"(),/:;<=>?@[\\]{}") }
