package serve_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/serve"
)

const chattyTool = `
tool "chatty" {
  timeout = "3s"
  run = <<JS
    for (let i = 0; ; i++) {
      progress(i, null, "x".repeat(8_000));
      await new Promise(done => setTimeout(done, 10));
    }
  JS
}
`

const callChatty = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"chatty","_meta":{"progressToken":1,` +
	`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`

// pipeListener is a network without buffers: a write blocks until the other end
// reads.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

func (l *pipeListener) dial() net.Conn {
	client, server := net.Pipe()
	l.conns <- server
	return client
}

// serveOn serves a front on a listener until the test ends.
func serveOn(t *testing.T, front *serve.Front, l net.Listener) {
	t.Helper()
	handler, err := front.Handler()
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: handler}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	t.Cleanup(func() {
		server.Close()
		<-ended
	})
}

// TestTimeout_slowClient requests progress and does not read it, on every
// transport with progress.
func TestTimeout_slowClient(t *testing.T) {
	for name, send := range map[string]func(*testing.T, *serve.Front){
		"HTTP": func(t *testing.T, front *serve.Front) {
			l := newPipeListener()
			serveOn(t, front, l)
			conn := l.dial()
			t.Cleanup(func() { conn.Close() })
			r, err := http.NewRequest(http.MethodPost, "http://127.0.0.1/mcp", strings.NewReader(callChatty))
			if err != nil {
				t.Fatal(err)
			}
			r.Header = http.Header{"Content-Type": {"application/json"}, "Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"chatty"}}
			if err := r.Write(conn); err != nil {
				t.Fatal(err)
			}
		},
		"WebSocket": func(t *testing.T, front *serve.Front) {
			l := newPipeListener()
			serveOn(t, front, l)
			dialer := websocket.Dialer{NetDial: func(string, string) (net.Conn, error) { return l.dial(), nil }}
			conn, _, err := dialer.Dial("ws://127.0.0.1/ws", nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { conn.Close() })
			if err := conn.WriteMessage(websocket.TextMessage, []byte(callChatty)); err != nil {
				t.Fatal(err)
			}
		},
		"HTTP+SSE": func(t *testing.T, front *serve.Front) {
			l := newPipeListener()
			serveOn(t, front, l)
			conn := l.dial()
			t.Cleanup(func() { conn.Close() })
			if _, err := io.WriteString(conn, "GET /sse HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewReader(conn)
			endpoint, ok := "", false
			for !ok {
				line, err := lines.ReadString('\n')
				if err != nil {
					t.Fatal(err)
				}
				endpoint, ok = strings.CutPrefix(strings.TrimSpace(line), "data: ")
			}
			side := l.dial()
			t.Cleanup(func() { side.Close() })
			r, err := http.NewRequest(http.MethodPost, "http://localhost"+endpoint, strings.NewReader(callChatty))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			if err := r.Write(side); err != nil {
				t.Fatal(err)
			}
		},
		"stdio": func(t *testing.T, front *serve.Front) {
			in, input := io.Pipe()
			output, out := io.Pipe()
			ended := make(chan error, 1)
			go func() { ended <- front.Stdio(context.Background(), in, out) }()
			t.Cleanup(func() {
				output.Close()
				input.Close()
				<-ended
			})
			if _, err := io.WriteString(input, callChatty+"\n"); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				last := make(chan call.Event, 2)
				front := frontOf(t, chattyTool, func(_ context.Context, e call.Event) {
					if e.Phase != call.Start {
						last <- e
					}
				})
				started := time.Now()
				send(t, front)
				e := <-last
				if took := time.Since(started); took != 3*time.Second || e.Err == nil || e.Err.Code != call.Timeout {
					t.Errorf("after %s the call ended with %v", took, e.Err)
				}
			})
		})
	}
}

// frontOf returns a front for one tool file. It is shut down when the test
// ends.
func frontOf(t *testing.T, tools string, hooks ...engine.Hook) *serve.Front {
	t.Helper()
	s, err := engine.New(engine.Options{
		Name: "test", Hooks: hooks, Front: serve.Checks{},
		Files: engine.Files{Tools: fstest.MapFS{"t.hcl": {Data: []byte(tools), Mode: 0o644}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return frontFor(t, s)
}

// frontFor loads the files of an engine and returns a front that serves it.
func frontFor(t *testing.T, s *engine.Server) *serve.Front {
	t.Helper()
	if _, err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	front := serve.New(s, serve.Options{})
	t.Cleanup(func() {
		if err := front.Shutdown(context.Background()); err != nil {
			t.Errorf("shut down: %v", err)
		}
	})
	return front
}
