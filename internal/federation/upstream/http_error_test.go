package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpd/mcpd/internal/federation/upstream"
)

// broken is a server that answers calls of one tool incorrectly, and everything else correctly,
// until end is called.
func broken(t *testing.T, answer func(w http.ResponseWriter, r *http.Request, id string)) (_ upstream.Target, end func()) {
	t.Helper()
	ended := make(chan struct{})
	good := forgets(t, lab(ended))
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return good }, nil)
	url := web(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct{ Name string }
		}
		if json.Unmarshal(text, &m) == nil && m.Method == "tools/call" && m.Params.Name == "broken" {
			answer(w, r, string(m.ID))
			return
		}
		r.Body = io.NopCloser(strings.NewReader(string(text)))
		h.ServeHTTP(w, r)
	}))
	return upstream.Target{Name: "broken", URL: url, MaxMessage: 64 << 10}, func() { close(ended) }
}

// hangs waits until the client has disconnected, which is noticed after its request has been
// read.
func hangs(r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

func stream(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
}

// faults are the ways in which a response can fail, with part of the error.
var faults = map[string]struct {
	word   string
	answer func(w http.ResponseWriter, r *http.Request, id string)
}{
	"a failure of the server": {"Internal Server Error", func(w http.ResponseWriter, _ *http.Request, _ string) { http.Error(w, "oops", 500) }},
	"no headers":              {"enough", func(_ http.ResponseWriter, r *http.Request, _ string) { hangs(r) }},
	"no body": {"enough", func(w http.ResponseWriter, r *http.Request, _ string) {
		w.Header().Set("Content-Type", "application/json")
		w.(http.Flusher).Flush()
		hangs(r)
	}},
	"an answer that is cut": {"EOF", func(w http.ResponseWriter, _ *http.Request, _ string) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
			_ = conn.Close()
		}
	}},
	"a connection that is reset": {"", func(w http.ResponseWriter, _ *http.Request, _ string) {
		if conn, _, err := w.(http.Hijacker).Hijack(); err == nil {
			_ = conn.(*net.TCPConn).SetLinger(0)
			_ = conn.Close()
		}
	}},
	"garbage":                  {"is rejected", whole("<html>")},
	"nothing":                  {"an empty response", whole("")},
	"deep nesting":             {"is rejected", whole(strings.Repeat("[", 1000) + strings.Repeat("]", 1000))},
	"a name twice":             {"is rejected", whole(`{"jsonrpc":"2.0","id":1,"id":2,"result":{}}`)},
	"invalid JSON-RPC message": {"invalid JSON-RPC message", whole(`{"jsonrpc":"2.0"}`)},
	"a long answer": {"longer than", func(w http.ResponseWriter, _ *http.Request, _ string) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"text":%q}`, strings.Repeat("x", 100<<10))
	}},
	"the answer of another call": {"enough", func(w http.ResponseWriter, r *http.Request, id string) {
		stream(w)
		fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s0001,\"result\":{}}\n\n", id)
		w.(http.Flusher).Flush()
		hangs(r)
	}},
	"events without an end": {"enough", func(w http.ResponseWriter, r *http.Request, _ string) {
		stream(w)
		for r.Context().Err() == nil {
			fmt.Fprint(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\n")
		}
	}},
	"an event without an end": {"too long", func(w http.ResponseWriter, r *http.Request, _ string) {
		stream(w)
		for r.Context().Err() == nil {
			if _, err := fmt.Fprint(w, "data: "+strings.Repeat("x", 1<<10)); err != nil {
				return
			}
		}
	}},
	"an event that may not pass": {"is rejected", func(w http.ResponseWriter, r *http.Request, _ string) {
		stream(w)
		fmt.Fprint(w, "data: {\"a\":1e999}\n\n")
		w.(http.Flusher).Flush()
		hangs(r)
	}},
	"a slow drip": {"enough", func(w http.ResponseWriter, r *http.Request, _ string) {
		stream(w)
		for r.Context().Err() == nil {
			fmt.Fprint(w, "d")
			w.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
			case <-time.After(time.Millisecond):
			}
		}
	}},
}

func whole(text string) func(http.ResponseWriter, *http.Request, string) {
	return func(w http.ResponseWriter, _ *http.Request, _ string) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, text)
	}
}

func TestConn_failedCall(t *testing.T) {
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			target, end := broken(t, fault.answer)
			defer end()
			l, _ := dial(t, target)
			other := l.Start(t.Context(), upstream.Request{Method: upstream.MethodTool, Name: "waits"}, nil)
			for range 3 {
				c := l.Start(t.Context(), upstream.Request{Method: upstream.MethodTool, Name: "broken"}, nil)
				if fault.word == "enough" {
					c.Cancel(errors.New("enough"))
				}
				reply, err := c.Next(t.Context())
				if err == nil || !strings.Contains(err.Error(), fault.word) {
					t.Errorf("the call ends with %s, %v, want %q", reply.Result, err, fault.word)
				}
				if got := call(t, l, "echo", `{}`); got.Result == nil {
					t.Fatalf("another call ends with %+v", got)
				}
			}
			if other.Ended() {
				_, err := other.Next(t.Context())
				t.Errorf("a suspended call ended with %v", err)
			}
			other.Cancel(context.Canceled)
		})
	}
}

func TestDial_errors(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refusing := "http://" + l.Addr().String()
	_ = l.Close()
	for name, target := range map[string]upstream.Target{
		"refuses":    {Name: "x", URL: refusing},
		"garbage":    {Name: "x", URL: web(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }))},
		"hangs":      {Name: "x", URL: web(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { hangs(r) }))},
		"floods":     {Name: "x", URL: web(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { faults["events without an end"].answer(w, r, "") }))},
		"redirects":  {Name: "x", URL: web(t, http.RedirectHandler("http://127.0.0.1:1/", http.StatusTemporaryRedirect))},
		"no program": {Name: "x", Command: []string{"/no/such/program"}},
		"crash":      program(t, "crash"),
		"mute":       program(t, "mute"),
		"deaf":       program(t, "deaf"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, _ := options(t)
			ctx, cancel := context.WithCancel(t.Context())
			if name == "hangs" || name == "mute" || name == "deaf" {
				cancel() // the caller gives up
			}
			defer cancel()
			if l, err := upstream.Dial(ctx, target, o); err == nil {
				t.Errorf("it is reached: %v", l.Close())
			}
		})
	}
}

func TestStdioServer_exitEndsCalls(t *testing.T) {
	l, _ := dial(t, program(t, "lab"))
	c := l.Start(t.Context(), upstream.Request{Method: upstream.MethodTool, Name: "waits"}, nil)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Next(t.Context()); !errors.Is(err, upstream.ErrClosed) {
		t.Errorf("the call ends with %v", err)
	}
	<-l.Done()
	if _, err := l.Start(t.Context(), upstream.Request{Method: upstream.MethodTool, Name: "echo"}, nil).Next(t.Context()); err == nil {
		t.Error("a call can be made")
	}
}
