package upstream

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/process/supervisor"
)

// questions are requests of servers, with each kind of id.
var questions = map[string]string{
	`"q %d"`: `"method":"elicitation/create","params":{"message":"Sure?","requestedSchema":{"type":"object","properties":{}}}`,
	"%d":     `"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}`,
	`"%d"`:   `"method":"roots/list"`,
}

// converse starts a call that does not end by itself. say sends messages of the server on its
// own stream, and returns when they have been handled.
func converse(t *testing.T) (c *Call, s *methodServer, say func(format string, args ...any), end func()) {
	t.Helper()
	s = &methodServer{says: map[string]cannedResponse{MethodTool: {200, streamed, "", false}}}
	stream, to := io.Pipe()
	s.asks = stream
	l, err := Dial(t.Context(), Target{Name: "teller", URL: "http://teller.test/mcp", Transport: TransportStreamable, Input: InputPolicy{Elicit: true, Sample: true, Roots: true}}, playedBy(s))
	if err != nil {
		t.Fatal(err)
	}
	c = l.Start(t.Context(), Request{Method: MethodTool, Name: "x"}, nil)
	synctest.Wait()
	say = func(format string, args ...any) {
		t.Helper()
		if _, err := fmt.Fprintf(to, "data: {\"jsonrpc\":\"2.0\","+format+"}\n\n", args...); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
	}
	return c, s, say, func() {
		_ = to.Close()
		_ = l.Close()
	}
}

func TestServerRequest_withdrawn(t *testing.T) {
	for ids, question := range questions {
		synctest.Test(t, func(t *testing.T) {
			c, s, say, end := converse(t)
			defer end()
			for n := range 2 * maxInputRequests {
				id := fmt.Sprintf(ids, n)
				say(`"id":%s,%s`, id, question)
				reply, err := c.Next(t.Context())
				if err != nil || len(reply.InputRequests) != 1 {
					t.Fatalf("request %d: %d pending, %v", n, len(reply.InputRequests), err)
				}
				say(`"method":"notifications/cancelled","params":{"requestId":%s,"reason":"never mind"}`, id)
				if asked := c.pendingRequests(); len(asked) > 0 || c.unsentAnswers > 0 {
					t.Fatalf("withdrawn request %d: %d pending, %d counted", n, len(asked), c.unsentAnswers)
				}
				c.Respond(map[string]InputResponse{reply.InputRequests[0].Key: {Result: []byte(`{"late":1}`)}}) // from a client that was already asked
			}
			if _, _, answers := s.state(); len(answers) > 0 {
				t.Errorf("the server is answered %q", answers)
			}
			say(`"id":"the last",%s`, question)
			reply, err := c.Next(t.Context())
			if err != nil || len(reply.InputRequests) != 1 {
				t.Fatalf("behind them %d are asked, %v", len(reply.InputRequests), err)
			}
			c.Respond(map[string]InputResponse{reply.InputRequests[0].Key: {Result: []byte(`{"x":1}`)}})
			synctest.Wait()
			_, _, answers := s.state()
			if diff := cmp.Diff([]string{`{"jsonrpc":"2.0","id":"the last","result":{"x":1}}`}, answers); diff != "" {
				t.Errorf("answers to the server (-want +got)\n%s", diff)
			}
			say(`"id":%s,"result":{"content":[]}`, s.last)
			if reply, err = c.Next(t.Context()); string(reply.Result) != `{"content":[]}` {
				t.Errorf("the call ends with %+v, %v", reply, err)
			}
		})
	}
}

func TestServerRequest_withdrawnDuringAnswer(t *testing.T) {
	for name, asked := range map[string]string{
		"a question":                   `"id":"q","method":"roots/list"`,
		"what nobody is asked for":     `"id":"q","method":"tasks/list"`,
		"a question of no call at all": `"id":"q","method":"elicitation/create"`,
		"one of a call that has ended": `"id":"q","method":"sampling/createMessage"`,
		"a ping":                       `"id":"q","method":"ping"`,
	} {
		w, c := running()
		w.inputPolicy = InputPolicy{Elicit: true, Sample: true, Roots: true}
		of := &stream{call: c}
		if name == "a question of no call at all" {
			of.call = newCall(2, Request{Method: MethodTool}, nil, func(error) {})
		}
		out, in, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		p := &stdioServer{child: &supervisor.Child{Stdin: in}, filter: w}
		tell := func(text string) {
			if _, err := w.incoming([]byte(`{"jsonrpc":"2.0",`+text+`}`), of); err != nil {
				t.Fatal(err)
			}
		}
		tell(asked)
		if name == "one of a call that has ended" {
			w.close(c)
		}
		tell(`"method":"notifications/cancelled","params":{"requestId":"q"}`)
		tell(`"method":"notifications/cancelled","params":{"requestId":"another"}`)
		const last = `{"jsonrpc":"2.0","id":"another","result":{}}` + "\n"
		for _, line := range []string{`{"jsonrpc":"2.0","id":"q","result":{}}` + "\n", last} {
			if _, err := p.Write([]byte(line)); err != nil {
				t.Fatal(err)
			}
		}
		_ = in.Close()
		var sent strings.Builder
		if _, err := io.Copy(&sent, out); err != nil {
			t.Fatal(err)
		}
		_ = out.Close()
		if diff := cmp.Diff(last, sent.String()); diff != "" || len(w.requests) > 0 || len(w.slots) > 0 || c.unsentAnswers > 0 {
			t.Errorf("%s: %d requests, counts %d and %d; sent (-want +got)\n%s", name, len(w.requests), len(w.slots), c.unsentAnswers, diff)
		}
	}
}

// The client library receives both on separate streams, in any order.
func TestServerRequest_withdrawnBeforeRead(t *testing.T) {
	w, c := running()
	w.inputPolicy = InputPolicy{Roots: true}
	for _, text := range []string{`{"jsonrpc":"2.0","id":"q","method":"roots/list"}`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q"}}`} {
		if _, err := w.incoming([]byte(text), &stream{call: c}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.takeRequest(`"q"`); !errors.Is(err, errNoClient) {
		t.Errorf("its client is asked: %v", err)
	}
}
