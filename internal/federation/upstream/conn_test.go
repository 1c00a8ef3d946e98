package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpd/mcpd/internal/federation/upstream"
)

func TestConn_transports(t *testing.T) {
	for way, target := range targetsByTransport(t) {
		t.Run(way, func(t *testing.T) {
			l, _ := dial(t, target)
			listing, err := l.List(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(listing.Tools) != 8 || len(listing.Prompts) != 1 || len(listing.Resources) != 1 || listing.Instructions != "Ask the lab." {
				t.Errorf("it offers %s", listing.Tools)
			}
			const arguments = `{"z":9007199254740993,"a":[1.0]}`
			if got := call(t, l, "echo", arguments); !strings.Contains(string(got.Result), `"structuredContent":`+arguments) {
				t.Errorf("the result is %s", got.Result)
			}
			if got := call(t, l, "fails", `{}`); !strings.Contains(string(got.Result), `"isError":true`) {
				t.Errorf("the failure is %s", got.Result)
			}
			if got := call(t, l, "nothing", `{}`); got.Error == nil || !strings.Contains(got.Error.Message, "nothing") {
				t.Errorf("an invalid tool: %+v", got)
			}
			for _, r := range []upstream.Request{
				{Method: upstream.MethodPrompt, Name: "plan", Arguments: json.RawMessage(`{"day":"read me"}`)},
				{Method: upstream.MethodRead, Name: "lab://note"},
			} {
				reply, err := l.Start(t.Context(), r, nil).Next(t.Context())
				if err != nil || !strings.Contains(string(reply.Result), "read me") {
					t.Errorf("%s: %s, %v", r.Method, reply.Result, err)
				}
			}
		})
	}
}

// notificationRecorder records the notifications of a listener.
type notificationRecorder struct {
	mu    sync.Mutex
	words []string
}

func (h *notificationRecorder) Progress(done float64, total *float64, message string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.words = append(h.words, fmt.Sprintf("%v of %v %s", done, *total, message))
}

func (h *notificationRecorder) Log(level, message string, _ json.RawMessage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.words = append(h.words, level+" "+message)
}

func TestCall_progress(t *testing.T) {
	t.Parallel()
	for way, target := range targetsByTransport(t) {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			l, _ := dial(t, target)
			own, others := &notificationRecorder{}, &notificationRecorder{}
			other := l.Start(t.Context(), upstream.Request{Method: upstream.MethodTool, Name: "waits"}, others)
			c := l.Start(t.Context(), upstream.Request{Method: upstream.MethodTool, Name: "tells"}, own)
			if _, err := c.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
			other.Cancel(errors.New("enough"))
			if _, err := other.Next(t.Context()); err == nil || err.Error() != "enough" {
				t.Errorf("a call that was cancelled ends with %v", err)
			}
			if way == "json" {
				return // the channel is full
			}
			if len(own.words) != 1 || own.words[0] != "1 of 2 half" || len(others.words) > 0 {
				t.Errorf("the call received %q, the other one %q", own.words, others.words)
			}
		})
	}
}

func TestCall_log(t *testing.T) {
	eras := map[bool]int{}
	for way, target := range targetsByTransport(t) {
		t.Run(way, func(t *testing.T) {
			l, _ := dial(t, target)
			mine := &notificationRecorder{}
			if _, err := l.Start(t.Context(), upstream.Request{Method: upstream.MethodTool, Name: "logs"}, mine).Next(t.Context()); err != nil {
				t.Fatal(err)
			}
			if way == "json" {
				return // the channel is full
			}
			eras[l.Modern()]++
			if !slices.Equal(mine.words, []string{"info a word", "error a word"}) {
				t.Errorf("the call heard %q", mine.words)
			}
			all := &notificationRecorder{}
			if _, err := l.Start(t.Context(), upstream.Request{Method: upstream.MethodTool, Name: "logs", DebugLogs: true}, all).Next(t.Context()); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(all.words, []string{"debug a word", "info a word", "error a word"}) {
				t.Errorf("the call that wants all heard %q", all.words)
			}
		})
	}
	if eras[true] == 0 || eras[false] == 0 {
		t.Errorf("only servers of one era have logged: %v", eras)
	}
}

func TestCall_inputRequest(t *testing.T) {
	for way, target := range targetsByTransport(t) {
		t.Run(way, func(t *testing.T) {
			target.Input = upstream.InputPolicy{Elicit: true}
			l, _ := dial(t, target)
			r := upstream.Request{Method: upstream.MethodTool, Name: "asks", ClientCapabilities: json.RawMessage(`{"elicitation":{"form":{}}}`)}
			c := l.Start(t.Context(), r, nil)
			reply, err := c.Next(t.Context())
			if err != nil || len(reply.InputRequests) != 1 {
				t.Fatalf("no prompt: %s %v %v", reply.Result, reply.Error, err)
			}
			q := reply.InputRequests[0]
			if z, a := strings.Index(string(q.Params), `"z"`), strings.Index(string(q.Params), `"a"`); q.Method != "elicitation/create" || z < 0 || l.Modern() == false && z > a {
				t.Errorf("it asks %s %s", q.Method, q.Params)
			}
			answer := json.RawMessage(`{"action":"accept","content":{"z":"1"}}`)
			if l.Modern() {
				r.State, r.Responses = reply.State, map[string]json.RawMessage{q.Key: answer}
				c = l.Start(t.Context(), r, nil)
			} else {
				c.Respond(map[string]upstream.InputResponse{q.Key: {Result: answer}})
			}
			if reply, err = c.Next(t.Context()); err != nil || !strings.Contains(string(reply.Result), "accept where it stands") {
				t.Errorf("the answer is %s, %v, %v", reply.Result, reply.Error, err)
			}
		})
	}
}

func TestCall_inputRequestRefused(t *testing.T) {
	for way, target := range targetsByTransport(t) {
		t.Run(way, func(t *testing.T) {
			l, _ := dial(t, target)
			c := l.Start(t.Context(), upstream.Request{Method: upstream.MethodTool, Name: "asks"}, nil)
			reply, err := c.Next(t.Context())
			if !l.Modern() && (err != nil || len(reply.InputRequests) > 0) {
				t.Errorf("it asks %+v, %v", reply.InputRequests, err)
			}
		})
	}
}

func TestCall_cancelReachesServer(t *testing.T) {
	for way, target := range targetsByTransport(t) {
		t.Run(way, func(t *testing.T) {
			l, _ := dial(t, target)
			c := l.Start(t.Context(), upstream.Request{Method: upstream.MethodTool, Name: "waits"}, nil)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := c.Next(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("Next ends with %v", err)
			}
			c.Cancel(context.Canceled)
			if _, err := c.Next(t.Context()); err == nil {
				t.Error("the call is still running")
			}
			call(t, l, "echo", `{}`) // the connection still works
		})
	}
}

func TestStdioServer_otherOutput(t *testing.T) {
	l, log := dial(t, program(t, "noisy"))
	call(t, l, "echo", `{}`)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for word, want := range map[string]bool{"starting up": true, "a word to the operator": true, "a long line": true, "x … [cut]": true, "its end": false} {
		if strings.Contains(log.String(), word) != want {
			t.Errorf("that the log holds %q is not %t", word, want)
		}
	}
}

func TestCall_inputRequestDuringList(t *testing.T) {
	target := program(t, "old")
	target.Input.Elicit = true
	l, _ := dial(t, target)
	list := l.Start(t.Context(), upstream.Request{Method: "prompts/list"}, nil) // which does not end
	c := l.Start(t.Context(), upstream.Request{Method: upstream.MethodTool, Name: "asks"}, nil)
	reply, err := c.Next(t.Context())
	if err != nil || len(reply.InputRequests) != 1 {
		t.Errorf("no input request, and the call ends with %s, %v", reply.Result, err)
	}
	if list.Ended() {
		t.Error("the list has already ended")
	}
}

func TestCall_maxInputRequests(t *testing.T) {
	target := program(t, "old")
	target.Input.Elicit = true
	l, _ := dial(t, target)
	c := l.Start(t.Context(), upstream.Request{Method: upstream.MethodTool, Name: "floods"}, nil)
	for {
		reply, err := c.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if reply.InputRequests == nil {
			if !strings.Contains(string(reply.Result), "24 were refused") {
				t.Errorf("the call ends with %s", reply.Result)
			}
			return
		}
		if len(reply.InputRequests) > 16 {
			t.Errorf("%d questions are open", len(reply.InputRequests))
		}
	}
}

func TestConn_closeWaitsForCalls(t *testing.T) {
	t.Parallel()
	for way, target := range targetsByTransport(t) {
		t.Run(way, func(t *testing.T) {
			o, _ := options(t)
			l, err := upstream.Dial(t.Context(), target, o)
			if err != nil {
				t.Fatal(err)
			}
			begin := func() *upstream.Call {
				return l.Start(t.Context(), upstream.Request{Method: upstream.MethodTool, Name: "waits"}, nil)
			}
			var calls []*upstream.Call
			for range 20 {
				calls = append(calls, begin())
			}
			_ = l.Close()
			for n, c := range append(calls, begin()) {
				if !c.Ended() {
					t.Errorf("call %d is still running", n)
				}
				if _, err := c.Next(t.Context()); !errors.Is(err, upstream.ErrClosed) {
					t.Errorf("call %d ends with %v", n, err)
				}
			}
		})
	}
}

type traceKey struct{}

func TestCall_traceparent(t *testing.T) {
	eras := map[bool]bool{}
	for way, target := range targetsByTransport(t) {
		t.Run(way, func(t *testing.T) {
			o, _ := options(t)
			o.Traceparent = func(ctx context.Context) string {
				parent, _ := ctx.Value(traceKey{}).(string)
				return parent
			}
			l, err := upstream.Dial(t.Context(), target, o)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = l.Close() }()
			eras[l.Modern()] = true
			const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
			for _, want := range []string{parent, ""} {
				if got := traceOf(t, l, context.WithValue(t.Context(), traceKey{}, want)); got != want {
					t.Errorf("of %q the server sees %q", want, got)
				}
			}
		})
	}
	if !eras[true] || !eras[false] {
		t.Errorf("only servers of one era were called: %v", eras)
	}
}

// traceOf returns the traceparent that the server sees in a call.
func traceOf(t *testing.T, l *upstream.Conn, ctx context.Context) string {
	t.Helper()
	reply, err := l.Start(ctx, upstream.Request{Method: upstream.MethodTool, Name: "meta"}, nil).Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var said struct{ StructuredContent struct{ TraceParent string } }
	if err := json.Unmarshal(reply.Result, &said); err != nil {
		t.Fatalf("%s: %v", reply.Result, err)
	}
	return said.StructuredContent.TraceParent
}

// paged is a server with three pages of tools, each with a TTL.
func paged(w http.ResponseWriter, r *http.Request) {
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct{ Cursor string }
	}
	if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&m) != nil || m.Method == "server/discover" {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	result := `{}`
	switch {
	case m.ID == nil:
		w.WriteHeader(http.StatusAccepted)
		return
	case m.Method == "initialize":
		result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"paged","version":"1"},"instructions":"Turn the pages."}`
	case m.Method == "tools/list":
		result = map[string]string{
			"":  `{"tools":[{"name":"a"}],"ttlMs":60000,"nextCursor":"b"}`,
			"b": `{"tools":[{"name":"b"}],"ttlMs":30000,"nextCursor":"c"}`,
			"c": `{"tools":[{"name":"c"}],"ttlMs":0}`,
		}[m.Params.Cursor]
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

func TestList_pagesAndTTL(t *testing.T) {
	host := httptest.NewServer(http.HandlerFunc(paged))
	t.Cleanup(host.Close)
	l, _ := dial(t, upstream.Target{Name: "paged", URL: host.URL + "/mcp"})
	listing, err := l.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%s %s", listing.Tools, listing.Instructions); got != `[{"name":"a"} {"name":"b"} {"name":"c"}] Turn the pages.` || listing.TTL != 30*time.Second {
		t.Errorf("it lists %s for %s", got, listing.TTL)
	}
}
