package stdio_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/workqueue"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/mcp/mcptest"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpguard"
	"github.com/mcpd/mcpd/internal/protocol/transport/stdio"
)

// grace is the time for calls after the input ends.
const grace = 10 * time.Second

var options = stdio.Options{Grace: grace}

const (
	ping       = `{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n"
	pong       = `{"jsonrpc":"2.0","id":1,"result":{}}` + "\n"
	shutdown   = `{"jsonrpc":"2.0","id":9,"method":"shutdown"}` + "\n"
	initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}` + "\n" + `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"
	legacyWait = `{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"wait"}}` + "\n"
	metadata   = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
)

func callText(tool string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":%q,%s}}`+"\n", tool, metadata)
}

func newServer(t *testing.T, tools ...mcptest.Tool) *mcp.Server {
	t.Helper()
	s := mcp.New(mcptest.New(tools...), mcp.Options{})
	t.Cleanup(func() { _ = s.Drain(context.Background()) })
	return s
}

func peer() mcp.Peer { return mcp.Peer{Principal: identity.Anonymous()} }

func TestServe_lines(t *testing.T) {
	limit := 4 << 20
	for _, test := range []struct{ name, in, want string }{
		{"one", ping, pong},
		{"two", ping + ping, pong + pong},
		{"no line end at the end", strings.TrimSuffix(ping, "\n"), pong},
		{"CRLF", strings.ReplaceAll(ping, "\n", "\r\n"), pong},
		{"empty lines", "\n  \n\r\n" + ping, pong},
		{"nothing", "", ""},
		{
			"line too long", strings.Repeat("x", limit+1) + "\n" + ping,
			`{"jsonrpc":"2.0","error":{"code":-32600,"message":"the line is longer than 4194304 bytes"}}` + "\n" + pong,
		},
		{"longest line", strings.Repeat(" ", limit-len(ping)+1) + ping, pong},
		{"invalid line", "oops\n" + ping, "-32700\n" + pong},
	} {
		t.Run(test.name, func(t *testing.T) {
			var out bytes.Buffer
			if err := stdio.Serve(t.Context(), newServer(t), peer(), strings.NewReader(test.in), &out, options); err != nil {
				t.Fatal(err)
			}
			got, want := out.String(), test.want
			if code, rest, ok := strings.Cut(want, "\n"); ok && strings.HasPrefix(code, "-") {
				first, others, _ := strings.Cut(got, "\n")
				if !strings.Contains(first, code) {
					t.Errorf("response: %s, want the code %s", first, code)
				}
				got, want = others, rest
			}
			if got != want {
				t.Errorf("the server wrote %q, want %q", got, want)
			}
		})
	}
}

func TestServe_inputEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		finish := make(chan struct{})
		tool := mcptest.Tools()[0]
		tool.Run = func(context.Context, call.Request) call.Result {
			<-finish
			return mcptest.Text("finished")
		}
		var out bytes.Buffer
		served := make(chan error, 1)
		server := newServer(t, tool)
		go func() {
			served <- stdio.Serve(t.Context(), server, peer(), strings.NewReader(callText("hello")), &out, options)
		}()
		synctest.Wait()
		select {
		case err := <-served:
			t.Errorf("Serve returned %v while a call is running", err)
		default:
		}
		close(finish)
		if err := <-served; err != nil || !strings.Contains(out.String(), "finished") {
			t.Errorf("Serve returned %v after it wrote %q", err, out.String())
		}
	})
}

// TestServe_gracePeriod: after the end of the input or a shutdown the client is
// gone, and a call could run for a day.
func TestServe_gracePeriod(t *testing.T) {
	for name, leave := range map[string]func(client io.WriteCloser){
		"input ends":        func(client io.WriteCloser) { client.Close() },
		"client shuts down": func(client io.WriteCloser) { io.WriteString(client, shutdown) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				in, client := io.Pipe()
				served := make(chan error, 1)
				server := newServer(t, mcptest.Tools()...)
				go func() { served <- stdio.Serve(t.Context(), server, peer(), in, io.Discard, options) }()
				io.WriteString(client, initialize)
				io.WriteString(client, legacyWait)
				leave(client)
				started := time.Now()
				if err := <-served; err == nil || !strings.Contains(err.Error(), "did not end in time") {
					t.Errorf("Serve returned %v", err)
				}
				// The end may be detected only when reading continues, after a
				// millisecond.
				if took := time.Since(started); took < grace || took > grace+time.Millisecond {
					t.Errorf("the call ran for %v, want %v", took, grace)
				}
			})
		})
	}
}

func TestServe_contextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, client := io.Pipe()
		var out bytes.Buffer
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan error, 1)
		server := newServer(t, mcptest.Tools()...)
		go func() { served <- stdio.Serve(ctx, server, peer(), in, &out, options) }()
		io.WriteString(client, callText("wait"))
		synctest.Wait()
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
		if _, err := io.WriteString(client, ping); err == nil {
			t.Error("the input is still being read")
		}
	})
}

func TestServe_drainAndShutdown(t *testing.T) {
	for _, test := range []struct {
		name string
		end  func(t *testing.T, s *mcp.Server, client io.Writer)
	}{
		{"drain", func(t *testing.T, s *mcp.Server, _ io.Writer) {
			if err := s.Drain(t.Context()); err != nil {
				t.Error(err)
			}
		}},
		{"shutdown", func(_ *testing.T, _ *mcp.Server, client io.Writer) {
			io.WriteString(client, initialize+shutdown)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				in, client := io.Pipe()
				served := make(chan error, 1)
				server := newServer(t, mcptest.Tools()...)
				go func() { served <- stdio.Serve(t.Context(), server, peer(), in, io.Discard, options) }()
				synctest.Wait()
				test.end(t, server, client)
				if err := <-served; err != nil {
					t.Error(err)
				}
			})
		})
	}
	s := newServer(t)
	if err := s.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := stdio.Serve(t.Context(), s, peer(), strings.NewReader(ping), io.Discard, options); !errors.Is(err, stdio.ErrDraining) {
		t.Errorf("a drained server served: %v", err)
	}
}

// broken fails to read and to write.
type broken struct{ err error }

func (b broken) Read([]byte) (int, error)  { return 0, b.err }
func (b broken) Write([]byte) (int, error) { return 0, b.err }

func TestServe_streamErrors(t *testing.T) {
	failure := errors.New("the disk is on fire")
	if err := stdio.Serve(t.Context(), newServer(t), peer(), broken{failure}, io.Discard, options); !errors.Is(err, failure) {
		t.Errorf("read error: %v", err)
	}
	in, client := io.Pipe()
	go io.WriteString(client, ping)
	if err := stdio.Serve(t.Context(), newServer(t), peer(), in, broken{failure}, options); !errors.Is(err, failure) {
		t.Errorf("write error: %v", err)
	}
}

func TestServe_stalledClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, client := io.Pipe()
		clientIn, out := io.Pipe()
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan error, 1)
		server := mcp.New(mcptest.New(), mcp.Options{})
		go func() { served <- stdio.Serve(ctx, server, peer(), in, out, options) }()
		io.WriteString(client, ping)
		synctest.Wait()
		cancel()
		if err := <-served; err == nil || !strings.Contains(err.Error(), "does not read") {
			t.Errorf("Serve returned %v", err)
		}
		if line, err := bufio.NewReader(clientIn).ReadString('\n'); err != nil || line != pong {
			t.Errorf("the client read %q, %v", line, err)
		}
		client.Close()
	})
}

// An output with a write deadline is interrupted, so that nothing of the connection
// remains in a server that continues.
func TestServe_stalledConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, conn := net.Pipe()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		served := make(chan error, 1)
		server := mcp.New(mcptest.New(), mcp.Options{})
		go func() { served <- stdio.Serve(ctx, server, peer(), conn, conn, options) }()
		io.WriteString(client, ping)
		synctest.Wait()
		cancel()
		if err := <-served; err == nil || !strings.Contains(err.Error(), "does not read") {
			t.Errorf("Serve returned %v", err)
		}
		if now := server.ClientCounts(); now.Connections[""] != 0 {
			t.Errorf("clients remain: %v", now)
		}
		if err := server.Drain(t.Context()); err != nil {
			t.Error(err)
		}
		client.Close()
	})
}

// slowly reads from a connection, 4 KiB each second.
func slowly(client net.Conn) {
	for {
		if _, err := io.ReadFull(client, make([]byte, 4<<10)); err != nil {
			return
		}
		time.Sleep(time.Second)
	}
}

// longResult is a tool with a result that a slow client reads for 256 seconds.
func longResult() mcptest.Tool {
	tool := mcptest.Tools()[0]
	tool.Name = "long"
	tool.Run = func(context.Context, call.Request) call.Result { return mcptest.Text(strings.Repeat("x", 1<<20)) }
	return tool
}

// A client that reads slowly has the write timeout for the whole message, and less when the
// server ends the connection.
func TestServe_slowClient(t *testing.T) {
	for name, want := range map[string]struct {
		stop bool
		took time.Duration
	}{"timeout": {false, 30 * time.Second}, "context ends": {true, 12 * time.Second}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, conn := net.Pipe()
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				server := newServer(t, longResult())
				served := make(chan error, 1)
				go func() {
					served <- stdio.Serve(ctx, server, peer(), conn, conn, stdio.Options{Grace: grace, WriteTimeout: 30 * time.Second})
				}()
				io.WriteString(client, callText("long"))
				started := time.Now()
				var reading sync.WaitGroup
				reading.Go(func() { slowly(client) })
				if want.stop {
					time.AfterFunc(10*time.Second, stop)
				}
				if err := <-served; err == nil || !strings.Contains(err.Error(), "does not read") || strings.Contains(err.Error(), "\n") {
					t.Errorf("Serve returned %v", err)
				}
				if took := time.Since(started); took != want.took {
					t.Errorf("it took %v, want %v", took, want.took)
				}
				client.Close()
				reading.Wait()
			})
		})
	}
}

// Connections share the budget. A message that is being served holds its part; one without room
// ends its connection, and a response without room is an error.
func TestServe_budget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 1 << 20
		budget := httpguard.NewBudget(size)
		server := newServer(t, append(mcptest.Tools(), longResult())...)
		connect := func(name string) (client net.Conn, served chan error) {
			client, conn := net.Pipe()
			served = make(chan error, 1)
			o := stdio.Options{Grace: grace, Budget: budget, Client: workqueue.ClientOf(nil, netip.Addr{}, name)}
			go func() {
				served <- stdio.Serve(t.Context(), server, peer(), conn, conn, o)
				conn.Close()
			}()
			return client, served
		}
		wait := func(id string) string {
			return strings.Replace(strings.Replace(callText("wait"), `"id":2`, `"id":`+id, 1), "{", "{"+strings.Repeat(" ", size/4), 1)
		}
		one, servedOne := connect("one")
		two, servedTwo := connect("two")
		io.WriteString(one, wait("1"))
		synctest.Wait()
		io.WriteString(two, callText("long"))
		if line, err := bufio.NewReader(two).ReadString('\n'); err != nil || !strings.Contains(line, `"error"`) || len(line) > 1000 {
			t.Errorf("the client got %d bytes, %v", len(line), err)
		}
		go io.Copy(io.Discard, one)
		go io.WriteString(one, wait("2")+wait("3"))
		if err := <-servedOne; !errors.Is(err, httpguard.ErrOverBudget) {
			t.Errorf("the first connection ended with %v", err)
		}
		two.Close()
		if err := <-servedTwo; err != nil {
			t.Error(err)
		}
	})
}

// The error of Check ends the connection before the message is served.
func TestServe_check(t *testing.T) {
	refused, checks := errors.New("no longer"), 0
	o := options
	o.Check = func() error {
		if checks++; checks > 1 {
			return refused
		}
		return nil
	}
	var out bytes.Buffer
	err := stdio.Serve(t.Context(), newServer(t), peer(), strings.NewReader(ping+ping+ping), &out, o)
	if !errors.Is(err, refused) || out.String() != pong {
		t.Errorf("Serve returned %v after it wrote %q", err, out.String())
	}
}
