package sse_test

import (
	"bufio"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/mcp/mcptest"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpguard"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpstream"
	"github.com/mcpd/mcpd/internal/protocol/transport/sse"
)

// pipes is a network without buffers: a write blocks until the other end reads.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if conn, ok := <-p; ok {
		return conn, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Close() error   { close(p); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

// ask sends a request on a new connection. It does not read the body of the
// response.
func (p pipes) ask(t *testing.T, method, path, body string) (*http.Response, *bufio.Reader) {
	t.Helper()
	client, server := net.Pipe()
	p <- server
	t.Cleanup(func() { client.Close() })
	r, err := http.NewRequest(method, "http://localhost"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if err := r.Write(client); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(client), r)
	if err != nil {
		t.Fatal(err)
	}
	return response, bufio.NewReader(response.Body)
}

// onPipes serves a tool, in a bubble.
func onPipes(t *testing.T, tool mcptest.Tool, log slog.Handler) pipes {
	t.Helper()
	s := mcp.New(mcptest.New(tool), mcp.Options{})
	mux := http.NewServeMux()
	streams, messages := sse.New(s, sse.Options{Bounds: httpstream.Bounds{Logger: slog.New(log)}})
	mux.Handle("/sse", streams)
	mux.Handle("/messages", messages)
	server, network, ended := &http.Server{Handler: mux}, make(pipes), make(chan error, 1)
	go func() { ended <- server.Serve(network) }()
	t.Cleanup(func() {
		server.Close()
		<-ended
		if err := s.Drain(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return network
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

func TestMessage_unreadStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := onPipes(t, mcptest.Tools()[0], slog.DiscardHandler)
		_, stream := network.ask(t, "GET", "/sse", "")
		_, endpoint := event(t, stream)
		started := time.Now()
		for range 3 {
			if response, _ := network.ask(t, "POST", endpoint, ping); response.StatusCode != http.StatusAccepted {
				t.Errorf("message: %s", response.Status)
			}
		}
		if waited := time.Since(started); waited != 0 {
			t.Errorf("the messages took %s", waited)
		}
		for range 3 {
			if _, got := event(t, stream); got != pong {
				t.Errorf("stream: %s", got)
			}
		}
	})
}

func TestStream_slowClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended, log := make(chan error, 1), make(records, 10)
		tool := mcptest.Tools()[0]
		tool.Run = func(ctx context.Context, r call.Request) call.Result {
			for done := 0.0; ctx.Err() == nil; done++ {
				r.Emit.Progress(done, nil, strings.Repeat("x", 64<<10))
				select {
				case <-ctx.Done():
				case <-time.After(100 * time.Millisecond):
				}
			}
			ended <- ctx.Err()
			return mcptest.Text("")
		}
		network := onPipes(t, tool, log)
		_, stream := network.ask(t, "GET", "/sse", "")
		_, endpoint := event(t, stream)
		started := time.Now()
		network.ask(t, "POST", endpoint, callText)
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the call ended with %v", err)
		}
		if took := time.Since(started); took != 10*time.Second {
			t.Errorf("the client was disconnected after %s", took)
		}
		if got := <-log; !strings.Contains(got, "disconnect slow client") {
			t.Errorf("log: %q", got)
		}
		synctest.Wait() // the connection is removed after the log message
		if response, _ := network.ask(t, "POST", endpoint, ping); response.StatusCode != http.StatusNotFound {
			t.Errorf("message after the end: %s", response.Status)
		}
		_, other := network.ask(t, "GET", "/sse", "")
		_, endpoint = event(t, other)
		network.ask(t, "POST", endpoint, ping)
		if _, got := event(t, other); got != pong {
			t.Errorf("other client: %s", got)
		}
	})
}

// TestStream_withoutRoom has a client call for a result that has no room: its
// stream gets an error with the id of the request, and continues.
func TestStream_withoutRoom(t *testing.T) {
	tool := mcptest.Tools()[0]
	tool.Run = func(context.Context, call.Request) call.Result { return mcptest.Text(strings.Repeat("x", 100_000)) }
	web, _ := newSite(t, sse.Options{Bounds: httpstream.Bounds{Unread: httpguard.NewBudget(100_000)}}, tool)
	l := open(t, web)
	l.post(callText)
	if got := <-l.lines; !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"the response was dropped`) {
		t.Errorf("stream: %.200s", got)
	}
	l.post(ping)
	if got := <-l.lines; got != pong {
		t.Errorf("stream: %s", got)
	}
}
