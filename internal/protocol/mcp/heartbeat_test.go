package mcp_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/mcp/mcptest"
)

const interval = time.Minute

// pinged returns the number of pings among the frames.
func pinged(frames []string) (n int) {
	for _, f := range frames {
		if strings.Contains(f, `"method":"ping"`) {
			n++
		}
	}
	return n
}

// idle connects a legacy client that sends nothing more.
func idle(t *testing.T, s *mcp.Server, received *recorder) *mcp.Conn {
	t.Helper()
	conn := s.Connect(mcp.Peer{Principal: identity.Anonymous()}, received.send)
	conn.Receive(t.Context(), []byte(ableClient), nil)
	return conn
}

func isDone(c *mcp.Conn) bool {
	synctest.Wait()
	select {
	case <-c.Done():
		return true
	default:
		return false
	}
}

func TestHeartbeat_idleClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newServer(t, mcp.Options{Ping: interval}, mcptest.Tools()...)
		var received recorder
		conn := idle(t, s, &received)
		defer conn.Close()
		time.Sleep(3*interval - time.Second)
		if isDone(conn) || pinged(received.all()) != 2 {
			t.Fatalf("got %d pings", pinged(received.all()))
		}
		time.Sleep(2 * time.Second)
		if !isDone(conn) {
			t.Error("the connection is still open")
		}
	})
}

func TestHeartbeat_activeClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newServer(t, mcp.Options{Ping: interval}, mcptest.Tools()...)
		var received recorder
		conn := idle(t, s, &received)
		defer conn.Close()
		for range 10 {
			time.Sleep(2 * interval)
			conn.Receive(t.Context(), []byte(`{"jsonrpc":"2.0","id":"any","result":{}}`), nil)
		}
		if isDone(conn) {
			t.Error("the connection ended")
		}
	})
}

func TestHeartbeat_runningCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newServer(t, mcp.Options{Ping: interval}, mcptest.Tools()...)
		var received recorder
		conn := idle(t, s, &received)
		conn.Receive(t.Context(), []byte(ready), nil)
		conn.Receive(t.Context(), legacyCall(2, "wait"), nil)
		time.Sleep(10 * interval)
		if isDone(conn) || pinged(received.all()) > 0 {
			t.Errorf("got %d pings", pinged(received.all()))
		}
		conn.Receive(t.Context(), []byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`), nil)
		conn.Close()
	})
}

func TestHeartbeat_disabled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newServer(t, mcp.Options{Ping: interval}, mcptest.Tools()...)
		patient, _ := newServer(t, mcp.Options{Ping: -1}, mcptest.Tools()...)
		var received recorder
		modern := s.Connect(mcp.Peer{Principal: identity.Anonymous()}, received.send)
		modern.Receive(t.Context(), request(1, "tools/list", ""), nil)
		legacy := idle(t, patient, &received)
		time.Sleep(10 * interval)
		if isDone(modern) || isDone(legacy) || pinged(received.all()) > 0 {
			t.Errorf("got %d pings", pinged(received.all()))
		}
		modern.Close()
		legacy.Close()
	})
}

func TestStream_endsWithoutPingResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newServer(t, mcp.Options{Ping: interval}, mcptest.Tools()...)
		peer := mcp.Peer{Principal: identity.Anonymous()}
		id := openSession(t.Context(), s, peer)
		stream, _ := s.OpenStream(t.Context(), peer, id)
		defer stream.Close()
		next := func() (frames []string, ok bool) {
			<-stream.Wake()
			taken, ok := stream.Take()
			for _, f := range taken {
				frames = append(frames, f.String())
			}
			return frames, ok
		}
		next()
		for i := range 5 {
			if frames, ok := next(); !ok || pinged(frames) != 1 {
				t.Fatalf("ping %d: %q, %v", i, frames, ok)
			}
			s.Exchange(t.Context(), fmt.Appendf(nil, `{"jsonrpc":"2.0","id":"p%d","result":{}}`, i), mcp.Exchange{Peer: peer, Session: id})
		}
		for range 2 {
			if frames, ok := next(); !ok || pinged(frames) != 1 {
				t.Fatalf("stream has %q, %v", frames, ok)
			}
		}
		if frames, ok := next(); ok || len(frames) > 0 {
			t.Errorf("the stream continues with %q", frames)
		}
		if _, ok := s.SessionVersion(peer, id); !ok {
			t.Error("the session ended with its stream")
		}
	})
}

// TestBatch_responses uses a revision with batches.
func TestBatch_responses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newServer(t, mcp.Options{}, mcptest.InputTools()...)
		var received recorder
		conn := s.Connect(mcp.Peer{Principal: identity.Anonymous()}, received.send)
		defer conn.Close()
		conn.Receive(t.Context(), []byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{"roots":{}}}}`), nil)
		conn.Receive(t.Context(), []byte(ready), nil)
		conn.Receive(t.Context(), []byte(`[{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"ask_roots"}},{"jsonrpc":"2.0","id":3,"method":"ping"}]`), nil)
		synctest.Wait()
		a := pendingAsk{t: t, heard: recorder{frames: received.all()[1:]}}
		conn.Receive(t.Context(), fmt.Appendf(nil, `[{"jsonrpc":"2.0","id":%q,"result":{"roots":[]}}]`, a.id(0)), nil)
		synctest.Wait()
		got := received.all()
		if last := got[len(got)-1]; !strings.HasPrefix(last, `[{"jsonrpc":"2.0","id":2,"result"`) || !strings.Contains(last, `"id":3,"result"`) {
			t.Errorf("reply = %s", last)
		}
	})
}

// manySessions is the maximum number of sessions of a server.
const manySessions = 10_000

// BenchmarkIdleSessions reports the memory of an idle legacy session that
// listed everything, and of one that also has an open stream. The memory that a
// transport needs for a stream is not included.
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

// TestSession_idleSize leaves the rest of 32 KiB to the connection.
func TestSession_idleSize(t *testing.T) {
	if cost := idleCost(t, 1000, listening); cost > 8<<10 {
		t.Errorf("an idle session takes %.0f bytes", cost)
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

// idleCost returns the bytes per session.
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

// heap returns the bytes in use.
func heap() int64 {
	var m runtime.MemStats
	for range 2 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// TestNotification_noResponse: on a connection and in a batch, a notification
// gets no response, even with invalid params.
func TestNotification_noResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newServer(t, mcp.Options{Ping: -1}, mcptest.Tools()...)
		var received recorder
		receive, end := connect(t, s, &received)
		defer end()
		receive(strings.Replace(ableClient, "2025-11-25", "2025-03-26", 1))
		for _, text := range []string{
			ready,
			`{"jsonrpc":"2.0","method":"notifications/nobody/knows","params":{}}`,
			`{"jsonrpc":"2.0","method":"tools/list"}`,
			`{"jsonrpc":"2.0","method":"notifications/cancelled"}`,
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}`,
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":["1"]}`,
			`[{"jsonrpc":"2.0","method":"notifications/cancelled","params":["1"]}]`,
		} {
			if receive(text); len(received.all()) != 1 {
				t.Fatalf("%s: got response %s", text, received.all()[1])
			}
		}
	})
}

// TestNotification_rejectedOverHTTP: over HTTP the response carries a status.
func TestNotification_rejectedOverHTTP(t *testing.T) {
	s, _ := newServer(t, mcp.Options{}, mcptest.Tools()...)
	reply := s.Exchange(t.Context(), []byte(`{"jsonrpc":"2.0","method":"notifications/x","params":[]}`), exchange("notifications/x", ""))
	if got := reply.Frame.String(); reply.Refusal != mcp.Malformed || strings.Contains(got, `"id"`) {
		t.Errorf("reply = %s, refusal %d", got, reply.Refusal)
	}
}
