package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/mcpd/mcpd/internal/auth/apikey"
	"github.com/mcpd/mcpd/internal/auth/authn/idptest"
	"github.com/mcpd/mcpd/internal/ops/audit"
)

// dial opens a WebSocket.
func (g *authServer) dial(header http.Header) *websocket.Conn {
	g.t.Helper()
	dialer := websocket.Dialer{Subprotocols: []string{"mcp"}, HandshakeTimeout: patience}
	socket, _, err := dialer.DialContext(g.t.Context(), strings.Replace(g.url, "http", "ws", 1)+"/ws", header)
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { _ = socket.Close() })
	_ = socket.SetReadDeadline(time.Now().Add(patience))
	return socket
}

// until waits for a REST request to get the status want.
func (g *authServer) until(want int, header http.Header) {
	g.t.Helper()
	for end := time.Now().Add(patience); g.status(routes[8], header) != want; time.Sleep(pollPause) {
		if time.Now().After(end) {
			g.t.Fatalf("status %d not seen", want)
		}
	}
}

// pingsUntilClosed pings over a WebSocket and returns the close error.
func pingsUntilClosed(socket *websocket.Conn) error {
	for {
		if err := socket.WriteMessage(websocket.TextMessage, []byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)); err != nil && !errors.Is(err, websocket.ErrCloseSent) {
			return err
		}
		if _, _, err := socket.ReadMessage(); err != nil {
			return err
		}
		time.Sleep(pollPause)
	}
}

// listen opens a stream. The channel gets nil when the server ends the stream, or an
// error.
func (g *authServer) listen(header http.Header) <-chan error {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), patience)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, g.url+"/sse", nil)
	if err != nil {
		g.t.Fatal(err)
	}
	request.Header = header.Clone()
	request.Header.Set("Accept", "text/event-stream")
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil || response.StatusCode != http.StatusOK {
		g.t.Fatalf("%v, %v", response, err)
	}
	ended := make(chan error, 1)
	lines := bufio.NewReader(response.Body)
	first, err := lines.ReadString('\n')
	if err != nil {
		g.t.Fatal(err)
	}
	post, _ := lines.ReadString('\n')
	_, path, _ := strings.Cut(strings.TrimSpace(post), "data: ")
	for _, text := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
	} {
		if status, answer, err := g.exchange("POST", path, []byte(text), header.Clone()); err != nil || status != http.StatusAccepted {
			g.t.Fatalf("%q %q: %d %s %v", first, path, status, answer, err)
		}
	}
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, lines)
		_ = response.Body.Close()
		ended <- ctx.Err()
	}()
	return ended
}

// wantWritten checks the events of a key in the audit log, in order.
func (g *authServer) wantWritten(id string, want ...string) {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), patience)
	defer cancel()
	all := errors.New("all events found")
	var got []string
	err := audit.Follow(ctx, filepath.Join(filepath.Dir(g.keys), "audit", "mcpd.jsonl"), 0, func(l *audit.Line) error {
		var event struct {
			Name       string            `json:"event.name"`
			Attributes map[string]string `json:"attributes"`
		}
		if err := json.Unmarshal(l.JSON, &event); err != nil {
			return err
		}
		if event.Attributes["key"] == id && event.Attributes["principal"] == "ci" {
			got = append(got, event.Name)
		}
		if slices.Equal(got, want) {
			return all
		}
		return nil
	})
	if !errors.Is(err, all) {
		g.t.Errorf("audit events of the key: %q, want %q; %v", got, want, err)
	}
}

// Revoking a key closes its open connections at the next message in either direction,
// and the audit log records it.
func TestConnections_closeWithTheirKey(t *testing.T) {
	t.Parallel()
	g := serveAuth(t, idptest.NewKey("k1", "ES256"))
	key := g.add(apikey.Record{Name: "ci", Principal: "ci"})
	g.until(http.StatusOK, bearer(key))
	socket, ended := g.dial(bearer(key)), g.listen(bearer(key))
	id, _, _ := strings.Cut(strings.TrimPrefix(key, apikey.Prefix), "_")
	if _, err := apikey.Revoke(g.keys, id, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := pingsUntilClosed(socket); !websocket.IsCloseError(err, websocket.ClosePolicyViolation) {
		t.Errorf("the WebSocket closed with %v", err)
	}
	g.changeToolsUntil(ended)
	g.wantWritten(id, "key.added", "key.revoked")
}

// Open anonymous connections close when authentication becomes required.
func TestConnections_closeWhenAuthRequired(t *testing.T) {
	t.Parallel()
	g := serveAuth(t, idptest.NewKey("k1", "ES256"))
	file := filepath.Join(filepath.Dir(g.keys), "mcpd.hcl")
	demanding, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	write := func(text []byte) {
		if err := os.WriteFile(file, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write([]byte("server {}\n"))
	g.until(http.StatusOK, http.Header{})
	socket, ended := g.dial(nil), g.listen(http.Header{})
	write(demanding)
	if err := pingsUntilClosed(socket); !websocket.IsCloseError(err, websocket.ClosePolicyViolation) {
		t.Errorf("the WebSocket closed with %v", err)
	}
	g.changeToolsUntil(ended)
}

// changeToolsUntil changes the tools, which notifies listeners, until the stream ends.
func (g *authServer) changeToolsUntil(ended <-chan error) {
	g.t.Helper()
	for i, end := 0, time.Now().Add(patience); time.Now().Before(end); i++ {
		time.Sleep(pollPause)
		select {
		case err := <-ended:
			if err != nil {
				g.t.Errorf("the stream is still open: %v", err)
			}
			return
		default:
		}
		path := filepath.Join(filepath.Dir(g.keys), "tools.d", "more.hcl")
		save(g.t, path, fmt.Sprintf("tool \"more%d\" {\n  run = \"return 1\"\n}\n", i))
		g.status(routes[8], http.Header{})
	}
	g.t.Error("the stream stayed open")
}
