package sse_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/auth/authn"
	"github.com/mcpd/mcpd/internal/base/jsonguard"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/mcp/mcptest"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpguard"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpstream"
	"github.com/mcpd/mcpd/internal/protocol/transport/sse"
)

const (
	ping     = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	pong     = `{"jsonrpc":"2.0","id":1,"result":{}}`
	jsonType = "Content-Type: application/json"
	callText = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"hello","_meta":{"progressToken":1,` +
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
)

func newSite(t *testing.T, o sse.Options, tools ...mcptest.Tool) (*httptest.Server, *mcp.Server) {
	t.Helper()
	s := mcp.New(mcptest.New(tools...), mcp.Options{Limits: jsonguard.Limits{Bytes: 1000}})
	web := serve(t, s, o)
	t.Cleanup(func() {
		web.CloseClientConnections()
		if err := s.Drain(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return web, s
}

func TestRequests(t *testing.T) {
	web, _ := newSite(t, sse.Options{})
	l := open(t, web)
	for _, test := range []struct {
		name, method, path, body string
		header                   []string
		want                     int
	}{
		{"ping", "POST", l.endpoint, ping, []string{jsonType}, 202},
		{"charset", "POST", l.endpoint, ping, []string{"Content-Type: application/json; charset=utf-8"}, 202},
		{"an unsolicited response", "POST", l.endpoint, `{"jsonrpc":"2.0","id":7,"result":{}}`, []string{jsonType}, 202},
		{"no content type", "POST", l.endpoint, ping, nil, 415},
		{"other content type", "POST", l.endpoint, ping, []string{"Content-Type: text/plain"}, 415},
		{"encoded body", "POST", l.endpoint, ping, []string{jsonType, "Content-Encoding: gzip"}, 415},
		{"no session", "POST", "/messages", ping, []string{jsonType}, 400},
		{"two sessions", "POST", l.endpoint + "&sessionId=x", ping, []string{jsonType}, 400},
		{"unknown session", "POST", "/messages?sessionId=x", ping, []string{jsonType}, 404},
		{"empty body", "POST", l.endpoint, "", []string{jsonType}, 400},
		{"half a message", "POST", l.endpoint, `{"jsonrpc":`, []string{jsonType}, 400},
		{"invalid UTF-8", "POST", l.endpoint, "\"\xff\"", []string{jsonType}, 400},
		{"batch before initialize", "POST", l.endpoint, "[" + ping + "]", []string{jsonType}, 400},
		{"body too long", "POST", l.endpoint, strings.Repeat(" ", 1001), []string{jsonType}, 413},
		{"message with other method", "GET", l.endpoint, "", nil, 405},
		{"stream with other method", "POST", "/sse", ping, []string{jsonType}, 405},
		{"stream without event-stream", "GET", "/sse", "", []string{"Accept: application/json"}, 406},
		{"conflicting claim", "GET", "/sse", "", []string{"X-Agent-Id: a", "X-Agent-Id: b"}, 400},
	} {
		t.Run(test.name, func(t *testing.T) {
			response := do(t, web, test.method, test.path, test.body, test.header...)
			text, err := io.ReadAll(response.Body)
			if err != nil || response.StatusCode != test.want {
				t.Errorf("status %s, want %d: %s, %v", response.Status, test.want, text, err)
			}
			if test.want >= 400 && !strings.HasPrefix(string(text), `{"jsonrpc":"2.0","error":{"code":-32`) {
				t.Errorf("body: %s", text)
			}
			if test.want == 405 && response.Header.Get("Allow") == "" {
				t.Error("the Allow header is missing")
			}
		})
	}
	if got := <-l.lines; got != pong {
		t.Errorf("stream: %s", got)
	}
}

func TestStream_endpoint(t *testing.T) {
	s := mcp.New(mcptest.New(), mcp.Options{})
	streams, _ := sse.New(s, sse.Options{})
	mux := http.NewServeMux()
	mux.Handle("/sse", streams)
	mux.Handle("/mcp/sse", streams)
	mux.Handle("/behind/a%20path/", http.StripPrefix("/behind/a path", streams))
	web := httptest.NewServer(mux)
	t.Cleanup(web.Close)
	for path, want := range map[string]string{
		"/sse":                   "/messages?sessionId=",
		"/mcp/sse?x=y":           "/messages?sessionId=",
		"/behind/a%20path/sse":   "/behind/a%20path/messages?sessionId=",
		"/behind/a%20path/x/sse": "/behind/a%20path/messages?sessionId=",
	} {
		response := do(t, web, http.MethodGet, path, "")
		if response.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s", path, response.Status)
		}
		for name, value := range map[string]string{
			"Content-Type": "text/event-stream", "X-Accel-Buffering": "no", "Cache-Control": "no-cache, no-transform",
		} {
			if got := response.Header.Get(name); got != value {
				t.Errorf("%s: %s = %q, want %q", path, name, got, value)
			}
		}
		name, data := event(t, bufio.NewReader(response.Body))
		if name != "endpoint" || !strings.HasPrefix(data, want) || len(data) < len(want)+20 {
			t.Errorf("%s: first event: %s: %s", path, name, data)
		}
		response.Body.Close()
	}
	if err := s.Drain(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestMessage_principal(t *testing.T) {
	web, _ := newSite(t, sse.Options{Middleware: authn.Middleware{Authenticator: func(r *http.Request) (identity.Principal, error) {
		p := identity.Anonymous()
		if p.ID = r.Header.Get("X-User"); p.ID == "" {
			return p, errors.New("who is it?")
		}
		return p, nil
	}}})
	if r := do(t, web, "GET", "/sse", ""); r.StatusCode != http.StatusUnauthorized {
		t.Errorf("stream without a credential: %s", r.Status)
	}
	l := open(t, web, "X-User: alice")
	for _, test := range []struct {
		user string
		want int
	}{{"", 401}, {"bob", 404}, {"alice", 202}} {
		header := []string{jsonType}
		if test.user != "" {
			header = append(header, "X-User: "+test.user)
		}
		if r := do(t, web, "POST", l.endpoint, ping, header...); r.StatusCode != test.want {
			t.Errorf("message of %q: %s, want %d", test.user, r.Status, test.want)
		}
	}
	if got := <-l.lines; got != pong {
		t.Errorf("stream: %s", got)
	}
}

// TestMessage_senderScopes: two credentials of one principal share a stream,
// and each has only its own scopes.
func TestMessage_senderScopes(t *testing.T) {
	tool := mcptest.Tools()[0]
	tool.Run = func(_ context.Context, r call.Request) call.Result {
		return mcptest.Text("scopes: " + strings.Join(r.Caller.Principal.Scopes, " "))
	}
	web, _ := newSite(t, sse.Options{Middleware: authn.Middleware{Authenticator: func(r *http.Request) (identity.Principal, error) {
		p := identity.Anonymous()
		p.ID, p.Scopes = "alice", strings.Fields(r.Header.Get("X-Scopes"))
		return p, nil
	}}}, tool)
	l := open(t, web, "X-Scopes: admin")
	for _, scopes := range []string{"admin", "read", ""} {
		if r := do(t, web, "POST", l.endpoint, callText, jsonType, "X-Scopes: "+scopes); r.StatusCode != http.StatusAccepted {
			t.Fatalf("call with %q: %s", scopes, r.Status)
		}
		if got := <-l.lines; !strings.Contains(got, `"text":"scopes: `+scopes+`"`) {
			t.Errorf("call with the scopes %q: response %s", scopes, got)
		}
	}
}

func TestStream_endsSession(t *testing.T) {
	running, ended := make(chan struct{}), make(chan error, 1)
	tool := mcptest.Tools()[0]
	tool.Run = func(ctx context.Context, _ call.Request) call.Result {
		close(running)
		<-ctx.Done()
		ended <- ctx.Err()
		return mcptest.Text("")
	}
	web, s := newSite(t, sse.Options{}, tool)
	l := open(t, web)
	if status, body := l.post(callText); status != http.StatusAccepted {
		t.Fatalf("call: %d: %s", status, body)
	}
	<-running
	l.stream.Body.Close()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the call ended with %v", err)
	}
	if err := s.Drain(t.Context()); err != nil {
		t.Error(err)
	}
	if status, body := l.post(ping); status != http.StatusNotFound {
		t.Errorf("message after the end: %d: %s", status, body)
	}
}

func TestDrain(t *testing.T) {
	running, finish := make(chan struct{}), make(chan struct{})
	tool := mcptest.Tools()[0]
	tool.Run = func(context.Context, call.Request) call.Result {
		close(running)
		<-finish
		return mcptest.Text("finished")
	}
	web, s := newSite(t, sse.Options{}, tool)
	l := open(t, web)
	l.post(callText)
	<-running
	drained := make(chan error, 1)
	go func() { drained <- s.Drain(context.WithoutCancel(t.Context())) }()
	<-s.Draining()
	for {
		// The connection learns of the drain a moment after the server.
		status, _ := l.post(ping)
		if status == http.StatusServiceUnavailable {
			break
		}
		<-l.lines
	}
	close(finish)
	if got := <-l.lines; !strings.Contains(got, "finished") {
		t.Errorf("stream: %s", got)
	}
	if got, more := <-l.lines; more {
		t.Errorf("unexpected message: %s", got)
	}
	if err := <-drained; err != nil {
		t.Error(err)
	}
	if r := do(t, web, "GET", "/sse", ""); r.StatusCode != http.StatusServiceUnavailable || r.Header.Get("Retry-After") == "" {
		t.Errorf("stream after the drain: %s", r.Status)
	}
}

// TestMessage_budget keeps a message in service; another one has no room until
// it has been served.
func TestMessage_budget(t *testing.T) {
	running, finish := make(chan struct{}), make(chan struct{})
	tool := mcptest.Tools()[0]
	tool.Run = func(context.Context, call.Request) call.Result {
		close(running)
		<-finish
		return mcptest.Text("finished")
	}
	web, _ := newSite(t, sse.Options{}, tool)
	guard, err := httpguard.New(httpguard.Options{Bodies: 3 * int64(len(callText)) / 2})
	if err != nil {
		t.Fatal(err)
	}
	web.Config.Handler = guard.Wrap(web.Config.Handler)
	l := open(t, web)
	l.post(callText)
	<-running
	if status, body := l.post(ping); status != http.StatusServiceUnavailable {
		t.Errorf("message without room: %d: %s", status, body)
	}
	close(finish)
	<-l.lines
	// The room is released after the response is sent.
	for status := 0; status != http.StatusAccepted; status, _ = l.post(ping) {
	}
	if got := <-l.lines; got != pong {
		t.Errorf("stream: %s", got)
	}
}

func TestStream_keepAlive(t *testing.T) {
	web, _ := newSite(t, sse.Options{Bounds: httpstream.Bounds{KeepAlive: time.Millisecond}})
	stream := do(t, web, "GET", "/sse", "")
	lines := bufio.NewScanner(stream.Body)
	for comments := 0; comments < 3; {
		if !lines.Scan() {
			t.Fatalf("the stream ended: %v", lines.Err())
		}
		if lines.Text() == ":" {
			comments++
		}
	}
	stream.Body.Close()
}

// TestGoSDK connects the client of the go-sdk, in every revision with a
// handshake.
func TestGoSDK(t *testing.T) {
	for _, version := range []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"} {
		t.Run(version, func(t *testing.T) {
			b := mcptest.New(mcptest.Tools()...)
			server := mcp.New(b, mcp.Options{Debounce: time.Millisecond})
			web := serve(t, server, sse.Options{})
			changed, steps := make(chan struct{}, 10), make(chan float64, 10)
			client := sdk.NewClient(&sdk.Implementation{Name: "sdk", Version: "1"}, &sdk.ClientOptions{
				ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { changed <- struct{}{} },
				ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
					steps <- r.Params.Progress
				},
			})
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			session, err := client.Connect(ctx, &sdk.SSEClientTransport{Endpoint: web.URL + "/sse", HTTPClient: web.Client()},
				&sdk.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			if got := session.InitializeResult().ProtocolVersion; got != version {
				t.Errorf("revision = %s", got)
			}
			if list, err := session.ListTools(ctx, nil); err != nil || len(list.Tools) != 8 {
				t.Errorf("list = %v, %v", list, err)
			}
			params := &sdk.CallToolParams{Name: "steps"}
			params.SetProgressToken("token")
			if result, err := session.CallTool(ctx, params); err != nil || result.IsError {
				t.Errorf("steps returned %+v, %v", result, err)
			}
			for _, want := range []float64{0, 50, 100} {
				if got := <-steps; got != want {
					t.Errorf("progress = %v, want %v", got, want)
				}
			}
			b.Publish(mcptest.Tools()[:2]...)
			<-changed
			if err := session.Close(); err != nil {
				t.Error(err)
			}
			if err := server.Drain(ctx); err != nil {
				t.Error(err)
			}
		})
	}
}
