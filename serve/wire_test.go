package serve_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/mcpd/mcpd/internal/protocol/mcp/mcptest"
	"github.com/mcpd/mcpd/serve"
)

// wire is a client's end of an MCP transport: it sends messages and receives
// every message of the server in order.
type wire struct {
	t *testing.T
	// send sends one message. Over HTTP it returns when the response has started,
	// and does not wait for the result of a call.
	send func(text string)
	// close closes the connection, and over HTTP the connections of running
	// requests.
	close func()
	// session is the session id over HTTP; empty elsewhere.
	session string
	url     string
	// messages are the server's messages. It is closed when the transport ends.
	messages chan []byte
}

// wires are the transports for MCP messages.
var wires = []struct {
	name string
	open func(*testing.T, *serve.Front) *wire
}{
	{"HTTP", openHTTPWire},
	{"HTTP+SSE", openSSEWire},
	{"WebSocket", openSocketWire},
	{"stdio", openStdioWire},
}

// testTimeout is the timeout of tests, for a busy machine.
const testTimeout = 2 * time.Minute

// next returns the next message of the server.
func (w *wire) next() []byte {
	w.t.Helper()
	select {
	case message, ok := <-w.messages:
		if !ok {
			w.t.Fatal("the transport ended")
		}
		return message
	case <-time.After(testTimeout):
		w.t.Fatal("no message from the server")
	}
	return nil
}

// answer sends a request and returns the response with its id; it skips earlier
// notifications.
func (w *wire) answer(id int, text string) []byte {
	w.t.Helper()
	w.send(text)
	for {
		message := w.next()
		var m struct {
			ID     json.RawMessage
			Method string
		}
		decode(w.t, message, &m)
		if m.Method == "" && string(m.ID) == fmt.Sprint(id) {
			return message
		}
	}
}

// deliver passes a message to the test that reads the wire.
func (w *wire) deliver(message []byte) { w.messages <- bytes.Clone(bytes.TrimSpace(message)) }

func newWire(t *testing.T) *wire { return &wire{t: t, messages: make(chan []byte, 1000)} }

// openHTTPWire uses Streamable HTTP: it sends the id of its session, and
// mirrors modern requests in headers.
func openHTTPWire(t *testing.T, front *serve.Front) *wire {
	url, w := listen(t, front), newWire(t)
	ctx, cancel := context.WithCancel(context.Background())
	var streams sync.WaitGroup
	t.Cleanup(func() { cancel(); streams.Wait() })
	w.url, w.close = url, cancel
	w.send = func(text string) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/mcp", strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = joined(http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}, mirrored(text))
		if w.session != "" && r.Header.Get("Mcp-Protocol-Version") == "" {
			r.Header.Set("Mcp-Session-Id", w.session)
		}
		took := make(chan string, 1)
		streams.Go(func() {
			response, err := http.DefaultClient.Do(r)
			if err != nil {
				took <- ""
				return
			}
			defer response.Body.Close()
			took <- response.Header.Get("Mcp-Session-Id")
			if strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
				w.events(response.Body)
			} else if body, err := io.ReadAll(response.Body); err == nil && len(body) > 0 {
				w.deliver(body)
			}
		})
		if strings.Contains(text, `"method":"tools/call"`) {
			return
		}
		if id := <-took; id != "" {
			w.session = id
		}
	}
	return w
}

// mirrored returns the headers of a modern request.
func mirrored(text string) http.Header {
	var m struct {
		Method string
		Params struct {
			Name, URI, TaskID string
			Meta              struct {
				Version string `json:"io.modelcontextprotocol/protocolVersion"`
			} `json:"_meta"`
		}
	}
	if json.Unmarshal([]byte(text), &m) != nil || m.Params.Meta.Version == "" {
		return nil
	}
	return modernHeaders(mcptest.Request{Method: m.Method, Name: m.Params.Name + m.Params.URI + m.Params.TaskID})
}

// events delivers the data of a stream's events.
func (w *wire) events(body io.Reader) {
	lines := bufio.NewReader(body)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok && len(bytes.TrimSpace(data)) > 0 {
			w.deliver(data)
		}
	}
}

func openSSEWire(t *testing.T, front *serve.Front) *wire {
	url, w := listen(t, front), newWire(t)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	w.close = cancel
	events, endpoint := openSSEWith(ctx, t, url)
	go func() {
		defer close(w.messages)
		for message := events(); message != nil; message = events() {
			w.deliver(message)
		}
	}()
	w.send = func(text string) { post(t, url+endpoint, text, nil) }
	return w
}

func openSocketWire(t *testing.T, front *serve.Front) *wire {
	w := newWire(t)
	dialer := websocket.Dialer{Subprotocols: []string{"mcp"}}
	conn, _, err := dialer.Dial("ws"+strings.TrimPrefix(listen(t, front), "http")+"/ws", nil)
	if err != nil {
		t.Fatal(err)
	}
	w.close = func() { conn.Close() }
	t.Cleanup(w.close)
	go func() {
		defer close(w.messages)
		for {
			_, message, err := conn.ReadMessage()
			if err != nil {
				return
			}
			w.deliver(message)
		}
	}()
	w.send = func(text string) {
		if err := conn.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func openStdioWire(t *testing.T, front *serve.Front) *wire {
	w := newWire(t)
	in, input := io.Pipe()
	output, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- front.Stdio(context.Background(), in, out)
		out.Close()
	}()
	// A client that is gone reads nothing either.
	gone := false
	w.close = func() {
		gone = true
		input.Close()
		output.Close()
	}
	go func() {
		defer close(w.messages)
		lines := bufio.NewReader(output)
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return
			}
			w.deliver(line)
		}
	}()
	t.Cleanup(func() {
		input.Close()
		if err := <-ended; err != nil && !gone {
			t.Errorf("stdio: %v", err)
		}
	})
	w.send = func(text string) {
		if _, err := io.WriteString(input, text+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	return w
}
