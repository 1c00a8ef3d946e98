package websocket_test

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	client "github.com/gorilla/websocket"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/mcp/mcptest"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpguard"
	"github.com/mcpd/mcpd/internal/protocol/transport/websocket"
)

// pipes is a listener of connections in memory.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if conn, ok := <-p; ok {
		return conn, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Close() error   { close(p); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// onPipes serves in memory. served receives a value for each ended connection.
func onPipes(tb testing.TB, o websocket.Options) (dial func() net.Conn, served <-chan struct{}) {
	s := mcp.New(mcptest.New(mcptest.Tools()[0]), mcp.Options{})
	handler, done := websocket.New(s, o), make(chan struct{}, 1)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(w, r)
		done <- struct{}{}
	})}
	network, ended := make(pipes), make(chan error, 1)
	go func() { ended <- server.Serve(network) }()
	tb.Cleanup(func() {
		server.Close()
		<-ended
		_ = s.Drain(context.Background())
	})
	return func() net.Conn {
		here, there := net.Pipe()
		network <- there
		return here
	}, done
}

// dialPipe opens a client's end in memory.
func dialPipe(t *testing.T, dial func() net.Conn) *client.Conn {
	t.Helper()
	dialer := client.Dialer{NetDial: func(string, string) (net.Conn, error) { return dial(), nil }}
	socket, _, err := dialer.Dial("ws://localhost/", nil)
	if err != nil {
		t.Fatal(err)
	}
	return socket
}

func TestPing_noPong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := make(records, 10)
		dial, served := onPipes(t, websocket.Options{Logger: slog.New(log)})
		mute := dialPipe(t, dial)
		mute.SetPingHandler(func(string) error { return nil })
		started := time.Now()
		if _, text, err := mute.ReadMessage(); err == nil {
			t.Errorf("received %s", text)
		}
		if took := time.Since(started); took != 50*time.Second {
			t.Errorf("disconnected after %s", took)
		}
		if got := <-log; !strings.Contains(got, "without pong") {
			t.Errorf("log: %q", got)
		}
		mute.Close()
		<-served
	})
}

func TestPing_pong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial, served := onPipes(t, websocket.Options{})
		socket := dialPipe(t, dial)
		pings := 0
		answer := socket.PingHandler()
		socket.SetPingHandler(func(data string) error {
			err := answer(data)
			if pings++; pings == 5 {
				_ = socket.WriteMessage(client.TextMessage, []byte(ping))
			}
			return err
		})
		if _, text, err := socket.ReadMessage(); err != nil || pings < 5 {
			t.Errorf("after %d pings: %s, %v", pings, text, err)
		}
		socket.Close()
		<-served
	})
}

// TestSend_withoutRoom has a client call for a result that has no room: it gets
// an error with the id of the request, and the connection continues.
func TestSend_withoutRoom(t *testing.T) {
	tool := mcptest.Tools()[0]
	tool.Run = func(context.Context, call.Request) call.Result { return mcptest.Text(strings.Repeat("x", 100_000)) }
	web, _ := newSite(t, websocket.Options{Unread: httpguard.NewBudget(100_000)}, tool)
	socket := connect(t, web)
	defer socket.Close()
	for _, step := range []struct{ send, want string }{
		{`{"jsonrpc":"2.0","id":"a\"b","method":"tools/call","params":{"name":"hello","_meta":{` +
			`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
			`{"jsonrpc":"2.0","id":"a\"b","error":{"code":-32603,"message":"the response was dropped`},
		{ping, `{"jsonrpc":"2.0","id":1,"result":{}}`},
	} {
		if err := socket.WriteMessage(client.TextMessage, []byte(step.send)); err != nil {
			t.Fatal(err)
		}
		_, got, err := socket.ReadMessage()
		if err != nil || !strings.HasPrefix(string(got), step.want) {
			t.Errorf("response: %.200s: %v", got, err)
		}
	}
}
