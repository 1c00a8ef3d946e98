package upstream

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpd/mcpd/internal/base/jsonguard"
	"github.com/mcpd/mcpd/internal/language/grant"
)

// crossing returns a call with a request and a response of the given size that pass the filter.
func crossing(tb testing.TB, size int) func() {
	w := newMessageFilter(jsonguard.Limits{Bytes: defaultMessage, Depth: maxDepth, Tokens: maxTokens, Halves: true}, InputPolicy{}, func(string, string) {})
	response := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":%q}]}}`, strings.Repeat("x", size))
	stub := []byte(placeholderResults[MethodTool])
	return func() {
		c := newCall(1, Request{Method: MethodTool}, nil, func(error) {})
		if err := w.open(c); err != nil {
			tb.Fatal(err)
		}
		if on, _ := w.outgoing([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":` + c.token + `},"name":"add","arguments":{"a":1,"b":2}}}`)); on.call != c {
			tb.Fatal("the request is that of another call")
		}
		seen, err := w.incoming(response, &stream{})
		if err != nil || !bytes.Contains(seen, stub) {
			tb.Fatalf("the client library sees %s, %v", seen, err)
		}
		w.close(c)
		w.running.Done()
		c.end(nil)
		if reply, err := c.Next(tb.Context()); err != nil || len(reply.Result) < size {
			tb.Fatalf("the result has %d bytes, %v", len(reply.Result), err)
		}
	}
}

func BenchmarkMessageFilter(b *testing.B) {
	for _, size := range []int{100, 10_000, 1_000_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			call := crossing(b, size)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				call()
			}
		})
	}
}

func TestMessageFilter_allocations(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: it counts allocations, and other tests make such calls")
	}
	const budget = 95
	small, large := testing.AllocsPerRun(200, crossing(t, 100)), testing.AllocsPerRun(50, crossing(t, 1_000_000))
	if small > budget || large > budget {
		t.Errorf("a call allocates %.0f times, and %.0f with a result of a megabyte: more than %d", small, large, budget)
	}
}

// The client library detects messages by the event name without blanks, and with HTTP+SSE
// ignores the name.
func TestSSEFilter_eventNames(t *testing.T) {
	const twice = `{"a":1,"a":1}` // rejected by the guard
	const refused, none = "the server sent a message that is rejected", "<nil>"
	for _, row := range []struct {
		name, stream string
		streamable   bool
		passed, err  string
	}{
		{"without a name", "data: " + twice + "\n\n", true, "", refused},
		{"an empty name", "event:\ndata: " + twice + "\n\n", true, "", refused},
		{"a name of a blank", "event:  \ndata: " + twice + "\n\n", true, "", refused},
		{"a name behind blanks", "event: \t message \ndata: " + twice + "\n\n", true, "", refused},
		{"the last of two names", "event: other\nevent:\ndata: " + twice + "\n\n", true, "", refused},
		{"another name", "event: other\nid: 7\ndata: " + twice + "\n\n", true, "id: 7\n\n", none},
		{"another name over HTTP with SSE", "event: other\ndata: " + twice + "\n\n", false, "", none},
		{"where to post to", "event: endpoint\ndata: /messages\n\n", false, "event: endpoint\ndata: /messages\n\n", none},
		{"where to post to, twice", "event: endpoint\ndata: /messages\n\nevent: endpoint\ndata: " + twice + "\n\n", false, "event: endpoint\ndata: /messages\n\n", none},
		{"where to post to over Streamable HTTP", "event: endpoint\ndata: /messages\n\n", true, "", none},
	} {
		t.Run(row.name, func(t *testing.T) {
			w, c := running()
			passed, err := io.ReadAll(newSSEFilter(io.NopCloser(strings.NewReader(row.stream)), w, &stream{call: c}, row.streamable))
			if string(passed) != row.passed || !strings.HasPrefix(fmt.Sprint(err), row.err) {
				t.Errorf("%q passes, %v", passed, err)
			}
		})
	}
}

func TestPool_hangingServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const hanging = 650
		g := make(dialSemaphore, maxDials)
		began := time.Now()
		for range hanging {
			go func() { _ = g.acquire(t.Context()) }() // and never releases it
		}
		synctest.Wait()
		g.acquire(t.Context())()
		if waited, most := time.Since(began), (hanging+maxDials-1)/maxDials*maxDialHold; waited > most {
			t.Errorf("one that does well waits for %s, and %s would do", waited, most)
		}
		time.Sleep(time.Minute)
	})
}

func TestPool_maxDials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := make(dialSemaphore, maxDials)
		var within atomic.Int64
		var all sync.WaitGroup
		for range 500 {
			all.Go(func() {
				defer g.acquire(t.Context())()
				if n := within.Add(1); n > maxDials {
					t.Errorf("%d concurrent dials", n)
				}
				time.Sleep(maxDialHold / 2)
				within.Add(-1)
			})
		}
		all.Wait()
	})
}

// Both unsolicited messages and empty lines are throttled.
func TestMessageFilter_throttle(t *testing.T) {
	for name, said := range map[string]string{
		"ends of the stream": "data: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n\n",
		"notifications":      "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\n",
		"answers to nothing": "data: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n\n",
		"events of others":   "event: ping\ndata: {}\n\n",
		"comments":           ": hush\n\n",
		"blank lines":        "\n",
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newMessageFilter(jsonguard.Limits{Bytes: 1 << 20, Depth: maxDepth, Tokens: maxTokens}, InputPolicy{}, func(string, string) {})
			w.ready.Store(true)
			began := time.Now()
			stream := newSSEFilter(io.NopCloser(strings.NewReader(strings.Repeat(said, 2*throttleBurst))), w, &stream{isListen: name == "ends of the stream"}, true)
			if _, err := io.Copy(io.Discard, stream); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if took := time.Since(began); took < throttleBurst*throttleInterval*99/100 {
				t.Errorf("%d %s received within %s", 2*throttleBurst, name, took)
			}
		})
	}
}

// HTTP handlers stand for servers without a network.

// playedBy returns the options of a client of such a server.
func playedBy(server http.RoundTripper) Options {
	return Options{Version: "test", Logger: slog.New(slog.DiscardHandler), Transport: func(grant.HTTP) http.RoundTripper { return server }}
}

// sentBy returns the message of a request, and its text, if any.
func sentBy(r *http.Request) (m message, text []byte, err error) {
	if r.Method != http.MethodPost {
		return m, nil, nil
	}
	body, err := r.GetBody()
	if err != nil {
		return m, nil, err
	}
	if text, err = io.ReadAll(body); err != nil {
		return m, nil, err
	}
	m, err = parse(text)
	return m, text, err
}

// given returns a response that is as long as its body.
func given(r *http.Request, status int, kind string, body io.Reader) *http.Response {
	closer, ok := body.(io.ReadCloser)
	if !ok {
		closer = io.NopCloser(body)
	}
	return &http.Response{StatusCode: status, Request: r, Header: http.Header{"Content-Type": {kind}}, ContentLength: -1, Body: closer}
}
