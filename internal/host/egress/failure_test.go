package egress

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/scripting"
)

func TestExplain_hidesDetails(t *testing.T) {
	raw := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			c, b, err := w.(http.Hijacker).Hijack()
			if err != nil {
				return
			}
			_, _ = b.WriteString(text)
			_ = b.Flush()
			_ = c.Close()
		}
	}
	const noAnswer = "UNAVAILABLE: HOST gave no valid answer"
	rows := []struct {
		name    string
		handler http.HandlerFunc
		want    string
	}{
		{"nothing", raw(""), noAnswer},
		{"garbage that repeats the secret", raw(canary + "\r\n\r\n"), noAnswer},
		{"a malformed status that repeats the secret", raw("HTTP/1.1 " + canary + "\r\n\r\n"), noAnswer},
		{"a malformed header that repeats the secret", raw("HTTP/1.1 200 OK\r\n" + canary + "\r\n\r\n"), noAnswer},
		{"a malformed length", raw("HTTP/1.1 200 OK\r\nContent-Length: " + canary + "\r\n\r\n"), noAnswer},
		{"a body that ends early", raw("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nx"), noAnswer},
		{"a malformed chunk", raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + canary), noAnswer},
		{"another protocol", raw("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"), noAnswer},
		{"endless headers", raw("HTTP/1.1 200 OK\r\nA: " + strings.Repeat("x", maxHeaderResponse) + "\r\n\r\n"), noAnswer},
		{"too long a body, announced", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 1001)) }, "TOO_LARGE: the response is longer than 1000 bytes"},
		{"too long a body, in chunks", func(w http.ResponseWriter, _ *http.Request) {
			for range 100 {
				_, _ = w.Write(make([]byte, 100))
				w.(http.Flusher).Flush()
			}
		}, "TOO_LARGE: the response is longer than 1000 bytes"},
		{"a body just as long as may be", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 1000)) }, ""},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			s := newSite(t, false, r.handler)
			s.grant.MaxResponse = 1000
			s.grant.Headers = []grant.Header{{Name: "X-Key", Value: grant.Value{Parts: []grant.Part{{Secret: "token"}}}}}
			if _, got := s.do(fields{"url": "/"}); got != r.want {
				t.Errorf("got %q, want %q", got, r.want)
			}
		})
	}
}

func TestDo_noResponse(t *testing.T) {
	s := newSite(t, false, echo)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	s.pool.resolver = (&names{}).resolver(t)
	s.grant.Hosts = append(s.grant.Hosts, closed, "nowhere.example:443")
	rows := map[string]string{
		"http://" + closed + "/":     "UNAVAILABLE: " + closed + " refused the connection",
		"https://nowhere.example/":   "UNAVAILABLE: the host name of nowhere.example:443 does not resolve",
		"https://" + s.host() + "/x": "UNAVAILABLE: no trusted TLS connection to HOST could be made",
	}
	for url, want := range rows {
		if _, got := s.do(fields{"url": url}); got != want {
			t.Errorf("%s: %q, want %q", url, got, want)
		}
	}
	if !strings.Contains(s.log.String(), "connection refused") {
		t.Errorf("the log lacks the cause:\n%s", &s.log)
	}
}

func TestDo_untrustedCertificate(t *testing.T) {
	s := newSite(t, true, func(http.ResponseWriter, *http.Request) { t.Error("it was sent") })
	s.pool.options.TLS = nil
	if _, got := s.do(fields{"url": "/"}); got != "UNAVAILABLE: no trusted TLS connection to HOST could be made" {
		t.Errorf("got %q", got)
	}
}

func TestDo_deadlines(t *testing.T) {
	rows := map[string]func(s *site) (context.Context, fields){
		"of the call": func(s *site) (context.Context, fields) {
			ctx, cancel := context.WithTimeout(s.Context(), 20*time.Millisecond)
			s.Cleanup(cancel)
			return ctx, fields{"url": "/"}
		},
		"of the request": func(s *site) (context.Context, fields) {
			return s.Context(), fields{"url": "/", "timeout_ms": 20}
		},
		"of the grant": func(s *site) (context.Context, fields) {
			s.grant.Timeout = 20 * time.Millisecond
			return s.Context(), fields{"url": "/", "timeout_ms": 60_000}
		},
	}
	handlers := map[string]http.HandlerFunc{
		"before the headers": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"within the body": func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write([]byte("x"))
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		},
	}
	for where, handler := range handlers {
		for whose, prepare := range rows {
			t.Run(whose+" "+where, func(t *testing.T) {
				s := newSite(t, false, handler)
				if _, got := s.doContext(prepare(s)); got != "TIMEOUT: HOST did not answer in time" {
					t.Errorf("got %q", got)
				}
			})
		}
	}
	t.Run("a cancelled call", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := newSite(t, false, func(_ http.ResponseWriter, r *http.Request) { cancel(); <-r.Context().Done() })
		if _, got := s.doContext(ctx, fields{"url": "/"}); got != "UNAVAILABLE: the call was cancelled before HOST answered" {
			t.Errorf("got %q", got)
		}
	})
}

func TestDo_unreadableSecret(t *testing.T) {
	s := newSite(t, false, func(http.ResponseWriter, *http.Request) { t.Error("it was sent") })
	s.grant.Headers = []grant.Header{{Name: "X-Key", Value: grant.Value{Parts: []grant.Part{{Secret: "token"}}}}}
	s.pool.options.Resolve = func(context.Context, string) (string, error) { return "", errors.New("vault is sealed") }
	if _, got := s.do(fields{"url": "/"}); got != "UNAVAILABLE: a secret that the grant needs could not be read" {
		t.Errorf("got %q", got)
	}
	if !strings.Contains(s.log.String(), "vault is sealed") {
		t.Errorf("the log does not say why:\n%s", &s.log)
	}
	s.grant.Name = "other"
	s.pool.options.Resolve = func(context.Context, string) (string, error) { return canary + "\r\nX: y", nil }
	if _, got := s.do(fields{"url": "/"}); got != "UNAVAILABLE: a header that the grant sets cannot be sent" {
		t.Errorf("got %q", got)
	}
	p := New(Options{})
	defer p.Close()
	if _, err := p.Do(t.Context(), s.grant, payload(t, s.URL+"/")); code(err) != scripting.Unavailable {
		t.Errorf("without any secrets: %v", err)
	}
}
