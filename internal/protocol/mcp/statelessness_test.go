package mcp_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/mcp/mcptest"
)

// connect returns the receive function of a new connection that sends to heard,
// and a function that ends it.
func connect(t *testing.T, s *mcp.Server, received *recorder) (receive func(text string), end func()) {
	t.Helper()
	conn := s.Connect(mcp.Peer{Principal: identity.Anonymous()}, received.send)
	receive = func(text string) {
		conn.Receive(t.Context(), []byte(text), nil)
		synctest.Wait()
	}
	return receive, func() { conn.End(); conn.Close() }
}

// TestModern_stateless: a modern request does not depend on an earlier
// handshake, log level or capability on the same connection.
func TestModern_stateless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b := newServer(t, mcp.Options{Ping: -1}, append(mcptest.Tools(), mcptest.InputTools()...)...)
		b.PublishItems(mcptest.Items()...)
		requests := []string{
			string(request(11, "tools/list", "")), string(request(12, "resources/list", "")), string(request(13, "prompts/list", "")),
			strings.Replace(string(request(14, "tools/call", `"name":"steps"`)), `"_meta":{`, `"_meta":{"mcpd/agent":{"request_id":"r"},`, 1),
			strings.Replace(string(request(15, "tools/call", `"name":"whoami"`)), `"_meta":{`, `"_meta":{"mcpd/agent":{"request_id":"r"},`, 1),
			string(request(16, "tools/call", `"name":"ask"`)),
		}
		var fresh, used recorder
		receive, end := connect(t, s, &fresh)
		for _, text := range requests {
			receive(text)
		}
		end()
		receive, end = connect(t, s, &used)
		receive(strings.Replace(ableClient, `"old"`, `"insider"`, 1))
		receive(ready)
		receive(`{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"debug"}}`)
		receive(`{"jsonrpc":"2.0","id":3,"method":"tools/list"}`)
		before := len(used.all())
		for _, text := range requests {
			receive(text)
		}
		end()
		if got, want := strings.Join(used.all()[before:], "\n"), strings.Join(fresh.all(), "\n"); got != want || len(fresh.all()) != len(requests) {
			t.Errorf("replies:\n%s\non a new connection:\n%s", got, want)
		}
	})
}

// TestModern_notificationsStayOnStream: subscriptions and other calls do not
// receive the notifications of a call.
func TestModern_notificationsStayOnStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newServer(t, mcp.Options{}, mcptest.Tools()...)
		var listening, calling, silent recorder
		listen := exchange("subscriptions/listen", "")
		listen.Emit = listening.send
		go s.Exchange(t.Context(), request(1, "subscriptions/listen", `"notifications":{"toolsListChanged":true}`), listen)
		synctest.Wait()
		for _, c := range []struct {
			received *recorder
			text     string
		}{
			{&calling, strings.Replace(string(request(2, "tools/call", `"name":"steps"`)), `"_meta":{`,
				`"_meta":{"progressToken":1,"io.modelcontextprotocol/logLevel":"debug",`, 1)},
			{&silent, string(request(3, "tools/call", `"name":"steps"`))},
		} {
			x := exchange("tools/call", "steps")
			x.Emit = c.received.send
			s.Exchange(t.Context(), []byte(c.text), x)
		}
		if len(listening.all()) != 1 || len(calling.all()) != 5 || len(silent.all()) != 0 {
			t.Errorf("the subscription received %q, the call %q, the other %q", listening.all(), calling.all(), silent.all())
		}
	})
}

func TestModern_serverCancelsSubscriptionsOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newServer(t, mcp.Options{}, append(mcptest.Tools(), mcptest.InputTools()...)...)
		var received recorder
		receive, end := connect(t, s, &received)
		const lists = `"notifications":{"toolsListChanged":true}`
		receive(string(request(10, "subscriptions/listen", lists)))
		receive(string(request(11, "subscriptions/listen", lists)))
		receive(string(request(12, "tools/call", `"name":"wait"`)))
		receive(string(request(13, "tools/call", `"name":"ask"`)))
		receive(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":10}}`)
		receive(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":12}}`)
		drained := make(chan error, 1)
		go func() { drained <- s.Drain(t.Context()) }()
		synctest.Wait()
		end()
		if err := <-drained; err != nil {
			t.Error(err)
		}
		var cancelled []string
		for _, frame := range received.all() {
			if strings.Contains(frame, "notifications/cancelled") {
				cancelled = append(cancelled, frame)
			}
		}
		if len(cancelled) != 1 || !strings.Contains(cancelled[0], `"requestId":11`) {
			t.Errorf("the server cancelled %q", cancelled)
		}
	})
}

// Calls of one session share a public id, calls of different sessions do not.
// The public id is not the session id, which would give access.
func TestSession_publicID(t *testing.T) {
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
			t.Errorf("two calls of a session have the public ids %q and %q", first, again)
		}
		return first
	}
	connected := func() string {
		var received recorder
		conn := s.Connect(mcp.Peer{Principal: identity.Anonymous()}, received.send)
		defer conn.Close()
		conn.Receive(t.Context(), []byte(ableClient), nil)
		conn.Receive(t.Context(), []byte(ready), nil)
		conn.Receive(t.Context(), []byte(call), nil)
		return <-marks
	}
	taken := map[string]bool{"": true}
	for _, mark := range []string{overHTTP(), overHTTP(), connected(), connected()} {
		if taken[mark] || mark == ids[0] || mark == ids[1] {
			t.Errorf("the session has the public id %q", mark)
		}
		taken[mark] = true
	}
	s.Exchange(t.Context(), request(1, "tools/call", `"name":"hello"`), exchange("tools/call", "hello"))
	if mark := <-marks; mark != "" {
		t.Errorf("a call without a session has the public id %q", mark)
	}
}

func TestInitialize_revision(t *testing.T) {
	s, _ := newServer(t, mcp.Options{}, mcptest.Tools()...)
	for asked, want := range map[string]string{
		"2024-11-05": "2024-11-05", "2025-03-26": "2025-03-26", "2025-06-18": "2025-06-18", "2025-11-25": "2025-11-25",
		"2026-07-28": "2025-11-25", "1.0": "2025-11-25", "": "2025-11-25", "9999-12-31": "2025-11-25",
	} {
		text := strings.Replace(ableClient, `"2025-11-25"`, `"`+asked+`"`, 1)
		reply := s.Exchange(t.Context(), []byte(text), mcp.Exchange{Peer: mcp.Peer{Principal: identity.Anonymous()}})
		if !strings.Contains(reply.Frame.String(), `"protocolVersion":"`+want+`"`) {
			t.Errorf("reply to %q: %s", asked, reply.Frame)
		}
	}
}

// TestSession_idCharacters: the id travels in a header and cannot be guessed.
func TestSession_idCharacters(t *testing.T) {
	s, _ := newServer(t, mcp.Options{}, mcptest.Tools()...)
	known := map[string]bool{}
	for range 100 {
		id := openSession(t.Context(), s, mcp.Peer{Principal: identity.Anonymous()})
		if len(id) < 22 || known[id] || strings.ContainsFunc(id, func(r rune) bool { return r < 0x21 || r > 0x7e }) {
			t.Fatalf("id = %q", id)
		}
		known[id] = true
	}
}
