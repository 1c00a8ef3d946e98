package conformance_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/gorilla/websocket"
)

// wire carries raw JSON-RPC messages of one client.
type wire struct {
	send  func(text []byte) error
	inbox chan []byte // messages of the server; closed at the end
	// hang closes the connection at once, and waits until reading has stopped.
	hang func()
	// drop closes the stream of the response to a request; nil if all responses
	// share one stream.
	drop func(id string)
	// end ends the session; nil if the session is the connection.
	end func() error
}

// newInbox has capacity for all messages of a scenario.
func newInbox() chan []byte { return make(chan []byte, 1<<10) }

// pump reads texts until the end.
func (w *wire) pump(next func() ([]byte, error)) {
	defer close(w.inbox)
	for {
		text, err := next()
		if err != nil {
			return
		}
		w.inbox <- text
	}
}

// pipes starts the server on a pair of pipes. It must end when the client has
// closed its end; the client of the go-sdk closes both at once.
func pipes(t *testing.T, s *site) (io.ReadCloser, io.WriteCloser) {
	t.Helper()
	in, input := io.Pipe()
	output, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- s.front.Stdio(context.WithoutCancel(t.Context()), in, out)
		out.Close()
	}()
	t.Cleanup(func() {
		input.Close()
		if err := <-ended; err != nil && !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("stdio: %v", err)
		}
		output.Close()
	})
	return output, input
}

func dialStdio(t *testing.T, s *site, _ era) *wire {
	output, input := pipes(t, s)
	w := &wire{inbox: newInbox()}
	w.send = func(text []byte) error {
		_, err := input.Write(append(bytes.Clone(text), '\n'))
		return err
	}
	w.hang = func() { input.Close() }
	lines := bufio.NewReader(output)
	go w.pump(func() ([]byte, error) { return lines.ReadBytes('\n') })
	return w
}

func dialWebSocket(t *testing.T, s *site, _ era) *wire {
	t.Helper()
	dialer := websocket.Dialer{Subprotocols: []string{"mcp"}}
	conn, _, err := dialer.DialContext(t.Context(), "ws"+strings.TrimPrefix(s.url, "http")+"/ws", nil)
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{inbox: newInbox(), hang: func() { conn.Close() }}
	var sending sync.Mutex
	w.send = func(text []byte) error {
		sending.Lock()
		defer sending.Unlock()
		return conn.WriteMessage(websocket.TextMessage, text)
	}
	go w.pump(func() ([]byte, error) {
		_, text, err := conn.ReadMessage()
		return text, err
	})
	return w
}

func dialSSE(t *testing.T, s *site, _ era) *wire {
	t.Helper()
	ctx, hang := context.WithCancel(context.WithoutCancel(t.Context()))
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/sse", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	next := events(response.Body)
	endpoint, err := next()
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{inbox: newInbox(), hang: hang}
	w.send = func(text []byte) error {
		response, err := s.client.Post(s.url+string(endpoint), "application/json", bytes.NewReader(text))
		if err != nil {
			return err
		}
		return taken(response)
	}
	go func() {
		defer response.Body.Close()
		w.pump(next)
	}()
	return w
}

// events returns the data of the events of a stream, one after another, without
// empty ones.
func events(stream io.Reader) func() ([]byte, error) {
	lines := bufio.NewReader(stream)
	return func() ([]byte, error) {
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return nil, err
			}
			if data, ok := bytes.CutPrefix(line, []byte("data:")); ok && len(bytes.TrimSpace(data)) > 0 {
				return bytes.TrimSpace(data), nil
			}
		}
	}
}

// taken returns an error if a message was not accepted.
func taken(response *http.Response) error {
	defer response.Body.Close()
	if text, err := io.ReadAll(response.Body); err != nil || response.StatusCode != http.StatusAccepted || len(text) > 0 {
		return fmt.Errorf("response to the message: %s, %q, %w", response.Status, text, err)
	}
	return nil
}

// message is any JSON-RPC message.
type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   *fault          `json:"error"`
}

type fault struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
}
