package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/mcp/mcptest"
)

const ableClient = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{},"sampling":{},"roots":{}},"clientInfo":{"name":"old","version":"2"}}}`

// ready ends the handshake that initialize starts.
const ready = `{"jsonrpc":"2.0","method":"notifications/initialized"}`

// openSession opens an HTTP session with a complete handshake.
func openSession(ctx context.Context, s *mcp.Server, p mcp.Peer) (id string) {
	id = s.Exchange(ctx, []byte(ableClient), mcp.Exchange{Peer: p}).Session
	s.Exchange(ctx, []byte(ready), mcp.Exchange{Peer: p, Session: id})
	return id
}

// legacyCall returns a tool call on a session.
func legacyCall(id int, tool string) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q}}`, id, tool)
}

// pendingAsk is a call of a legacy HTTP client that waits for its client.
type pendingAsk struct {
	t       *testing.T
	server  *mcp.Server
	session string
	heard   recorder
	done    chan mcp.Reply
}

// ask opens a session and calls a tool of [mcptest.InputTools].
func ask(t *testing.T, s *mcp.Server, ctx context.Context, tool string) *pendingAsk {
	t.Helper()
	a := &pendingAsk{t: t, server: s, done: make(chan mcp.Reply, 1)}
	a.session = openSession(ctx, s, mcp.Peer{Principal: identity.Anonymous()})
	go func() {
		a.done <- s.Exchange(ctx, legacyCall(2, tool), mcp.Exchange{
			Peer: mcp.Peer{Principal: identity.Anonymous()}, Session: a.session, Emit: a.heard.send,
		})
	}()
	synctest.Wait()
	return a
}

// id returns the id of the nth request to the client.
func (a *pendingAsk) id(n int) string {
	var m struct{ ID string }
	if err := json.Unmarshal([]byte(a.heard.all()[n]), &m); err != nil {
		a.t.Fatal(err)
	}
	return m.ID
}

// answer sends the response "accept" on any session.
func (a *pendingAsk) answer(session, id string) {
	a.server.Exchange(a.t.Context(), fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%q,"result":{"action":"accept"}}`, id),
		mcp.Exchange{Peer: mcp.Peer{Principal: identity.Anonymous()}, Session: session})
	synctest.Wait()
}

// outcome returns the response to the call; it fails if there is none yet.
func (a *pendingAsk) outcome() string {
	a.t.Helper()
	synctest.Wait()
	select {
	case reply := <-a.done:
		return reply.Frame.String()
	default:
		a.t.Fatal("the call has not ended")
		return ""
	}
}

func TestAsk_responseOfOtherSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newServer(t, mcp.Options{}, mcptest.InputTools()...)
		mine, other := ask(t, s, t.Context(), "ask"), ask(t, s, t.Context(), "ask")
		mine.answer(other.session, mine.id(0))
		mine.answer("", mine.id(0))
		if len(mine.done) != 0 {
			t.Fatal("a response of another client was accepted")
		}
		mine.answer(mine.session, mine.id(0))
		if got := mine.outcome(); !strings.Contains(got, "accept") {
			t.Errorf("outcome = %s", got)
		}
		other.answer(other.session, other.id(0))
		other.outcome()
	})
}

func TestAsk_timeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tool := mcptest.InputTools()[0]
		run := tool.Run
		tool.Run = func(ctx context.Context, r call.Request) call.Result {
			response := run(ctx, r)
			response.Ask.Wait = time.Minute
			return response
		}
		s, _ := newServer(t, mcp.Options{}, tool)
		a := ask(t, s, t.Context(), "ask")
		time.Sleep(59 * time.Second)
		if synctest.Wait(); len(a.done) != 0 {
			t.Fatal("the call did not wait")
		}
		time.Sleep(2 * time.Second)
		if got := a.outcome(); !strings.Contains(got, `"code":"TIMEOUT"`) || !strings.Contains(got, "within 1m0s") {
			t.Errorf("outcome = %s", got)
		}
		if got := a.heard.all(); len(got) != 2 || !strings.Contains(got[1], `"requestId":"`+a.id(0)) {
			t.Errorf("the client received %q", got)
		}
	})
}

func TestAsk_connectionEnds(t *testing.T) {
	for _, test := range []struct {
		name string
		end  func(a *pendingAsk, cancel func())
	}{
		{"client disconnects", func(_ *pendingAsk, cancel func()) { cancel() }},
		{"session ends", func(a *pendingAsk, _ func()) {
			a.server.EndSession(mcp.Peer{Principal: identity.Anonymous()}, a.session)
		}},
		{"server drains", func(a *pendingAsk, _ func()) {
			go func() { _ = a.server.Drain(context.Background()) }()
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, _ := newServer(t, mcp.Options{}, mcptest.InputTools()...)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				a := ask(t, s, ctx, "ask")
				test.end(a, cancel)
				a.outcome()
				if got := a.heard.all(); len(got) != 2 || !strings.Contains(got[1], "notifications/cancelled") {
					t.Errorf("the client received %q", got)
				}
			})
		})
	}
}

func TestAsk_clientWithoutStream(t *testing.T) {
	s, _ := newServer(t, mcp.Options{}, mcptest.InputTools()...)
	peer := mcp.Peer{Principal: identity.Anonymous(), Headers: http.Header{}}
	session := openSession(t.Context(), s, peer)
	reply := s.Exchange(t.Context(), legacyCall(2, "ask"), mcp.Exchange{Peer: peer, Session: session})
	if got := reply.Frame.String(); !strings.Contains(got, `"required_capabilities":{"elicitation":{}}`) {
		t.Errorf("reply = %s", got)
	}
}

func TestAsk_maxServerRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tool := mcptest.InputTools()[0]
		tool.Run = func(context.Context, call.Request) call.Result {
			var requests []call.AskRequest
			for i := range 65 {
				requests = append(requests, call.AskRequest{Key: fmt.Sprint(i), Method: "roots/list"})
			}
			return call.Result{Ask: &call.Ask{Requests: requests}}
		}
		s, _ := newServer(t, mcp.Options{}, tool)
		a := ask(t, s, t.Context(), "ask")
		if got := a.outcome(); !strings.Contains(got, "too many requests") || len(a.heard.all()) != 0 {
			t.Errorf("outcome = %s after %q", got, a.heard.all())
		}
	})
}

// TestAsk_afterProgress checks that a request does not overtake earlier
// notifications of the call.
func TestAsk_afterProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tool := mcptest.InputTools()[0]
		run := tool.Run
		tool.Run = func(ctx context.Context, r call.Request) call.Result {
			if r.Resume == nil {
				for i := range 100 {
					r.Emit.Progress(float64(i), nil, "")
				}
			}
			return run(ctx, r)
		}
		s, _ := newServer(t, mcp.Options{}, tool)
		var received recorder
		conn := s.Connect(mcp.Peer{Principal: identity.Anonymous()}, received.send)
		conn.Receive(t.Context(), []byte(ableClient), nil)
		conn.Receive(t.Context(), []byte(ready), nil)
		conn.Receive(t.Context(), []byte(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"ask","_meta":{"progressToken":1}}}`), nil)
		synctest.Wait()
		if got := received.all(); len(got) != 102 || !strings.Contains(got[101], "elicitation/create") {
			t.Errorf("the client received %d messages, the last %s", len(got), got[len(got)-1])
		}
		conn.End()
		conn.Close()
	})
}

// TestAsk_samplingTools: the capability to sample does not include sampling
// with tools.
func TestAsk_samplingTools(t *testing.T) {
	for _, params := range []string{`{"messages":[],"maxTokens":1,"tools":[]}`, `{"messages":[],"maxTokens":1,"toolChoice":{"mode":"auto"}}`} {
		tool := mcptest.InputTools()[0]
		tool.Run = func(context.Context, call.Request) call.Result {
			return call.Result{Ask: &call.Ask{Requests: []call.AskRequest{
				{Key: "k", Method: "sampling/createMessage", Params: json.RawMessage(params)},
			}}}
		}
		s, _ := newServer(t, mcp.Options{}, tool)
		for _, test := range []struct{ declared, want string }{
			{`{}`, `"requiredCapabilities":{"sampling":{"tools":{}}}`},
			{`{"tools":{}}`, `"inputRequests":{"k":{"method":"sampling/createMessage"`},
		} {
			text := strings.Replace(string(request(1, "tools/call", `"name":"ask"`)), `Capabilities":{}`, `Capabilities":{"sampling":`+test.declared+`}`, 1)
			if got := s.Exchange(t.Context(), []byte(text), exchange("tools/call", "ask")).Frame.String(); !strings.Contains(got, test.want) {
				t.Errorf("a modern client that declares %s gets %s", test.declared, got)
			}
		}
		peer := mcp.Peer{Principal: identity.Anonymous()}
		session := openSession(t.Context(), s, peer)
		var received recorder
		reply := s.Exchange(t.Context(), legacyCall(2, "ask"), mcp.Exchange{Peer: peer, Session: session, Emit: received.send})
		if !strings.Contains(reply.Frame.String(), `"required_capabilities":{"sampling":{"tools":{}}}`) || len(received.all()) != 0 {
			t.Errorf("a legacy client gets %s after %q", reply.Frame, received.all())
		}
	}
}

// TestAsk_noRequests: an ask without requests is an error.
func TestAsk_noRequests(t *testing.T) {
	tool := mcptest.InputTools()[0]
	tool.Run = func(context.Context, call.Request) call.Result { return call.Result{Ask: &call.Ask{State: "s"}} }
	s, _ := newServer(t, mcp.Options{}, tool)
	got := s.Exchange(t.Context(), request(1, "tools/call", `"name":"ask"`), exchange("tools/call", "ask")).Frame.String()
	if !strings.Contains(got, `"isError":true`) || strings.Contains(got, "input_required") {
		t.Errorf("reply = %s", got)
	}
}

// TestList_cacheScope: one private entry makes all pages of the list private.
func TestList_cacheScope(t *testing.T) {
	hidden := mcptest.Tools()[4]
	hidden.Visible = func(identity.Caller) bool { return true }
	for scope, tools := range map[string][]mcptest.Tool{"public": mcptest.Tools()[:5], "private": append(mcptest.Tools()[:4], hidden)} {
		s, _ := newServer(t, mcp.Options{PageSize: 2}, tools...)
		cursor, pages := "", 0
		for ok := true; ok; pages++ {
			params := ""
			if cursor != "" {
				params = fmt.Sprintf(`"cursor":%q`, cursor)
			}
			got := s.Exchange(t.Context(), request(1, "tools/list", params), exchange("tools/list", "")).Frame.String()
			if !strings.Contains(got, `"ttlMs":0,"cacheScope":"`+scope+`"`) {
				t.Errorf("page %d of a %s list = %s", pages, scope, got)
			}
			_, cursor, ok = strings.Cut(got, `"nextCursor":"`)
			cursor, _, _ = strings.Cut(cursor, `"`)
		}
		if pages != 3 {
			t.Errorf("got %d pages", pages)
		}
	}
}

// TestComplete_hiddenPrompt: completing a hidden prompt and an unknown one give
// the same response.
func TestComplete_hiddenPrompt(t *testing.T) {
	s, b := newServer(t, mcp.Options{}, mcptest.Tools()...)
	hidden := mcptest.Items()[6]
	hidden.Visible = func(c identity.Caller) bool { return c.Agent.AgentID == "insider" }
	b.PublishItems(hidden)
	complete := func(agent, prompt string) string {
		params := fmt.Sprintf(`"ref":{"type":"ref/prompt","name":%q},"argument":{"name":"who","value":"a"}`, prompt)
		x := exchange("completion/complete", "")
		x.Peer.Headers.Set("X-Agent-Id", agent)
		x.Peer.Headers.Set("X-Request-Id", "r")
		return s.Exchange(t.Context(), request(1, "completion/complete", params), x).Frame.String()
	}
	if got := complete("insider", "greet"); !strings.Contains(got, `"values":["who:`) {
		t.Fatalf("an insider gets %s", got)
	}
	if got, want := complete("other", "greet"), complete("other", "nope"); got != want || !strings.Contains(got, "-32602") {
		t.Errorf("reply for a hidden prompt: %s, for an unknown one: %s", got, want)
	}
}
