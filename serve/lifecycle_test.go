package serve_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/extensions/telemetry"
	"github.com/mcpd/mcpd/internal/protocol/mcp/mcptest"
	"github.com/mcpd/mcpd/serve"
)

// lifecycleFront serves a tool with a server block.
func lifecycleFront(t *testing.T, log *hookLog, server string) (*serve.Front, *engine.Server, fstest.MapFS) {
	t.Helper()
	config := fstest.MapFS{"mcpd.hcl": {Data: []byte(server), Mode: 0o644}}
	s, err := engine.New(engine.Options{
		Name: "test", Hooks: []engine.Hook{log.hook}, Front: serve.Checks{}, Files: engine.Files{
			Config: config,
			Tools:  fstest.MapFS{"t.hcl": {Data: []byte("tool \"open\" {\n  run = \"return 1;\"\n}\n"), Mode: 0o644}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return frontFor(t, s), s, config
}

const handshakeOpen = `"error":{"code":-32600,"message":"the handshake is not complete: send the notification notifications/initialized (without an id) before any request except ping"}`

// TestLifecycle_requestsBeforeInitialized sends every method of the session
// eras between initialize and notifications/initialized.
func TestLifecycle_requestsBeforeInitialized(t *testing.T) {
	for _, w := range wires {
		for _, version := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"} {
			t.Run(w.name+"/"+version, func(t *testing.T) {
				t.Parallel()
				var log hookLog
				front, _, _ := lifecycleFront(t, &log, "")
				wire := w.open(t, front)
				wire.answer(0, strings.Replace(initialize, "2025-11-25", version, 1))
				requests := append(mcptest.Requests(), mcptest.Request{Method: "no/such/method"}, mcptest.Request{Method: "notifications/initialized"})
				for i, r := range requests {
					want := handshakeOpen
					switch r.Method {
					case "ping":
						want = `"result":{}`
					case "initialize":
						want = `"error":{"code":-32600,"message":"the session is initialized already"}`
					}
					if got := wire.answer(i+1, messageOf(i+1, r, "")); !strings.Contains(string(got), want) {
						t.Errorf("response to %s during the handshake: %s", r.Method, got)
					}
				}
				modern := mcptest.Request{Method: "tools/call", Name: "open", Params: `"name":"open"`}
				if got := wire.answer(98, messageOf(98, modern, metaMatrix)); !strings.Contains(string(got), `"text":"1"`) {
					t.Errorf("response to a modern call: %s", got)
				}
				log.take()
				wire.send(ready)
				if got := wire.answer(99, messageOf(99, modern, "")); !strings.Contains(string(got), `"text":"1"`) || len(log.take()) != 2 {
					t.Errorf("response after the handshake: %s", got)
				}
			})
		}
	}
}

// TestLifecycle_lenient makes notifications/initialized optional, by a reload
// too.
func TestLifecycle_lenient(t *testing.T) {
	const lenient = "server {\n  strict_lifecycle = false\n}\n"
	list := mcptest.Request{Method: "tools/list"}
	for _, w := range wires {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			var log hookLog
			front, s, config := lifecycleFront(t, &log, "server {\n  strict_lifecycle = true\n}\n")
			wire := w.open(t, front)
			wire.answer(0, initialize)
			for i, now := range []struct{ config, want string }{{"", handshakeOpen}, {lenient, `"name":"open"`}, {"server {}\n", handshakeOpen}} {
				if now.config != "" {
					config["mcpd.hcl"].Data = []byte(now.config)
					if _, err := s.Reload(t.Context(), engine.Change{Config: true}); err != nil {
						t.Fatal(err)
					}
				}
				if got := wire.answer(i+1, messageOf(i+1, list, "")); !strings.Contains(string(got), now.want) {
					t.Errorf("with %q: response %s", now.config, got)
				}
			}
		})
	}
}

// TestLifecycle_pipelined sends the whole handshake and a call at once, on a
// connection and in a batch.
func TestLifecycle_pipelined(t *testing.T) {
	var log hookLog
	front, _, _ := lifecycleFront(t, &log, "")
	callText := func(id int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"open"}}`, id)
	}
	for _, w := range wires[1:] { // HTTP needs the session id first
		wire := w.open(t, front)
		for _, text := range []string{initialize, ready, callText(1)} {
			wire.send(text)
		}
		wire.next()
		if got := wire.next(); !strings.Contains(string(got), `"text":"1"`) {
			t.Errorf("%s: response %s", w.name, got)
		}
	}
	for _, w := range wires {
		wire := w.open(t, front)
		wire.answer(0, strings.Replace(initialize, "2025-11-25", "2025-03-26", 1))
		wire.send("[" + callText(1) + "," + ready + "," + callText(2) + "]")
		got := string(wire.next())
		if before, after, _ := strings.Cut(got, `},{`); !strings.Contains(before, handshakeOpen[:len(handshakeOpen)-1]) || !strings.Contains(after, `"text":"1"`) {
			t.Errorf("%s: batch response %s", w.name, got)
		}
	}
}

// TestSessions opens a session on each transport.
func TestSessions(t *testing.T) {
	s, err := engine.New(engine.Options{Name: "test", Extensions: []engine.Extension{telemetry.New(telemetry.Options{})}})
	if err != nil {
		t.Fatal(err)
	}
	front := serve.New(s, serve.Options{})
	want := map[string]int{"streamable": 0, "sse": 0, "websocket": 0, "stdio": 0}
	if diff := cmp.Diff(want, front.Sessions()); diff != "" {
		t.Errorf("before (-want +got)\n%s", diff)
	}
	url := listen(t, front)
	post(t, url+"/mcp", initialize, nil)

	openSocket(t, url)
	openStream(t, url)
	hangUp := openStdio(t, front)
	want = map[string]int{"streamable": 1, "sse": 1, "websocket": 1, "stdio": 1}
	if diff := cmp.Diff(want, front.Sessions()); diff != "" {
		t.Errorf("with one on each transport (-want +got)\n%s", diff)
	}
	// The metrics have the same values, with streams and sockets as connections.
	notified := httptest.NewRecorder()
	s.Metrics().ServeHTTP(notified, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, series := range []string{
		`mcpd_sessions{transport="streamable"} 1`, `mcpd_connections{transport="sse"} 1`, `mcpd_connections{transport="websocket"} 1`, `mcpd_connections{transport="stdio"} 1`,
	} {
		if !strings.Contains(notified.Body.String(), series+"\n") {
			t.Errorf("the metrics lack %s", series)
		}
	}
	hangUp()
	if got := front.Sessions()["stdio"]; got != 0 {
		t.Errorf("%d clients on an ended stream", got)
	}
}

// openSocket opens a session on a WebSocket, until the test ends.
func openSocket(t *testing.T, url string) {
	t.Helper()
	dialer := websocket.Dialer{Subprotocols: []string{"mcp"}}
	socket, _, err := dialer.Dial("ws"+strings.TrimPrefix(url, "http")+"/ws", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = socket.Close() })
	if err := socket.WriteMessage(websocket.TextMessage, []byte(initialize)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := socket.ReadMessage(); err != nil {
		t.Fatal(err)
	}
}

// openStream opens an HTTP+SSE session, until the test ends.
func openStream(t *testing.T, url string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/sse", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", "text/event-stream")
	stream, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stream.Body.Close() })
	if _, err := bufio.NewReader(stream.Body).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
}

// openStdio opens a session on a pipe, until hangUp is called.
func openStdio(t *testing.T, front *serve.Front) (hangUp func()) {
	t.Helper()
	in, typed := io.Pipe()
	printed, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- front.Stdio(t.Context(), in, out) }()
	if _, err := io.WriteString(typed, initialize+"\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(printed).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := typed.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// daemon is a front that runs on a free port.
type daemon struct {
	url   string
	stop  context.CancelFunc
	ended chan error
}

// run runs a front for one tool file.
func run(t *testing.T, tools string, grace time.Duration, log io.Writer, hooks ...engine.Hook) *daemon {
	t.Helper()
	s, err := engine.New(engine.Options{
		Name: "test", Hooks: hooks, Logger: slog.New(slog.NewTextHandler(log, nil)), Front: serve.Checks{},
		Files: engine.Files{Tools: fstest.MapFS{"t.hcl": {Data: []byte(tools), Mode: 0o644}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	listening := make(chan net.Addr, 1)
	front := serve.New(s, serve.Options{Address: "127.0.0.1:0", Grace: grace, OnListen: func(a net.Addr) { listening <- a }})
	ctx, stop := context.WithCancel(t.Context())
	d := &daemon{stop: stop, ended: make(chan error, 1)}
	go func() { d.ended <- front.Run(ctx) }()
	select {
	case at := <-listening:
		d.url = "http://" + at.String()
	case err := <-d.ended:
		t.Fatal(err)
	}
	return d
}

const stuckTool = `
tool "stuck" {
  timeout = "5m"
  run = <<JS
    log.info("the script runs");
    await new Promise(done => setTimeout(done, 300_000));
  JS
}
`

// runSignal signals when a script has logged that it runs.
type runSignal chan struct{}

func (b runSignal) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("the script runs")) {
		b <- struct{}{}
	}
	return len(p), nil
}

// TestShutdown_gracePeriod: a call over the grace period is cancelled, its hook
// is called, its client gets a response, and the server ends.
func TestShutdown_gracePeriod(t *testing.T) {
	for name, test := range map[string]struct{ path, body, want string }{
		"REST": {"/mcp/execute", `{"tool":"stuck"}`, `"error":"EXECUTION_ERROR","message":"the call was canceled"`},
		"MCP": {"/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"stuck",` + metaModern + `}}`,
			`"text":"the call was canceled"}],"isError":true`},
	} {
		t.Run(name, func(t *testing.T) {
			events := make(chan call.Event, 2)
			running := make(runSignal, 1)
			d := run(t, stuckTool, time.Millisecond, running, func(_ context.Context, e call.Event) { events <- e })
			answers := make(chan []byte, 1)
			go func() {
				_, answer := post(t, d.url+test.path, test.body, map[string]string{
					"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "stuck",
				})
				answers <- answer
			}()
			<-running
			<-events // of the start
			d.stop()
			if err := <-d.ended; err == nil || !strings.HasPrefix(err.Error(), "the grace period of ") ||
				strings.Count(err.Error(), "still run") != 1 || strings.Contains(err.Error(), "\n") {
				t.Errorf("the server ended with %v", err)
			}
			select {
			case e := <-events:
				if e.Phase != call.Failed || e.Err.Message != "the call was canceled" {
					t.Errorf("last event: %s, %v", e.Phase, e.Err)
				}
			default:
				t.Error("the server ended before the hook was called")
			}
			if answer := string(<-answers); !strings.Contains(answer, test.want) {
				t.Errorf("response: %s", answer)
			}
		})
	}
}

// TestShutdown_openStreams: the server closes streams of each kind properly,
// and ends without an error.
func TestShutdown_openStreams(t *testing.T) {
	d := run(t, stuckTool, time.Minute, io.Discard)
	header, _ := post(t, d.url+"/mcp", initialize, nil)
	request, err := http.NewRequest(http.MethodGet, d.url+"/mcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", "text/event-stream")
	request.Header.Set("Mcp-Session-Id", header.Get("Mcp-Session-Id"))
	stream, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()

	listening, err := http.NewRequest(http.MethodPost, d.url+"/mcp", strings.NewReader(fmt.Sprintf(
		`{"jsonrpc":"2.0","id":7,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},%s}}`, metaModern)))
	if err != nil {
		t.Fatal(err)
	}
	listening.Header = http.Header{"Content-Type": {"application/json"}, "Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"subscriptions/listen"}}
	subscription, err := http.DefaultClient.Do(listening)
	if err != nil {
		t.Fatal(err)
	}
	defer subscription.Body.Close()

	socket, _, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(d.url, "http")+"/ws", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()

	events, _ := openSSE(t, d.url)

	d.stop()
	if rest, err := io.ReadAll(stream.Body); err != nil || strings.Contains(string(rest), "message") {
		t.Errorf("the stream ended with %q, %v", rest, err)
	}
	if rest, err := io.ReadAll(subscription.Body); err != nil || !strings.Contains(string(rest), `"id":7,"result":`) {
		t.Errorf("the subscription ended with %q, %v", rest, err)
	}
	if _, _, err := socket.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseGoingAway) {
		t.Errorf("the socket ended with %v", err)
	}
	if event := events(); event != nil {
		t.Errorf("the HTTP+SSE stream ended with %s", event)
	}
	if err := <-d.ended; err != nil {
		t.Error(err)
	}
}
