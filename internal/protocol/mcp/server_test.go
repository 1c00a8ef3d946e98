package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/mcp/mcptest"
)

const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

// exchange returns the exchange of a modern HTTP request.
func exchange(method, name string) mcp.Exchange {
	h := http.Header{"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {method}}
	if name != "" {
		h.Set("Mcp-Name", name)
	}
	return mcp.Exchange{Peer: mcp.Peer{Principal: identity.Anonymous(), Headers: h}}
}

func request(id int, method, params string) []byte {
	if params != "" {
		params += ","
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s%s}}`, id, method, params, meta)
}

func newServer(t *testing.T, o mcp.Options, tools ...mcptest.Tool) (*mcp.Server, *mcptest.Backend) {
	t.Helper()
	b := mcptest.New(tools...)
	s := mcp.New(b, o)
	t.Cleanup(func() {
		if err := s.Drain(context.Background()); err != nil {
			t.Error(err)
		}
		if n := b.Watchers(); n != 0 {
			t.Errorf("%d watchers remain", n)
		}
	})
	return s, b
}

// recorder records the frames that are sent to it.
type recorder struct {
	mu     sync.Mutex
	frames []string
}

func (r *recorder) send(f mcp.Frame) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.frames = append(r.frames, f.String())
	return nil
}

func (r *recorder) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.frames
}

func TestList_pagination(t *testing.T) {
	tools := mcptest.Tools()[:7]
	s, b := newServer(t, mcp.Options{PageSize: 3}, tools...)
	var names []string
	cursor := ""
	for pages := 0; ; pages++ {
		params := ""
		if cursor != "" {
			params = fmt.Sprintf(`"cursor":%q`, cursor)
		}
		var answer struct {
			Result struct {
				Tools      []struct{ Name string }
				NextCursor *string
			}
		}
		reply := s.Exchange(t.Context(), request(pages, "tools/list", params), exchange("tools/list", ""))
		if err := json.Unmarshal([]byte(reply.Frame.String()), &answer); err != nil {
			t.Fatal(err)
		}
		for _, tool := range answer.Result.Tools {
			names = append(names, tool.Name)
		}
		if answer.Result.NextCursor == nil {
			break
		}
		cursor = *answer.Result.NextCursor
	}
	var want []string
	for _, tool := range tools {
		want = append(want, tool.Name)
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}

	b.Publish(tools[1:]...)
	reply := s.Exchange(t.Context(), request(9, "tools/list", fmt.Sprintf(`"cursor":%q`, cursor)), exchange("tools/list", ""))
	if !strings.Contains(reply.Frame.String(), `"code":-32602`) {
		t.Errorf("reply to the cursor of another list: %s", reply.Frame)
	}
}

func TestCall_clientDisconnects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newServer(t, mcp.Options{}, mcptest.Tools()...)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan mcp.Reply)
		go func() {
			done <- s.Exchange(ctx, request(1, "tools/call", `"name":"wait"`), exchange("tools/call", "wait"))
		}()
		synctest.Wait()
		cancel()
		if reply := <-done; !strings.Contains(reply.Frame.String(), "TIMEOUT") {
			t.Errorf("reply = %s", reply.Frame)
		}
	})
}

func TestDrain_waitsForCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		finish := make(chan struct{})
		slow := mcptest.Tools()[0]
		slow.Run = func(context.Context, call.Request) call.Result {
			<-finish
			return mcptest.Text("finished")
		}
		s, _ := newServer(t, mcp.Options{}, slow)

		var received recorder
		conn := s.Connect(mcp.Peer{Principal: identity.Anonymous()}, received.send)
		conn.Receive(t.Context(), request(1, "tools/call", `"name":"hello"`), nil)
		conn.Receive(t.Context(), request(2, "subscriptions/listen", `"notifications":{}`), nil)
		answered := make(chan mcp.Reply, 1)
		go func() {
			answered <- s.Exchange(t.Context(), request(3, "tools/call", `"name":"hello"`), exchange("tools/call", "hello"))
		}()
		synctest.Wait()

		drained := make(chan error, 1)
		go func() { drained <- s.Drain(t.Context()) }()
		synctest.Wait()
		refused := s.Exchange(t.Context(), request(4, "tools/list", ""), exchange("tools/list", ""))
		if refused.Refusal != mcp.Unavailable {
			t.Errorf("reply to a new request: %s", refused.Frame)
		}
		conn.Receive(t.Context(), request(5, "tools/list", ""), nil)
		if s.Connect(mcp.Peer{}, received.send) != nil {
			t.Error("a new client was accepted")
		}
		select {
		case <-conn.Done():
			t.Error("the connection is done while a call is running")
		case err := <-drained:
			t.Errorf("drained while calls are running: %v", err)
		default:
		}

		close(finish)
		<-conn.Done()
		conn.Close()
		if err := <-drained; err != nil {
			t.Error(err)
		}
		if reply := <-answered; !strings.Contains(reply.Frame.String(), "finished") {
			t.Errorf("reply to the running call: %s", reply.Frame)
		}
		for i, want := range []string{`acknowledged`, `"requestId":2`, `"id":2,"result"`, `"id":5,"error"`, `finished`} {
			if got := received.all(); i >= len(got) || !strings.Contains(got[i], want) {
				t.Errorf("message %d is not %s in %q", i, want, got)
			}
		}
	})
}

func TestDrain_contextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newServer(t, mcp.Options{}, mcptest.Tools()...)
		working, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.Exchange(working, request(1, "tools/call", `"name":"wait"`), exchange("tools/call", "wait"))
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error = %v", err)
		}
		stop()
		<-done
	})
}

func TestConn_slowCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newServer(t, mcp.Options{}, mcptest.Tools()...)
		var received recorder
		ctx, cancel := context.WithCancel(t.Context())
		conn := s.Connect(mcp.Peer{Principal: identity.Anonymous()}, received.send)
		conn.Receive(ctx, request(1, "tools/call", `"name":"wait"`), nil)
		conn.Receive(ctx, request(2, "tools/list", ""), nil)
		conn.Receive(ctx, request(3, "tools/call", `"name":"hello"`), nil)
		synctest.Wait()
		if got := received.all(); len(got) != 2 || !strings.Contains(got[0], `"id":2`) || !strings.Contains(got[1], `"id":3`) {
			t.Errorf("replies = %q", got)
		}
		cancel()
		conn.Close()
	})
}

func TestConn_immediateCancellation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newServer(t, mcp.Options{}, mcptest.Tools()...)
		var received recorder
		conn := s.Connect(mcp.Peer{Principal: identity.Anonymous()}, received.send)
		for i := range 100 {
			conn.Receive(t.Context(), request(i, "tools/call", `"name":"wait"`), nil)
			conn.Receive(t.Context(), fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, i), nil)
		}
		conn.Close()
		if got := received.all(); len(got) != 0 {
			t.Errorf("cancelled calls have responses: %q", got)
		}
	})
}

func TestCallNotifier_afterResult(t *testing.T) {
	var late call.Emitter
	tool := mcptest.Tools()[0]
	tool.Run = func(_ context.Context, r call.Request) call.Result {
		late = r.Emit
		return mcptest.Text("")
	}
	s, _ := newServer(t, mcp.Options{}, tool)
	var received recorder
	x := exchange("tools/call", "hello")
	x.Emit = received.send
	text := strings.Replace(string(request(1, "tools/call", `"name":"hello"`)), `"_meta":{`, `"_meta":{"progressToken":1,"io.modelcontextprotocol/logLevel":"debug",`, 1)
	s.Exchange(t.Context(), []byte(text), x)
	late.Progress(1, nil, "")
	late.Log("info", "too late", nil)
	if got := received.all(); len(got) != 0 {
		t.Errorf("sent after the result: %q", got)
	}
}

func TestList_visibility(t *testing.T) {
	s, _ := newServer(t, mcp.Options{}, mcptest.Tools()...)
	list := func(agent string) string {
		x := exchange("tools/list", "")
		x.Peer.Headers.Set("X-Agent-Id", agent)
		return s.Exchange(t.Context(), request(1, "tools/list", ""), x).Frame.String()
	}
	for range 2 {
		if !strings.Contains(list("insider"), `"name":"secret"`) || strings.Contains(list("other"), `"name":"secret"`) {
			t.Error("a page was served to the wrong caller")
		}
	}
}

// TestCheckMirrors_findsOneTool checks that the backend need not list all tools
// to check a header.
func TestCheckMirrors_findsOneTool(t *testing.T) {
	b := &finding{Backend: mcptest.New(mcptest.Tools()...)}
	s := mcp.New(b, mcp.Options{})
	defer func() { _ = s.Drain(t.Context()) }()
	reply := s.Exchange(t.Context(), request(1, "tools/call", `"name":"region","arguments":{"region":"eu"}`), exchange("tools/call", "region"))
	if reply.Refusal != mcp.Malformed || b.found != 1 || b.listed != 0 {
		t.Errorf("found %d, listed %d: %s", b.found, b.listed, reply.Frame)
	}
}

type finding struct {
	*mcptest.Backend
	found, listed int
}

func (b *finding) List(ctx context.Context, k call.Kind, c identity.Caller) mcp.List {
	b.listed++
	return b.Backend.List(ctx, k, c)
}

func (b *finding) Find(ctx context.Context, c identity.Caller, name string) *mcp.Entry {
	b.found++
	return b.Backend.Find(ctx, c, name)
}

// TestMethods_haveSampleRequests makes sure that tests over all methods cover a
// new method.
func TestMethods_haveSampleRequests(t *testing.T) {
	output := map[string][2]bool{}
	for _, r := range mcptest.Requests() {
		if _, twice := output[r.Method]; twice {
			t.Errorf("%s has two requests", r.Method)
		}
		output[r.Method] = [2]bool{r.Legacy, r.Modern}
	}
	if diff := cmp.Diff(mcp.Methods(), output); diff != "" {
		t.Errorf("the methods and their eras, legacy and modern (-served +requests)\n%s", diff)
	}
}

// TestScriptFault_reservedCodes: a script cannot report wrong headers to a
// modern client, or use an undefined reserved code.
func TestScriptFault_reservedCodes(t *testing.T) {
	for _, test := range []struct {
		code          int
		data          string
		modern        int
		wantMalformed bool
	}{
		{418, `{}`, 418, false},
		{-32000, `{}`, -32000, false},
		{-32002, `{}`, -32603, false},
		{-32020, `{}`, -32603, false},
		{-32021, `{"requiredCapabilities":{"sampling":{}}}`, -32021, true},
		{-32021, `{}`, -32603, false},
		{-32022, `{"supported":[]}`, -32603, false},
		{-32042, `{}`, -32603, false},
		{-32099, `{}`, -32603, false},
		{-32100, `{}`, -32100, false},
		{-32602, `{}`, -32602, false},
	} {
		t.Run(fmt.Sprint(test.code, test.data), func(t *testing.T) {
			tool := mcptest.Tools()[0]
			tool.Run = func(context.Context, call.Request) call.Result {
				e := &call.RPCError{Code: test.code, Message: "mine", Data: json.RawMessage(test.data)}
				return call.Result{Err: &call.Error{Code: call.ExecutionError, Message: "mine", RPC: e}}
			}
			s, _ := newServer(t, mcp.Options{}, tool)
			reply := s.Exchange(t.Context(), request(1, "tools/call", `"name":"hello"`), exchange("tools/call", "hello"))
			want := fmt.Sprintf(`"error":{"code":%d,"message":"mine","data":%s}`, test.modern, test.data)
			if got := reply.Frame.String(); !strings.Contains(got, want) || (reply.Refusal == mcp.Malformed) != test.wantMalformed {
				t.Errorf("a modern client gets %s, refusal %d", got, reply.Refusal)
			}
			peer := mcp.Peer{Principal: identity.Anonymous()}
			session := openSession(t.Context(), s, peer)
			reply = s.Exchange(t.Context(), legacyCall(2, "hello"), mcp.Exchange{Peer: peer, Session: session})
			if want := fmt.Sprintf(`"error":{"code":%d,`, test.code); !strings.Contains(reply.Frame.String(), want) {
				t.Errorf("a legacy client gets %s", reply.Frame)
			}
		})
	}
}
