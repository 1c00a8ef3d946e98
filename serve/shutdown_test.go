package serve_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/gorilla/websocket"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/serve"
)

// daemon is a front that runs on a port of its own.
type daemon struct {
	url   string
	stop  context.CancelFunc
	ended chan error
}

// run runs a front for one file of tools.
func run(t *testing.T, tools string, grace time.Duration, log io.Writer, hooks ...engine.Hook) *daemon {
	t.Helper()
	s, err := engine.New(engine.Options{
		Name: "test", Hooks: hooks, Logger: slog.New(slog.NewTextHandler(log, nil)), Front: serve.Checks{},
		Tools: fstest.MapFS{"t.hcl": {Data: []byte(tools), Mode: 0o644}},
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
    log.info("the body runs");
    await new Promise(done => setTimeout(done, 300_000));
  JS
}
`

// bell rings when the body runs that says so in the log.
type bell chan struct{}

func (b bell) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("the body runs")) {
		b <- struct{}{}
	}
	return len(p), nil
}

// TestACallThatOutlivesTheGracePeriodIsCancelled: its hook is told, its client
// is answered, and the server ends.
func TestACallThatOutlivesTheGracePeriodIsCancelled(t *testing.T) {
	for name, test := range map[string]struct{ path, body, want string }{
		"REST": {"/mcp/execute", `{"tool":"stuck"}`, `"error":"EXECUTION_ERROR","message":"the call was canceled"`},
		"MCP": {"/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"stuck",` + metaModern + `}}`,
			`"text":"the call was canceled"}],"isError":true`},
	} {
		t.Run(name, func(t *testing.T) {
			events := make(chan call.Event, 2)
			running := make(bell, 1)
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
					t.Errorf("the last event is %s, %v", e.Phase, e.Err)
				}
			default:
				t.Error("the server ended before the hook was told")
			}
			if answer := string(<-answers); !strings.Contains(answer, test.want) {
				t.Errorf("the client got %s", answer)
			}
		})
	}
}

// TestOpenStreamsAreClosedAtShutdown holds one stream of each kind open: the
// server says farewell on each, and ends without an error.
func TestOpenStreamsAreClosedAtShutdown(t *testing.T) {
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
		t.Errorf("the stream of HTTP+SSE ended with %s", event)
	}
	if err := <-d.ended; err != nil {
		t.Error(err)
	}
}
