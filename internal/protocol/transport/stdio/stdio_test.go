package stdio_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/mcp/mcptest"
	"github.com/mcpd/mcpd/internal/protocol/transport/stdio"
)

// grace is the time for calls after the input ends.
const grace = 10 * time.Second

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
			if err := stdio.Serve(t.Context(), newServer(t), peer(), strings.NewReader(test.in), &out, grace); err != nil {
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
			served <- stdio.Serve(t.Context(), server, peer(), strings.NewReader(callText("hello")), &out, grace)
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
				go func() { served <- stdio.Serve(t.Context(), server, peer(), in, io.Discard, grace) }()
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
		go func() { served <- stdio.Serve(ctx, server, peer(), in, &out, grace) }()
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
				go func() { served <- stdio.Serve(t.Context(), server, peer(), in, io.Discard, grace) }()
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
	if err := stdio.Serve(t.Context(), s, peer(), strings.NewReader(ping), io.Discard, grace); !errors.Is(err, stdio.ErrDraining) {
		t.Errorf("a drained server served: %v", err)
	}
}

// broken fails to read and to write.
type broken struct{ err error }

func (b broken) Read([]byte) (int, error)  { return 0, b.err }
func (b broken) Write([]byte) (int, error) { return 0, b.err }

func TestServe_streamErrors(t *testing.T) {
	failure := errors.New("the disk is on fire")
	if err := stdio.Serve(t.Context(), newServer(t), peer(), broken{failure}, io.Discard, grace); !errors.Is(err, failure) {
		t.Errorf("read error: %v", err)
	}
	in, client := io.Pipe()
	go io.WriteString(client, ping)
	if err := stdio.Serve(t.Context(), newServer(t), peer(), in, broken{failure}, grace); !errors.Is(err, failure) {
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
		go func() { served <- stdio.Serve(ctx, server, peer(), in, out, grace) }()
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
		go func() { served <- stdio.Serve(ctx, server, peer(), conn, conn, grace) }()
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
