package websocket_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	client "github.com/gorilla/websocket"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/auth/authn"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/mcp/mcptest"
	"github.com/mcpd/mcpd/internal/protocol/transport/websocket"
)

const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

func newSite(t *testing.T, o websocket.Options, tools ...mcptest.Tool) (*httptest.Server, *mcp.Server) {
	t.Helper()
	s := mcp.New(mcptest.New(tools...), mcp.Options{})
	web := httptest.NewServer(websocket.New(s, o))
	t.Cleanup(func() {
		if err := s.Drain(context.Background()); err != nil {
			t.Error(err)
		}
		web.Close()
	})
	return web, s
}

func TestHandshake(t *testing.T) {
	web, _ := newSite(t, websocket.Options{Middleware: authn.Middleware{Authenticator: func(r *http.Request) (identity.Principal, error) {
		if r.Header.Get("X-User") == "nobody" {
			return identity.Principal{}, errors.New("nobody")
		}
		if r.Header.Get("X-User") == "somebody" {
			return identity.Principal{}, &authn.AuthError{Status: http.StatusServiceUnavailable}
		}
		return identity.Anonymous(), nil
	}}})
	for _, test := range []struct {
		name         string
		subprotocols []string
		header       http.Header
		want         int
		agreed       string
	}{
		{"subprotocol", []string{"mcp"}, nil, 101, "mcp"},
		{"one of several", []string{"x", "mcp"}, nil, 101, "mcp"},
		{"none", nil, nil, 101, ""},
		{"other subprotocol", []string{"graphql"}, nil, 400, ""},
		{"no credential", []string{"mcp"}, http.Header{"X-User": {"nobody"}}, 401, ""},
		{"unavailable credential", []string{"mcp"}, http.Header{"X-User": {"somebody"}}, 503, ""},
		{"invalid claim", []string{"mcp"}, http.Header{"X-Agent-Id": {"a", "b"}}, 400, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			dialer := client.Dialer{Subprotocols: test.subprotocols}
			socket, response, err := dialer.Dial(strings.Replace(web.URL, "http", "ws", 1), test.header)
			if response == nil {
				t.Fatal(err)
			}
			if response.StatusCode != test.want {
				t.Fatalf("status %s, want %d", response.Status, test.want)
			}
			if socket != nil {
				if socket.Subprotocol() != test.agreed {
					t.Errorf("subprotocol = %q", socket.Subprotocol())
				}
				socket.Close()
			}
		})
	}
	response, err := web.Client().Get(web.URL)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusBadRequest {
		t.Errorf("request without handshake: %s", response.Status)
	}
}

// closeCode reads until the server closes, and returns the close code.
func closeCode(t *testing.T, socket *client.Conn) int {
	t.Helper()
	for {
		_, _, err := socket.ReadMessage()
		var closed *client.CloseError
		if errors.As(err, &closed) {
			return closed.Code
		}
		if err != nil {
			t.Fatalf("the connection ended without a close frame: %v", err)
		}
	}
}

func TestClose_codes(t *testing.T) {
	const initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
	for _, test := range []struct {
		name string
		end  func(t *testing.T, socket *client.Conn, s *mcp.Server)
		want int
	}{
		{"invalid UTF-8", func(_ *testing.T, socket *client.Conn, _ *mcp.Server) {
			_ = socket.WriteMessage(client.BinaryMessage, []byte(ping))
		}, client.CloseUnsupportedData},
		{"message too long", func(_ *testing.T, socket *client.Conn, _ *mcp.Server) {
			_ = socket.WriteMessage(client.TextMessage, make([]byte, 4<<20+1))
		}, client.CloseMessageTooBig},
		{"shutdown", func(_ *testing.T, socket *client.Conn, _ *mcp.Server) {
			_ = socket.WriteMessage(client.TextMessage, []byte(initialize))
			_ = socket.WriteMessage(client.TextMessage, []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
			_ = socket.WriteMessage(client.TextMessage, []byte(`{"jsonrpc":"2.0","id":1,"method":"shutdown"}`))
		}, client.CloseNormalClosure},
		{"drain", func(t *testing.T, _ *client.Conn, s *mcp.Server) {
			go s.Drain(t.Context())
		}, client.CloseGoingAway},
	} {
		t.Run(test.name, func(t *testing.T) {
			web, s := newSite(t, websocket.Options{})
			socket := connect(t, web)
			defer socket.Close()
			test.end(t, socket, s)
			if got := closeCode(t, socket); got != test.want {
				t.Errorf("code %d, want %d", got, test.want)
			}
		})
	}
}

func TestHandshake_draining(t *testing.T) {
	web, s := newSite(t, websocket.Options{})
	if err := s.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, response, err := client.DefaultDialer.Dial(strings.Replace(web.URL, "http", "ws", 1), nil)
	if err == nil || response == nil || response.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("response: %v, %v", response, err)
	}
}

func TestCall_connectionEnds(t *testing.T) {
	running, ended := make(chan struct{}), make(chan error, 1)
	tool := mcptest.Tools()[0]
	tool.Run = func(ctx context.Context, _ call.Request) call.Result {
		close(running)
		<-ctx.Done()
		ended <- ctx.Err()
		return mcptest.Text("")
	}
	web, _ := newSite(t, websocket.Options{}, tool)
	socket := connect(t, web)
	_ = socket.WriteMessage(client.TextMessage, []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hello","_meta":{`+
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`))
	<-running
	socket.Close()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the call ended with %v", err)
	}
}

func TestSend_slowClient(t *testing.T) {
	ended := make(chan error, 1)
	tool := mcptest.Tools()[0]
	tool.Run = func(ctx context.Context, r call.Request) call.Result {
		for done := 0.0; ctx.Err() == nil; done++ {
			r.Emit.Progress(done, nil, strings.Repeat("x", 64<<10))
		}
		ended <- ctx.Err()
		return mcptest.Text("")
	}
	log := make(records, 10)
	web, _ := newSite(t, websocket.Options{WriteTimeout: 10 * time.Millisecond, Logger: slog.New(log)}, tool)
	socket := connect(t, web)
	defer socket.Close()
	_ = socket.WriteMessage(client.TextMessage, []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hello","_meta":{"progressToken":1,`+
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`))
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the call ended with %v", err)
	}
	if got := <-log; !strings.Contains(got, "disconnect slow client") {
		t.Errorf("log: %q", got)
	}
}

// records sends the messages of log records.
type records chan string

func (r records) Enabled(context.Context, slog.Level) bool { return true }
func (r records) WithAttrs([]slog.Attr) slog.Handler       { return r }
func (r records) WithGroup(string) slog.Handler            { return r }
func (r records) Handle(_ context.Context, record slog.Record) error {
	r <- record.Message
	return nil
}
