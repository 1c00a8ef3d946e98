package mcp_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/mcp/mcptest"
)

// The calls of one session are marked alike, those of no two, and the mark is
// not the id, which would open the session.
func TestCallsAreMarkedWithTheirSession(t *testing.T) {
	marks := make(chan string, 1)
	tool := mcptest.Tools()[0]
	tool.Run = func(_ context.Context, r call.Request) call.Result {
		marks <- r.Caller.Source.Session
		return mcptest.Text("done")
	}
	s, _ := newServer(t, mcp.Options{}, tool)
	const call = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"hello"}}`
	var ids []string
	overHTTP := func() string {
		peer := mcp.Peer{Principal: identity.Anonymous(), Headers: http.Header{}}
		id := openSession(t.Context(), s, peer)
		ids = append(ids, id)
		s.Exchange(t.Context(), []byte(call), mcp.Exchange{Peer: peer, Session: id})
		first := <-marks
		s.Exchange(t.Context(), []byte(call), mcp.Exchange{Peer: peer, Session: id})
		if again := <-marks; again != first {
			t.Errorf("two calls of a session are marked %q and %q", first, again)
		}
		return first
	}
	connected := func() string {
		var heard recorder
		conn := s.Connect(mcp.Peer{Principal: identity.Anonymous()}, heard.send)
		defer conn.Close()
		conn.Receive(t.Context(), []byte(ableClient), nil)
		conn.Receive(t.Context(), []byte(ready), nil)
		conn.Receive(t.Context(), []byte(call), nil)
		return <-marks
	}
	taken := map[string]bool{"": true}
	for _, mark := range []string{overHTTP(), overHTTP(), connected(), connected()} {
		if taken[mark] || mark == ids[0] || mark == ids[1] {
			t.Errorf("a session is marked %q", mark)
		}
		taken[mark] = true
	}
	s.Exchange(t.Context(), request(1, "tools/call", `"name":"hello"`), exchange("tools/call", "hello"))
	if mark := <-marks; mark != "" {
		t.Errorf("a call without a session is marked %q", mark)
	}
}
