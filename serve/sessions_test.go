package serve_test

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/extensions/telemetry"
	"github.com/mcpd/mcpd/serve"
)

// TestSessionsAreCountedByTransport opens a session on each transport.
func TestSessionsAreCountedByTransport(t *testing.T) {
	s, err := engine.New(engine.Options{Name: "test", Extensions: []engine.Extension{telemetry.New(telemetry.Options{})}})
	if err != nil {
		t.Fatal(err)
	}
	front := serve.New(s, serve.Options{})
	want := map[string]int{"streamable": 0, "sse": 0, "websocket": 0, "stdio": 0}
	if diff := cmp.Diff(want, front.Sessions()); diff != "" {
		t.Errorf("at first (-want +got)\n%s", diff)
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
	// The metrics say the same, with streams and sockets as connections.
	told := httptest.NewRecorder()
	s.Metrics().ServeHTTP(told, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, series := range []string{
		`mcpd_sessions{transport="streamable"} 1`, `mcpd_connections{transport="sse"} 1`, `mcpd_connections{transport="websocket"} 1`, `mcpd_connections{transport="stdio"} 1`,
	} {
		if !strings.Contains(told.Body.String(), series+"\n") {
			t.Errorf("the metrics lack %s", series)
		}
	}
	hangUp()
	if got := front.Sessions()["stdio"]; got != 0 {
		t.Errorf("%d clients are on a stream that has ended", got)
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

// openStream opens a session of HTTP+SSE, until the test ends.
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
