package upstream

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/internal/base/jsonguard"
)

// crossing returns a call whose request and response pass the wire, the latter with a text
// of so many bytes.
func crossing(tb testing.TB, size int) func() {
	w := newWire(jsonguard.Limits{Bytes: defaultMessage, Depth: maxDepth, Tokens: maxTokens, Halves: true}, Asks{}, func(string, string) {})
	response := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":%q}]}}`, strings.Repeat("x", size))
	stub := []byte(stubs[MethodTool])
	return func() {
		c := newCall(1, Request{Method: MethodTool}, nil, func(error) {})
		if err := w.open(c); err != nil {
			tb.Fatal(err)
		}
		if on, _ := w.outgoing([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":` + c.token + `},"name":"add","arguments":{"a":1,"b":2}}}`)); on.of != c {
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

func BenchmarkWire(b *testing.B) {
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

func TestACallStaysWithinTheAllocationsOfTheWire(t *testing.T) {
	const budget = 95
	small, large := testing.AllocsPerRun(200, crossing(t, 100)), testing.AllocsPerRun(50, crossing(t, 1_000_000))
	if small > budget || large > budget {
		t.Errorf("a call allocates %.0f times, and %.0f with a result of a megabyte: more than %d", small, large, budget)
	}
}
