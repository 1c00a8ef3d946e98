package serve_test

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/serve"
)

const outcomeTools = `
tool "add" {
  input "a" { type = integer }
  input "b" { type = integer }
  output "sum" { type = integer }
  timeout = "5m"
  run = <<JS
    return { sum: input.a + input.b };
  JS
}
tool "shout" {
  input "text" {
    type       = string
    max_length = 20
  }
  timeout = "5m"
  run = <<JS
    return input.text.toUpperCase();
  JS
}
tool "throws" {
  input "why" { type = string }
  timeout = "5m"
  run = <<JS
    throw new Error(input.why);
  JS
}
tool "polite" {
  timeout = "5m"
  run = <<JS
    throw new ToolError("not today", { details: { retry: false } });
  JS
}
tool "endless" {
  timeout = "15ms"
  run = <<JS
    for (;;) {}
  JS
}
tool "huge" {
  timeout = "5m"
  run = <<JS
    return "x".repeat(5 * 1024 * 1024);
  JS
}
tool "denied" {
  input "n" { type = integer }
  timeout = "5m"
  run = <<JS
    return 1;
  JS
}
policy "denied" {
  tools  = ["denied"]
  deny   = "args.n > 3"
  reason = "Blocked in prod"
}
tool "closed" {
  timeout = "5m"
  run = <<JS
    return 1;
  JS
}
policy "closed" {
  tools    = ["closed"]
  deny     = "true"
  reason   = "nobody may know"
  disclose = "hide"
}
tool "visible" {
  description = "Returns everything that a script can see of its call."
  timeout = "5m"
  run = <<JS
    const seen = { agent, via: call.via, tool: call.tool, keys: Object.keys(call).sort() };
    return { ...seen, globals: Object.getOwnPropertyNames(globalThis).sort(), input };
  JS
}
`

// oneCall is one call.
type oneCall struct{ tool, args string }

// outcome is the outcome of a call as a client sees it, without ids and times.
type outcome struct {
	Code, Message, Value string
	// Trace is the location of a script error; NamesFile is true if the response
	// contains the name of the tool file.
	Trace     string
	NamesFile bool
}

func outcomeCalls() []oneCall {
	var calls []oneCall
	for i := range 20 {
		calls = append(calls,
			oneCall{"add", fmt.Sprintf(`{"a":%d,"b":%d}`, i, i*i)},
			oneCall{"add", fmt.Sprintf(`{"a":%d,"b":"%d"}`, i, i)},
			oneCall{"add", fmt.Sprintf(`{"a":%d,"bb":%d}`, i, i)},
			oneCall{"shout", fmt.Sprintf(`{"text":"número %d \u2028 \"q\""}`, i)},
			oneCall{"shout", fmt.Sprintf(`{"text":"%021d"}`, i)},
			oneCall{"throws", fmt.Sprintf(`{"why":"reason %d <b>&\u00e9"}`, i)},
			oneCall{"denied", fmt.Sprintf(`{"n":%d}`, i%7)},
			oneCall{fmt.Sprintf("addd%d", i%3), `{}`},
			oneCall{[]string{"closed", "polite", "visible"}[i%3], `{}`},
		)
	}
	for range 8 {
		calls = append(calls, oneCall{"endless", `{}`})
	}
	for range 4 {
		calls = append(calls, oneCall{"huge", `{}`}, oneCall{"go_add", `{"a":1,"b":2}`}, oneCall{"go_stuck", `{}`}, oneCall{"go_add", `{"a":"x","b":2}`}, oneCall{"go_panics", `{}`}, oneCall{"go_exits", `{}`})
	}
	for _, args := range []string{`null`, `[1]`, `[]`, `"{}"`, `7`, `-0.5`, `true`, ` [ {"a":1} ] `} {
		calls = append(calls, oneCall{"add", args}, oneCall{"polite", args}, oneCall{"denied", args}, oneCall{"closed", args}, oneCall{"nothing_like_it", args})
	}
	return append(calls, oneCall{"add", `{}`}, oneCall{"nothing_like_it", `{}`}, oneCall{"shout", `{"text":null}`}, oneCall{"visible", `{"x":1}`}, oneCall{"add", `{"a":1.5,"b":2}`}, oneCall{"add", `{"a":1e300,"b":2}`}, oneCall{"closed", `{"x":1}`}, oneCall{"polite", `{"x":1}`})
}

// hookLog records the hook events of each call, in order.
type hookLog struct {
	mu     sync.Mutex
	events []string
}

func (l *hookLog) hook(_ context.Context, e call.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := fmt.Sprintf("%s %s %s %s", e.Phase, e.Tool, e.Via, e.Caller.Agent.AgentID)
	if e.Err != nil {
		line += " " + string(e.Err.Code) + " " + e.Err.Message
	}
	l.events = append(l.events, line)
}

func (l *hookLog) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	events := l.events
	l.events = nil
	return events
}

// TestOutcomes_sameOnEveryTransport makes 240 calls of every kind over each
// transport: code, message, value, hook events, audit records and spans are the
// same except for [mayDiffer], and scripts cannot detect the transport.
func TestOutcomes_sameOnEveryTransport(t *testing.T) {
	calls := outcomeCalls()
	if len(calls) < 240 {
		t.Fatalf("only %d calls", len(calls))
	}
	if testing.Short() {
		var some []oneCall
		for i := 0; i < len(calls); i += 3 {
			some = append(some, calls[i])
		}
		calls = some
	}
	type record struct {
		Outcome outcome
		Hooks   []string
	}
	var want []record
	var wantRecords, wantSpans []string
	for i, open := range transports {
		t.Run(open.name, func(t *testing.T) {
			if i > 0 {
				t.Parallel() // after the first, which is the reference
			}
			v := newEvidence(t, outcomeTools)
			addGoTools(t, v.server)
			var got []record
			t.Run("calls", func(t *testing.T) { // the client ends before the server
				client := open.connect(t, v.serve())
				for _, c := range calls {
					got = append(got, record{client(c), v.take()})
				}
			})
			v.close()
			records, spans := v.records(), v.spans()
			if i == 0 {
				want, wantRecords, wantSpans = got, records, spans
				if len(records) != len(calls) || len(spans) < len(calls) {
					t.Errorf("%d calls have %d records and %d spans", len(calls), len(records), len(spans))
				}
				if testing.Short() {
					return
				}
				checkSpread(t, calls, func(i int) outcome { return got[i].Outcome })
				return
			}
			for j := range calls {
				if diff := cmp.Diff(want[j], got[j]); diff != "" {
					t.Errorf("%s %s: %s and %s differ (-first +this)\n%s", calls[j].tool, calls[j].args, transports[0].name, open.name, diff)
				}
			}
			if diff := cmp.Diff(wantRecords, records); diff != "" {
				t.Errorf("the records of %s and %s differ (-first +this)\n%s", transports[0].name, open.name, diff)
			}
			if diff := cmp.Diff(wantSpans, spans); diff != "" {
				t.Errorf("the spans of %s and %s differ (-first +this)\n%s", transports[0].name, open.name, diff)
			}
		})
	}
}

// checkSpread checks that the calls have the intended variety.
func checkSpread(t *testing.T, calls []oneCall, at func(int) outcome) {
	t.Helper()
	codes := map[string]int{}
	for i := range calls {
		codes[at(i).Code]++
		if at(i).NamesFile || at(i).Trace != "" {
			t.Errorf("the response of %s has a location: %+v", calls[i].tool, at(i))
		}
	}
	for _, code := range []string{"", "INVALID_INPUT", "TOOL_NOT_FOUND", "POLICY_DENIED", "EXECUTION_ERROR", "TIMEOUT"} {
		if codes[code] < 8 {
			t.Errorf("only %d calls ended with %q: %v", codes[code], code, codes)
		}
	}
}

func newFront(t *testing.T, log *hookLog) *serve.Front {
	t.Helper()
	s, err := engine.New(engine.Options{
		Name: "test", Hooks: []engine.Hook{log.hook}, Front: serve.Checks{},
		Files: engine.Files{Tools: fstest.MapFS{"t.hcl": {Data: []byte(outcomeTools), Mode: 0o644}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	addGoTools(t, s)
	return frontFor(t, s)
}

// addGoTools adds Go tools with all kinds of outcomes. The stuck one blocks
// until everything else has ended: nothing may wait for it.
func addGoTools(t *testing.T, s *engine.Server) {
	t.Helper()
	end := make(chan struct{})
	t.Cleanup(func() { close(end) })
	type pair struct {
		A int `json:"a"`
		B int `json:"b"`
	}
	type none struct{}
	named := func(name string) engine.ToolOptions { return engine.ToolOptions{Name: name, Timeout: 5 * time.Minute} }
	for _, err := range []error{
		engine.AddTool(s, named("go_add"), func(_ context.Context, _ identity.Agent, in pair) (int, error) { return in.A + in.B, nil }),
		engine.AddTool(s, engine.ToolOptions{Name: "go_stuck", Timeout: 20 * time.Millisecond}, func(context.Context, identity.Agent, none) (int, error) {
			<-end
			return 1, nil
		}),
		engine.AddTool(s, named("go_panics"), func(context.Context, identity.Agent, none) (int, error) { panic("boom") }),
		engine.AddTool(s, named("go_exits"), func(context.Context, identity.Agent, none) (int, error) {
			runtime.Goexit()
			return 1, nil
		}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// canonical returns JSON with sorted keys.
func canonical(raw json.RawMessage) string {
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return string(raw)
	}
	if object, ok := value.(map[string]any); ok {
		if agent, ok := object["agent"].(map[string]any); ok {
			delete(agent, "request_id")
		}
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return string(raw)
	}
	return string(encoded)
}

// valueOf returns the value of MCP content: the structured content if it
// exists.
func valueOf(structured json.RawMessage, content []contentBlock) string {
	if structured != nil {
		return canonical(structured)
	}
	if len(content) == 0 {
		return "null"
	}
	i := slices.IndexFunc(content, func(b contentBlock) bool { return b.Type == "text" })
	return canonical(json.RawMessage(content[i].Text))
}

type contentBlock struct{ Type, Text string }

// TestRPCError_allTransports: the error keeps its code and data over JSON-RPC,
// and is EXECUTION_ERROR elsewhere.
func TestRPCError_allTransports(t *testing.T) {
	front := frontOf(t, `
tool "teapot" {
  run = <<JS
    throw new RpcError(418, "short and stout", { handle: "here" });
  JS
}
`)
	url := listen(t, front)
	header, _ := post(t, url+"/mcp", initialize, nil)
	session := map[string]string{"Mcp-Session-Id": header.Get("Mcp-Session-Id"), "Mcp-Protocol-Version": "2025-11-25"}
	post(t, url+"/mcp", ready, session)
	modern := map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "teapot"}
	teapot := oneCall{"teapot", "{}"}
	const wire = `{"jsonrpc":"2.0","id":1,"error":{"code":418,"message":"short and stout","data":{"handle":"here"}}}`
	for _, row := range []struct {
		name, path, body, want string
		header                 map[string]string
	}{
		{"modern", "/mcp", request(metaModern, teapot), wire, modern},
		{"legacy", "/mcp", request(metaAgent, teapot), wire, session},
		{"REST", "/mcp/execute", `{"tool":"teapot"}`, `{"error":"EXECUTION_ERROR","message":"short and stout"}`, nil},
	} {
		if _, answer := post(t, url+row.path, row.body, row.header); strings.TrimSpace(string(answer)) != row.want {
			t.Errorf("%s: %s", row.name, answer)
		}
	}
}

// TestPanic_redacted makes the clock panic in a method, with a secret that a
// script has read.
func TestPanic_redacted(t *testing.T) {
	const value = "correct-horse-battery"
	shown := []string{value, base64.StdEncoding.EncodeToString([]byte("key:" + value)), hex.EncodeToString([]byte(value))}
	var log syncBuffer
	var broken atomic.Bool
	s, err := engine.New(engine.Options{
		Name: "test", Front: serve.Checks{}, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Files: engine.Files{
			LookupEnv: func(string) (string, bool) { return value, true },
			Config:    fstest.MapFS{"mcpd.hcl": {Data: []byte("secret \"key\" {\n  env    = \"KEY\"\n  reveal = true\n}\n"), Mode: 0o644}},
			Tools:     fstest.MapFS{"t.hcl": {Data: []byte("tool \"reads\" {\n  allow {\n    secrets { names = [\"key\"] }\n  }\n  run = \"return secrets.key.length;\"\n}\n"), Mode: 0o644}},
		},
		Now: func() time.Time {
			if broken.Load() {
				panic("the clock holds " + strings.Join(shown, " "))
			}
			return time.Now()
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	url := listen(t, frontFor(t, s))
	if answer := ask(t, url, "tools/call", "reads"); !strings.Contains(answer, `"text":"21"`) {
		t.Errorf("got %s", answer)
	}
	broken.Store(true)
	answer := ask(t, url, "tools/list", "")
	broken.Store(false)
	if !strings.Contains(answer, `"message":"internal error"`) {
		t.Errorf("got %s", answer)
	}
	output := log.String()
	if !strings.Contains(output, "panic in an MCP method") || strings.Count(output, "[secret:key]") < len(shown) {
		t.Errorf("the log lacks the panic: %s", output)
	}
	if line := lineWith(output, "panic in an MCP method"); !regexp.MustCompile(` request_id=[0-9a-v]{20,} `).MatchString(line) {
		t.Errorf("the panic has no request id: %s", line)
	}
	for _, form := range shown {
		if strings.Contains(output+answer, form) {
			t.Errorf("%s was not redacted: %s\n%s", form, answer, output)
		}
	}
}

// ask makes a request of 2026-07-28, and returns the response.
func ask(t *testing.T, url, method, name string) string {
	t.Helper()
	body := strings.NewReplacer("tools/call", method, "chatty", name).Replace(callChatty)
	_, answer := post(t, url+"/mcp", body, map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Mcp-Name": name})
	return string(answer)
}
