package streamable_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/mcpd/mcpd/internal/protocol/transport/httpguard"
	"github.com/mcpd/mcpd/internal/protocol/transport/streamable"
)

func TestRequests(t *testing.T) {
	s := newSite(t, streamable.Options{})
	for _, test := range []struct {
		name, method, body string
		header             []string
		want               int
	}{
		{"ping", "POST", ping, []string{jsonType}, 200},
		{"charset", "POST", ping, []string{"Content-Type: application/json; charset=utf-8"}, 200},
		{"accepts JSON only", "POST", ping, []string{jsonType, "Accept: application/json"}, 200},
		{"accepts anything", "POST", ping, []string{jsonType, "Accept: text/html, */*;q=0.1"}, 200},
		{"a notification", "POST", `{"jsonrpc":"2.0","method":"notifications/x"}`, []string{jsonType}, 202},
		{"a response without a session", "POST", `{"jsonrpc":"2.0","id":7,"result":{}}`, []string{jsonType}, 400},
		{"an error without a session", "POST", `{"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"no"}}`, []string{jsonType}, 400},
		{"a response of a modern client", "POST", `{"jsonrpc":"2.0","id":7,"result":{}}`, []string{jsonType, "MCP-Protocol-Version: 2026-07-28", "Mcp-Session-Id: x"}, 400},
		{"no content type", "POST", ping, nil, 415},
		{"other content type", "POST", ping, []string{"Content-Type: text/plain"}, 415},
		{"form", "POST", ping, []string{"Content-Type: application/x-www-form-urlencoded"}, 415},
		{"encoded body", "POST", ping, []string{jsonType, "Content-Encoding: gzip"}, 415},
		{"accepts HTML only", "POST", ping, []string{jsonType, "Accept: text/html"}, 406},
		{"accepts neither", "POST", ping, []string{jsonType, "Accept: application/json;q=0, text/event-stream;q=0.0"}, 406},
		{"empty body", "POST", "", []string{jsonType}, 400},
		{"body too long", "POST", strings.Repeat(" ", 1001), []string{jsonType}, 413},
		{"other method", "PUT", ping, []string{jsonType}, 405},
		{"stream without session", "GET", "", []string{"Accept: text/event-stream"}, 400},
		{"stream for unknown session", "GET", "", []string{"Accept: text/event-stream", "Mcp-Session-Id: x"}, 404},
		{"stream without event-stream", "GET", "", []string{"Accept: application/json", "Mcp-Session-Id: x"}, 406},
		{"stream for modern client", "GET", "", []string{"Accept: text/event-stream", "MCP-Protocol-Version: 2026-07-28"}, 405},
		{"two sessions", "POST", ping, []string{jsonType, "Mcp-Session-Id: a", "Mcp-Session-Id: b"}, 400},
		{"two versions", "POST", ping, []string{jsonType, "MCP-Protocol-Version: 2025-06-18", "MCP-Protocol-Version: 2026-07-28"}, 400},
		{"a notification of an unknown revision", "POST", `{"jsonrpc":"2.0","method":"notifications/x"}`, []string{jsonType, "MCP-Protocol-Version: 1999-01-01"}, 400},
		{"a response of an unknown revision", "POST", `{"jsonrpc":"2.0","id":7,"result":{}}`, []string{jsonType, "MCP-Protocol-Version: newest"}, 400},
		{"a notification of a modern client that names a session", "POST", `{"jsonrpc":"2.0","method":"notifications/x"}`, []string{jsonType, "MCP-Protocol-Version: 2026-07-28", "Mcp-Session-Id: x"}, 202},
		{"stream with unknown revision", "GET", "", []string{"Accept: text/event-stream", "Mcp-Session-Id: x", "MCP-Protocol-Version: 1999-01-01"}, 400},
		{"delete with unknown revision", "DELETE", "", []string{"Mcp-Session-Id: x", "MCP-Protocol-Version: newest"}, 400},
		{"batch of modern client", "POST", "[" + ping + "]", []string{jsonType, "MCP-Protocol-Version: 2026-07-28"}, 400},
		{"batch without session", "POST", "[" + ping + "]", []string{jsonType}, 400},
		{"two messages", "POST", ping + ping, []string{jsonType}, 400},
		{"invalid UTF-8", "POST", "\"\xff\"", []string{jsonType}, 400},
		{"OPTIONS", "OPTIONS", "", nil, 405},
		{"delete without session", "DELETE", "", nil, 400},
		{"delete of unknown session", "DELETE", "", []string{"Mcp-Session-Id: x"}, 404},
		{"delete of modern client", "DELETE", "", []string{"MCP-Protocol-Version: 2026-07-28"}, 405},
	} {
		t.Run(test.name, func(t *testing.T) {
			response := s.do(t.Context(), test.method, test.body, test.header...)
			text := read(t, response)
			if response.StatusCode != test.want {
				t.Errorf("status %s, want %d: %s", response.Status, test.want, text)
			}
			if test.want >= 400 && !strings.HasPrefix(text, `{"jsonrpc":"2.0","error":{"code":-32`) {
				t.Errorf("body: %s", text)
			}
			if test.want == 405 && response.Header.Get("Allow") == "" {
				t.Error("the Allow header is missing")
			}
		})
	}
}

func TestPost_overBudget(t *testing.T) {
	s := newSite(t, streamable.Options{})
	r := httptest.NewRequest("POST", "/mcp", iotest.ErrReader(httpguard.ErrOverBudget))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	s.web.Config.Handler.ServeHTTP(w, r)
	if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") != "1" {
		t.Errorf("status %d, header %v", w.Code, w.Header())
	}
}

func TestPost_chunkedBody(t *testing.T) {
	s := newSite(t, streamable.Options{})
	r, err := http.NewRequestWithContext(t.Context(), "POST", s.web.URL, io.MultiReader(strings.NewReader(strings.Repeat(" ", 2000))))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := s.web.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("status %s", response.Status)
	}
}

func TestPost_bodyTimeout(t *testing.T) {
	s := newSite(t, streamable.Options{})
	guard, err := httpguard.New(httpguard.Options{BodyTimeout: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	s.web.Config.Handler = guard.Wrap(s.web.Config.Handler)
	conn, err := net.Dial("tcp", s.web.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{", s.web.Listener.Addr())
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusRequestTimeout {
		t.Errorf("status %s", response.Status)
	}
}

func TestRequests_unknownRevision(t *testing.T) {
	s := newSite(t, streamable.Options{})
	session := s.begin("2025-03-26")
	const events = "Accept: text/event-stream, application/json"
	for _, version := range []string{"1999-01-01", "2026-01-01", "nonsense"} {
		for _, test := range []struct{ name, method, body string }{
			{"request", "POST", ping},
			{"notification", "POST", ready},
			{"a response", "POST", `{"jsonrpc":"2.0","id":7,"result":{}}`},
			{"batch", "POST", "[" + ping + "]"},
			{"stream", "GET", ""},
			{"delete", "DELETE", ""},
		} {
			r := s.do(t.Context(), test.method, test.body, jsonType, session, events, "MCP-Protocol-Version: "+version)
			if r.StatusCode != 400 {
				t.Errorf("%s of %s: status %s", test.name, version, r.Status)
				continue
			}
			if text := read(t, r); !strings.Contains(text, `"code":-32022`) || !strings.Contains(text, `"supported":["2026-07-28",`) {
				t.Errorf("%s of %s: body %s", test.name, version, text)
			}
		}
	}
	if r := s.do(t.Context(), "POST", ping, jsonType, session, events, "MCP-Protocol-Version: 2025-06-18"); r.StatusCode != 200 {
		t.Errorf("supported revision: status %s", r.Status)
	}
}

func TestPost_notifications(t *testing.T) {
	s := newSite(t, streamable.Options{})
	session := s.begin("2025-03-26")
	for _, test := range []struct {
		name, body string
		header     []string
	}{
		{"notification", ready, []string{session}},
		{"a response", `{"jsonrpc":"2.0","id":7,"result":{}}`, []string{session}},
		{"batch of notifications", "[" + ready + "," + ready + "]", []string{session}},
		{"notification of modern client", ready, []string{"MCP-Protocol-Version: 2026-07-28"}},
	} {
		r := s.do(t.Context(), "POST", test.body, append(test.header, jsonType)...)
		if text := read(t, r); r.StatusCode != 202 || text != "" {
			t.Errorf("%s: %s, %q", test.name, r.Status, text)
		}
	}
}
