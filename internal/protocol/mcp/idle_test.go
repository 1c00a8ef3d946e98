package mcp_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/mcp/mcptest"
)

// manySessions are as many as a server keeps.
const manySessions = 10_000

// BenchmarkIdleSessions reports what a legacy session costs that does nothing:
// one that was opened and listed everything, and one that also listens on a
// stream. What the transport holds for a stream comes on top.
func BenchmarkIdleSessions(b *testing.B) {
	for _, test := range []struct {
		name string
		then func(testing.TB, *mcp.Server, string)
	}{{"alone", func(testing.TB, *mcp.Server, string) {}}, {"listening", listening}} {
		b.Run(test.name, func(b *testing.B) {
			for b.Loop() {
				b.ReportMetric(idleCost(b, manySessions, test.then), "B/session")
			}
		})
	}
}

// TestAnIdleSessionIsSmall leaves the rest of 32 KiB to the connection.
func TestAnIdleSessionIsSmall(t *testing.T) {
	if cost := idleCost(t, 1000, listening); cost > 8<<10 {
		t.Errorf("an idle session costs %.0f bytes", cost)
	}
}

// listening opens the stream of a session.
func listening(tb testing.TB, s *mcp.Server, id string) {
	stream, refusal := s.OpenStream(tb.Context(), mcp.Peer{Principal: identity.Anonymous()}, id)
	if refusal != mcp.Served {
		tb.Fatal(refusal)
	}
	stream.Take()
	tb.Cleanup(stream.Close)
}

// idleCost returns the bytes that each of so many sessions costs.
func idleCost(tb testing.TB, sessions int, then func(testing.TB, *mcp.Server, string)) float64 {
	peer := mcp.Peer{Principal: identity.Anonymous()}
	s := mcp.New(mcptest.New(mcptest.Tools()...), mcp.Options{})
	tb.Cleanup(func() { _ = s.Drain(context.Background()) })
	before := heap()
	for range sessions {
		id := openSession(tb.Context(), s, peer)
		x := mcp.Exchange{Peer: peer, Session: id}
		s.Exchange(tb.Context(), []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`), x)
		s.Exchange(tb.Context(), []byte(`{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"info"}}`), x)
		then(tb, s, id)
	}
	cost := float64(heap()-before) / float64(sessions)
	runtime.KeepAlive(s)
	return cost
}

// heap returns the bytes that are in use.
func heap() int64 {
	var m runtime.MemStats
	for range 2 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
