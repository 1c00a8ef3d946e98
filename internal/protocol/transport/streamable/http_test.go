package streamable_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/auth/authn"
	"github.com/mcpd/mcpd/internal/base/jsonguard"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/mcp/mcptest"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpstream"
	"github.com/mcpd/mcpd/internal/protocol/transport/streamable"
)

// site is a running endpoint.
type site struct {
	t       *testing.T
	web     *httptest.Server
	server  *mcp.Server
	backend *mcptest.Backend
}

func newSite(t *testing.T, o streamable.Options, tools ...mcptest.Tool) *site {
	t.Helper()
	if tools == nil {
		tools = mcptest.Tools()
	}
	b := mcptest.New(tools...)
	s := mcp.New(b, mcp.Options{Debounce: time.Millisecond, Limits: jsonguard.Limits{Bytes: 1000}})
	web := httptest.NewServer(streamable.New(s, o))
	t.Cleanup(func() {
		web.CloseClientConnections()
		if err := s.Drain(context.Background()); err != nil {
			t.Error(err)
		}
		web.Close()
	})
	return &site{t: t, web: web, server: s, backend: b}
}

// do sends a request; header lines are "Name: value".
func (s *site) do(ctx context.Context, method, body string, header ...string) *http.Response {
	s.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, s.web.URL, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Add(name, value)
	}
	response, err := s.web.Client().Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { response.Body.Close() })
	return response
}

// send posts a body and reads nothing of the response, not even its header.
func (s *site) send(body string, header ...string) {
	s.t.Helper()
	c, err := net.Dial("tcp", s.web.Listener.Addr().String())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	head := append([]string{"POST / HTTP/1.1", "Host: " + s.web.Listener.Addr().String(), fmt.Sprint("Content-Length: ", len(body))}, header...)
	if _, err := io.WriteString(c, strings.Join(head, "\r\n")+"\r\n\r\n"+body); err != nil {
		s.t.Fatal(err)
	}
}

func read(t *testing.T, r *http.Response) string {
	t.Helper()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

const (
	ping       = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"old","version":"2"}}}`
	ready      = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	jsonType   = "Content-Type: application/json"
)

// callText returns a modern tool call with the progress token 1, and its
// headers.
func callText(tool string) (text string, header []string) {
	text = fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"_meta":{"progressToken":1,`+
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`, tool)
	return text, []string{jsonType, "MCP-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call", "Mcp-Name: " + tool}
}

func TestSession_principal(t *testing.T) {
	s := newSite(t, streamable.Options{Middleware: authn.Middleware{Authenticator: func(r *http.Request) (identity.Principal, error) {
		p := identity.Anonymous()
		if p.ID = r.Header.Get("X-User"); p.ID == "" {
			return p, errors.New("who is it?")
		}
		return p, nil
	}}})
	if r := s.do(t.Context(), "POST", initialize, jsonType); r.StatusCode != http.StatusUnauthorized {
		t.Errorf("client without a credential: %s", r.Status)
	}
	id := "Mcp-Session-Id: " + s.do(t.Context(), "POST", initialize, jsonType, "X-User: alice").Header.Get("Mcp-Session-Id")
	for _, test := range []struct {
		method, user string
		want         int
	}{
		{"POST", "bob", 404}, {"GET", "bob", 404}, {"DELETE", "bob", 404},
		{"POST", "alice", 200}, {"DELETE", "alice", 204}, {"POST", "alice", 404}, {"DELETE", "alice", 404},
	} {
		r := s.do(t.Context(), test.method, ping, jsonType, id, "X-User: "+test.user)
		if r.StatusCode != test.want {
			t.Errorf("%s by %s: status %s, want %d", test.method, test.user, r.Status, test.want)
		}
	}
}

func TestPost_jsonOnly(t *testing.T) {
	s := newSite(t, streamable.Options{})
	text, header := callText("steps")
	response := s.do(t.Context(), "POST", text, append(header, "Accept: application/json")...)
	if got := response.Header.Get("Content-Type"); got != "application/json" {
		t.Errorf("content type: %s", got)
	}
	if body := read(t, response); !strings.Contains(body, "Done.") {
		t.Errorf("body: %s", body)
	}
}

func TestPost_streamHeaders(t *testing.T) {
	s := newSite(t, streamable.Options{})
	text, header := callText("steps")
	response := s.do(t.Context(), "POST", text, header...)
	for name, want := range map[string]string{
		"Content-Type": "text/event-stream", "X-Accel-Buffering": "no", "Cache-Control": "no-cache, no-transform",
	} {
		if got := response.Header.Get(name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	events := strings.Split(strings.TrimSuffix(read(t, response), "\n\n"), "\n\n")
	if len(events) != 4 {
		t.Fatalf("events: %q", events)
	}
	for _, event := range events {
		if !strings.HasPrefix(event, "event: message\ndata: {") || strings.Count(event, "\n") != 1 {
			t.Errorf("event: %q", event)
		}
	}
}

// waitingTool returns a tool that reports when it runs and why it ended.
func waitingTool() (tool mcptest.Tool, running chan struct{}, ended chan error) {
	running, ended = make(chan struct{}), make(chan error, 1)
	tool = mcptest.Tools()[0]
	tool.Run = func(ctx context.Context, r call.Request) call.Result {
		if r.Emit != nil {
			r.Emit.Progress(1, nil, "")
		}
		close(running)
		<-ctx.Done()
		ended <- ctx.Err()
		return mcptest.Text("")
	}
	return tool, running, ended
}

func TestPost_clientDisconnects(t *testing.T) {
	tool, running, ended := waitingTool()
	s := newSite(t, streamable.Options{}, tool)
	text, header := callText("hello")
	ctx, cancel := context.WithCancel(t.Context())
	s.do(ctx, "POST", text, header...)
	<-running
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the call ended with %v", err)
	}
}

func TestPost_cancelled(t *testing.T) {
	const cancelled = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`
	for _, test := range []struct {
		name   string
		cancel func(s *site, session string) *http.Response
	}{
		{"notification", func(s *site, session string) *http.Response {
			return s.do(t.Context(), "POST", cancelled, jsonType, session)
		}},
		{"session ends", func(s *site, session string) *http.Response {
			return s.do(t.Context(), "DELETE", "", session)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			tool, running, ended := waitingTool()
			s := newSite(t, streamable.Options{}, tool)
			session := s.begin("2025-11-25")
			answered := make(chan int, 1)
			go func() {
				text := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"hello"}}`
				answered <- s.do(t.Context(), "POST", text, jsonType, session).StatusCode
			}()
			<-running
			if r := test.cancel(s, session); r.StatusCode >= 300 {
				t.Errorf("response to the cancellation: %s", r.Status)
			}
			<-ended
			if status := <-answered; status != http.StatusAccepted {
				t.Errorf("response to the call: status %d", status)
			}
		})
	}
}

func TestPost_duplicateID(t *testing.T) {
	tool, running, ended := waitingTool()
	s := newSite(t, streamable.Options{}, tool)
	session := s.begin("2025-11-25")
	const text = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"hello","_meta":{"progressToken":1}}}`
	first := s.do(t.Context(), "POST", text, jsonType, session)
	<-running
	second := s.do(t.Context(), "POST", text, jsonType, session)
	if body := read(t, second); second.StatusCode != http.StatusBadRequest || !strings.Contains(body, "a request with this id is under way") {
		t.Errorf("second call: %s: %s", second.Status, body)
	}
	s.do(t.Context(), "DELETE", "", session)
	<-ended
	if body := read(t, first); strings.Contains(body, "error") {
		t.Errorf("first call: %s", body)
	}
}

func TestGet_sessionEnds(t *testing.T) {
	s := newSite(t, streamable.Options{})
	session := s.begin("2025-11-25")
	stream := s.do(t.Context(), "GET", "", "Accept: text/event-stream", session)
	s.do(t.Context(), "DELETE", "", session)
	if got := events(t, stream); len(got) != 1 || got[0].data != "" {
		t.Errorf("stream: %q", got)
	}
}

func TestGet_missedChanges(t *testing.T) {
	s := newSite(t, streamable.Options{})
	session := s.begin("2025-11-25")
	s.do(t.Context(), "POST", `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, jsonType, session)
	s.backend.Publish(mcptest.Tools()[:1]...)
	stream := s.do(t.Context(), "GET", "", "Accept: text/event-stream", session)
	next := reader(t, stream)
	next()
	if e, ok := next(); !ok || !strings.Contains(e.data, "tools/list_changed") {
		t.Errorf("first event: %q", e)
	}
}

func TestGet_keepAlive(t *testing.T) {
	tool, running, _ := waitingTool()
	s := newSite(t, streamable.Options{Bounds: httpstream.Bounds{KeepAlive: time.Millisecond}}, tool)
	text, header := callText("hello")
	response := s.do(t.Context(), "POST", text, header...)
	<-running
	lines := bufio.NewScanner(response.Body)
	for comments := 0; comments < 3 && lines.Scan(); {
		if lines.Text() == ":" {
			comments++
		}
	}
	if err := lines.Err(); err != nil {
		t.Error(err)
	}
	response.Body.Close()
}

func TestGet_slowClient(t *testing.T) {
	ended := make(chan error, 1)
	tool := mcptest.Tools()[0]
	tool.Run = func(ctx context.Context, r call.Request) call.Result {
		for done := 0.0; ctx.Err() == nil; done++ {
			r.Emit.Progress(done, nil, strings.Repeat("x", 64<<10))
		}
		ended <- ctx.Err()
		return mcptest.Text("")
	}
	log := make(lines, 10)
	s := newSite(t, streamable.Options{Bounds: httpstream.Bounds{WriteTimeout: 10 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(log, nil))}}, tool)
	text, header := callText("hello")
	s.send(text, header...)
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the call ended with %v", err)
	}
	if line := <-log; !strings.Contains(line, "disconnect slow client") {
		t.Errorf("log: %q", line)
	}
}

// TestPost_retryAfter: proxies understand only the header.
func TestPost_retryAfter(t *testing.T) {
	s := newSite(t, streamable.Options{})
	session := s.begin("2025-11-25")
	for how, want := range map[string]string{"limit": "2", "tool": ""} {
		r := s.do(t.Context(), "POST", `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"fail","arguments":{"how":"`+how+`"}}}`, jsonType, session)
		if got := r.Header.Get("Retry-After"); r.StatusCode != http.StatusOK || got != want {
			t.Errorf("%s: %s, Retry-After %q, want %q", how, r.Status, got, want)
		}
	}
}

// lines sends the lines of a log that is written while its test runs.
type lines chan string

func (l lines) Write(line []byte) (int, error) {
	l <- string(line)
	return len(line), nil
}

// TestGet_maxStreams opens the maximum number of streams: one more is rejected
// and does not affect the others.
func TestGet_maxStreams(t *testing.T) {
	s := newSite(t, streamable.Options{})
	session := s.begin("2025-11-25")
	var last *http.Response
	streams := 0
	for ; streams < 100; streams++ {
		r := s.do(t.Context(), "GET", "", "Accept: text/event-stream", session)
		if r.StatusCode != http.StatusOK {
			if r.StatusCode != http.StatusServiceUnavailable || r.Header.Get("Retry-After") == "" {
				t.Errorf("stream %d: %s", streams, r.Status)
			}
			break
		}
		last = r
	}
	if streams != 8 {
		t.Errorf("opened %d streams", streams)
	}
	s.do(t.Context(), "POST", `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, jsonType, session)
	s.backend.Publish(mcptest.Tools()[:1]...)
	next := reader(t, last)
	next()
	if e, ok := next(); !ok || !strings.Contains(e.data, "tools/list_changed") {
		t.Errorf("event of the newest stream: %q", e)
	}
}

func TestDrain(t *testing.T) {
	s := newSite(t, streamable.Options{})
	id := s.begin("2025-11-25")
	stream := s.do(t.Context(), "GET", "", "Accept: text/event-stream", id)
	s.backend.Publish(mcptest.Tools()[:1]...)
	next := reader(t, stream)
	next()
	if e, ok := next(); !ok || !strings.Contains(e.data, "tools/list_changed") {
		t.Fatalf("event: %q", e)
	}
	if err := s.server.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if e, ok := next(); ok {
		t.Errorf("the stream ended with %q", e)
	}
	refused := s.do(t.Context(), "POST", ping, jsonType)
	if refused.StatusCode != http.StatusServiceUnavailable || refused.Header.Get("Retry-After") == "" {
		t.Errorf("request after the drain: %s", refused.Status)
	}
	if r := s.do(t.Context(), "GET", "", "Accept: text/event-stream", id); r.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("stream after the drain: %s", r.Status)
	}
}
