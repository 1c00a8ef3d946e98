package serve_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/protocol/mcp/mcptest"
	"github.com/mcpd/mcpd/serve"
)

// waitTools are a tool that waits for its end, and a tool that calls it.
const waitTools = `
tool "wait" {
  task    = "optional"
  timeout = "5m"
  input "pin" {
    type      = string
    default   = "0000"
    sensitive = true
  }
  run = "log.info('a script ran'); await new Promise(done => setTimeout(done, 300_000));"
}
tool "asks" {
  timeout = "5m"
  allow {
    ask { elicit = true }
  }
  run = "await elicit('who', { message: 'who?', schema: { type: 'object', properties: { name: { type: 'string' } } } });"
}
tool "outer" {
  timeout = "5m"
  allow {
    call { tools = ["wait"] }
  }
  run = "await tools.wait({});"
}
`

// cancelScene is a server with an audit log for cancelled calls.
type cancelScene struct {
	t     *testing.T
	front *serve.Front
	path  string // of the audit log
	log   syncBuffer
	began chan bool
	ended chan call.Event
}

// newCancelScene returns a server with a grace period.
func newCancelScene(t *testing.T, grace time.Duration) *cancelScene {
	t.Helper()
	s := &cancelScene{t: t, path: filepath.Join(t.TempDir(), "audit.jsonl"), began: make(chan bool, 100), ended: make(chan call.Event, 100)}
	e, err := engine.New(engine.Options{
		Name: "test", Front: serve.Checks{},
		Logger: slog.New(slog.NewJSONHandler(&s.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Hooks: []engine.Hook{func(_ context.Context, event call.Event) {
			if event.Phase == call.Start {
				s.began <- true
			} else {
				s.ended <- event
			}
		}},
		Files: engine.Files{
			Tools:  fstest.MapFS{"t.hcl": {Data: []byte(waitTools), Mode: 0o644}},
			Config: fstest.MapFS{"mcpd.hcl": {Data: fmt.Appendf(nil, "audit {\n  path = %q\n  mode = \"strict\"\n}\n", s.path), Mode: 0o644}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.front = serve.New(e, serve.Options{Grace: grace})
	t.Cleanup(func() { _ = s.front.Shutdown(context.Background()) }) // calls may be cancelled
	return s
}

// cancellation is the reported source and reason.
type cancellation struct{ By, Reason string }

// check waits for the end of one call, and checks the cancellation in its hook,
// the audit log and the log.
func (s *cancelScene) check(want cancellation) {
	s.t.Helper()
	var e call.Event
	select {
	case e = <-s.ended:
	case <-time.After(testTimeout):
		s.t.Fatal("the call did not end")
	}
	got := map[string]cancellation{"hook": {e.CancelledBy, e.CancelReason}}
	if e.Phase != call.Failed || e.Err.Code != call.ExecutionError || e.Err.Message != "the call was canceled" {
		s.t.Errorf("the call ended with %s, %v", e.Phase, e.Err)
	}
	lines, err := os.ReadFile(s.path)
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range bytes.Lines(lines) {
		var record struct {
			Kind     string
			Call     string `json:"call_id"`
			By       string `json:"cancelled_by"`
			Reason   string `json:"cancel_reason"`
			Declined bool
		}
		decode(s.t, line, &record)
		if record.Kind == "outcome" && record.Call == e.CallID {
			got["audit"] = cancellation{record.By, record.Reason}
		}
	}
	for line := range strings.Lines(s.log.String()) {
		var record struct {
			Level, Msg string
			Call       string `json:"call_id"`
			Request    string `json:"request_id"`
			By         string `json:"cancelled_by"`
			Reason     string `json:"cancel_reason"`
		}
		decode(s.t, []byte(line), &record)
		if record.Msg == "call cancelled" && record.Call == e.CallID && record.Level == "DEBUG" && record.Request == e.Caller.Agent.RequestID {
			got["log"] = cancellation{record.By, record.Reason}
		}
		if record.Msg == "call failed" && record.Call == e.CallID && record.By != want.By {
			s.t.Errorf("the log says that %q cancelled the call, want %q", record.By, want.By)
		}
	}
	if diff := cmp.Diff(map[string]cancellation{"hook": want, "audit": want, "log": want}, got); diff != "" {
		s.t.Errorf("cancellation (-want +got)\n%s", diff)
	}
}

// callWait returns a call of a tool in the session era or the modern era.
func callWait(id int, tool, arguments string, modern bool) string {
	meta := ""
	if modern {
		meta = metaModern
	}
	return messageOf(id, mcptest.Request{Method: "tools/call", Params: fmt.Sprintf(`"name":%q,"arguments":%s`, tool, arguments)}, meta)
}

// TestCancellation_reason cancels calls by notifications/cancelled on every
// transport that supports it.
func TestCancellation_reason(t *testing.T) {
	text := func(s string) string {
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	const filler = "all work and no play "
	for _, w := range wires {
		for _, modern := range []bool{false, true} {
			if modern && w.name == "HTTP" {
				continue // clients close the stream instead
			}
			t.Run(fmt.Sprintf("%s/modern=%t", w.name, modern), func(t *testing.T) {
				t.Parallel()
				s := newCancelScene(t, testTimeout)
				wire := w.open(t, s.front)
				if !modern {
					wire.answer(0, initialize)
					wire.send(ready)
				}
				long := strings.Repeat(filler, 1000)
				for i, row := range []struct{ reason, want string }{
					{`"User navigated away"`, "User navigated away"},
					{text("two\nlines \x1b[31m\u202ered"), `two lines \x1b[31m\u202ered`},
					{text("my PIN is 4711-0815"), "my PIN is [sensitive]"},
					{text(long), long[:1021] + "…"},
					{`{"not":"a text"}`, ""}, {`""`, ""}, {`null`, ""},
				} {
					id := i + 1
					wire.send(callWait(id, "wait", `{"pin":"4711-0815"}`, modern))
					<-s.began
					wire.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d,"reason":%s}}`, id, row.reason))
					s.check(cancellation{"client", row.want})
				}
				wire.send(callWait(20, "outer", `{}`, modern))
				<-s.began
				<-s.began
				wire.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":20,"reason":"no more"}}`)
				s.check(cancellation{"client", "no more"}) // of the inner call
				s.check(cancellation{"client", "no more"})
				wire.send(callWait(21, "wait", `{}`, modern))
				<-s.began
				wire.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":21}}`)
				s.check(cancellation{"client", ""})
				if text := s.log.String(); strings.Contains(text, "4711-0815") {
					t.Errorf("the log contains a sensitive value:\n%s", text)
				}
			})
		}
	}
}

// TestCancellation_whileAsked cancels calls, and closes their connection, while
// their clients have input requests.
func TestCancellation_whileAsked(t *testing.T) {
	able := strings.Replace(initialize, `"capabilities":{}`, `"capabilities":{"elicitation":{}}`, 1)
	for _, w := range wires {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			s := newCancelScene(t, time.Nanosecond)
			wire := w.open(t, s.front)
			wire.answer(0, able)
			wire.send(ready)
			for id, end := range []func(){
				func() {
					wire.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"never mind"}}`)
				},
				func() { wire.close() },
			} {
				if w.name == "HTTP" && id > 0 {
					continue // a client with a stream may reconnect within a minute
				}
				wire.send(callWait(id+1, "asks", `{}`, false))
				for asked := false; !asked; {
					asked = strings.Contains(string(wire.next()), "elicitation/create")
				}
				if e := <-s.ended; e.Outcome != "input_required" {
					t.Errorf("the first leg ended with %+v", e)
				}
				end()
				s.check([]cancellation{{"client", "never mind"}, {"connection", "the connection was closed"}}[id])
			}
		})
	}
}

// TestCancellation_connection closes the connection of a call.
func TestCancellation_connection(t *testing.T) {
	for _, w := range wires {
		for _, modern := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/modern=%t", w.name, modern), func(t *testing.T) {
				t.Parallel()
				s := newCancelScene(t, time.Nanosecond)
				wire := w.open(t, s.front)
				if !modern {
					wire.answer(0, initialize)
					wire.send(ready)
				}
				wire.send(callWait(1, "wait", `{}`, modern))
				<-s.began
				wire.close()
				s.check(cancellation{"connection", "the connection was closed"})
			})
		}
	}
	t.Run("REST", func(t *testing.T) {
		t.Parallel()
		s := newCancelScene(t, testTimeout)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, listen(t, s.front)+"/mcp/execute", strings.NewReader(`{"tool":"wait","arguments":{}}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		gone := make(chan error, 1)
		go func() {
			_, err := http.DefaultClient.Do(r)
			gone <- err
		}()
		<-s.began
		cancel()
		if err := <-gone; err == nil {
			t.Error("the call got a response")
		}
		s.check(cancellation{"connection", "the connection was closed"})
	})
}

// TestCancellation_session ends the session of a call.
func TestCancellation_session(t *testing.T) {
	s := newCancelScene(t, testTimeout)
	wire := openHTTPWire(t, s.front)
	wire.answer(0, initialize)
	wire.send(ready)
	wire.send(callWait(1, "wait", `{}`, false))
	<-s.began
	r, err := http.NewRequest(http.MethodDelete, wire.url+"/mcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Mcp-Session-Id", wire.session)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	s.check(cancellation{"session", "the session has ended"})
}

// TestCancellation_task cancels a task, and shuts the server down during
// another.
func TestCancellation_task(t *testing.T) {
	s := newCancelScene(t, time.Nanosecond)
	c := taskClient{t, listen(t, s.front)}
	made := c.call("wait", "{}")
	<-s.began
	c.send("tasks/cancel", made.ID, fmt.Sprintf(`"taskId":%q`, made.ID))
	s.check(cancellation{"client", ""})
	c.call("wait", "{}")
	<-s.began
	_ = s.front.Shutdown(context.Background()) // reports a cancelled call
	s.check(cancellation{"server", "the server is shutting down"})
}
