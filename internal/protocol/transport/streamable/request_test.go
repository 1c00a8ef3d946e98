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
		{"a ping", "POST", ping, []string{jsonType}, 200},
		{"a charset", "POST", ping, []string{"Content-Type: application/json; charset=utf-8"}, 200},
		{"a client that takes JSON alone", "POST", ping, []string{jsonType, "Accept: application/json"}, 200},
		{"a client that takes anything", "POST", ping, []string{jsonType, "Accept: text/html, */*;q=0.1"}, 200},
		{"a notification", "POST", `{"jsonrpc":"2.0","method":"notifications/x"}`, []string{jsonType}, 202},
		{"a response without a session", "POST", `{"jsonrpc":"2.0","id":7,"result":{}}`, []string{jsonType}, 400},
		{"an error without a session", "POST", `{"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"no"}}`, []string{jsonType}, 400},
		{"a response of a modern client", "POST", `{"jsonrpc":"2.0","id":7,"result":{}}`, []string{jsonType, "MCP-Protocol-Version: 2026-07-28", "Mcp-Session-Id: x"}, 400},
		{"no content type", "POST", ping, nil, 415},
		{"another content type", "POST", ping, []string{"Content-Type: text/plain"}, 415},
		{"a form", "POST", ping, []string{"Content-Type: application/x-www-form-urlencoded"}, 415},
		{"an encoded body", "POST", ping, []string{jsonType, "Content-Encoding: gzip"}, 415},
		{"a client that takes HTML alone", "POST", ping, []string{jsonType, "Accept: text/html"}, 406},
		{"a client that refuses both", "POST", ping, []string{jsonType, "Accept: application/json;q=0, text/event-stream;q=0.0"}, 406},
		{"an empty body", "POST", "", []string{jsonType}, 400},
		{"a body that is too long", "POST", strings.Repeat(" ", 1001), []string{jsonType}, 413},
		{"another method", "PUT", ping, []string{jsonType}, 405},
		{"a stream for nobody", "GET", "", []string{"Accept: text/event-stream"}, 400},
		{"a stream for an unknown session", "GET", "", []string{"Accept: text/event-stream", "Mcp-Session-Id: x"}, 404},
		{"a stream that is none", "GET", "", []string{"Accept: application/json", "Mcp-Session-Id: x"}, 406},
		{"a stream for a modern client", "GET", "", []string{"Accept: text/event-stream", "MCP-Protocol-Version: 2026-07-28"}, 405},
		{"two sessions", "POST", ping, []string{jsonType, "Mcp-Session-Id: a", "Mcp-Session-Id: b"}, 400},
		{"two versions", "POST", ping, []string{jsonType, "MCP-Protocol-Version: 2025-06-18", "MCP-Protocol-Version: 2026-07-28"}, 400},
		{"a notification of an unknown revision", "POST", `{"jsonrpc":"2.0","method":"notifications/x"}`, []string{jsonType, "MCP-Protocol-Version: 1999-01-01"}, 400},
		{"a response of an unknown revision", "POST", `{"jsonrpc":"2.0","id":7,"result":{}}`, []string{jsonType, "MCP-Protocol-Version: newest"}, 400},
		{"a notification of a modern client that names a session", "POST", `{"jsonrpc":"2.0","method":"notifications/x"}`, []string{jsonType, "MCP-Protocol-Version: 2026-07-28", "Mcp-Session-Id: x"}, 202},
		{"a stream of an unknown revision", "GET", "", []string{"Accept: text/event-stream", "Mcp-Session-Id: x", "MCP-Protocol-Version: 1999-01-01"}, 400},
		{"an end of an unknown revision", "DELETE", "", []string{"Mcp-Session-Id: x", "MCP-Protocol-Version: newest"}, 400},
		{"a batch of a modern client", "POST", "[" + ping + "]", []string{jsonType, "MCP-Protocol-Version: 2026-07-28"}, 400},
		{"a batch without a session", "POST", "[" + ping + "]", []string{jsonType}, 400},
		{"no request at all, and then another message", "POST", ping + ping, []string{jsonType}, 400},
		{"bytes that are no text", "POST", "\"\xff\"", []string{jsonType}, 400},
		{"a look at the head", "OPTIONS", "", nil, 405},
		{"an end for nobody", "DELETE", "", nil, 400},
		{"an end for an unknown session", "DELETE", "", []string{"Mcp-Session-Id: x"}, 404},
		{"an end for a modern client", "DELETE", "", []string{"MCP-Protocol-Version: 2026-07-28"}, 405},
	} {
		t.Run(test.name, func(t *testing.T) {
			response := s.do(t.Context(), test.method, test.body, test.header...)
			text := read(t, response)
			if response.StatusCode != test.want {
				t.Errorf("the status is %s, want %d: %s", response.Status, test.want, text)
			}
			if test.want >= 400 && !strings.HasPrefix(text, `{"jsonrpc":"2.0","error":{"code":-32`) {
				t.Errorf("the body is %s", text)
			}
			if test.want == 405 && response.Header.Get("Allow") == "" {
				t.Error("the methods that there are are not told")
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
		t.Errorf("the status is %s", response.Status)
	}
}

func TestPost_bodyTimeout(t *testing.T) {
	s := newSite(t, streamable.Options{})
	door, err := httpguard.New(httpguard.Options{BodyTimeout: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	s.web.Config.Handler = door.Wrap(s.web.Config.Handler)
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
		t.Errorf("the status is %s", response.Status)
	}
}

func TestRequests_unknownRevision(t *testing.T) {
	s := newSite(t, streamable.Options{})
	session := s.begin("2025-03-26")
	const events = "Accept: text/event-stream, application/json"
	for _, version := range []string{"1999-01-01", "2026-01-01", "nonsense"} {
		for _, test := range []struct{ name, method, body string }{
			{"a request", "POST", ping},
			{"a notification", "POST", ready},
			{"a response", "POST", `{"jsonrpc":"2.0","id":7,"result":{}}`},
			{"a batch", "POST", "[" + ping + "]"},
			{"a stream", "GET", ""},
			{"an end", "DELETE", ""},
		} {
			r := s.do(t.Context(), test.method, test.body, jsonType, session, events, "MCP-Protocol-Version: "+version)
			if r.StatusCode != 400 {
				t.Errorf("%s of %s: the status is %s", test.name, version, r.Status)
				continue
			}
			if text := read(t, r); !strings.Contains(text, `"code":-32022`) || !strings.Contains(text, `"supported":["2026-07-28",`) {
				t.Errorf("%s of %s: the body is %s", test.name, version, text)
			}
		}
	}
	if r := s.do(t.Context(), "POST", ping, jsonType, session, events, "MCP-Protocol-Version: 2025-06-18"); r.StatusCode != 200 {
		t.Errorf("a revision that is served: the status is %s", r.Status)
	}
}

func TestPost_notifications(t *testing.T) {
	s := newSite(t, streamable.Options{})
	session := s.begin("2025-03-26")
	for _, test := range []struct {
		name, body string
		header     []string
	}{
		{"a notification", ready, []string{session}},
		{"a response", `{"jsonrpc":"2.0","id":7,"result":{}}`, []string{session}},
		{"a batch of notifications", "[" + ready + "," + ready + "]", []string{session}},
		{"a notification of a modern client", ready, []string{"MCP-Protocol-Version: 2026-07-28"}},
	} {
		r := s.do(t.Context(), "POST", test.body, append(test.header, jsonType)...)
		if text := read(t, r); r.StatusCode != 202 || text != "" {
			t.Errorf("%s: %s, %q", test.name, r.Status, text)
		}
	}
}
