package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/execution/calltree"
)

// resultTools has tools with every kind of result and failure, and one that calls them.
const resultTools = `
tool "object" {
  input "id" { type = string }
  output "id" { type = string }
  run = "return { id: input.id };"
}
tool "text" { run = "return 'plain';" }
tool "plain" { run = "return { free: [1, null] };" }
tool "nothing" { run = "return;" }
tool "rich" { run = "return [content.text('a'), content.text('b')];" }
tool "throws" { run = "throw new ToolError('no such order', { details: { secret: 1 } });" }
tool "broken" {
  output "n" { type = integer }
  run = "return { n: 'x' };"
}
tool "slow" {
  timeout = "30ms"
  run     = "await new Promise((r) => setTimeout(r, 60000));"
}
tool "denied" { run = "return 1;" }
tool "hidden" { run = "return 1;" }
tool "asks" {
  allow {
    ask { elicit = true }
  }
  run = "return (await elicit({ message: 'Sure?', schema: { type: 'object', properties: { ok: { type: 'boolean' } } } })).action;"
}
tool "who" { run = "return [call.via, call.depth, call.parent, call.tool, agent.agent_id].join(' ');" }
policy "no" {
  tools  = ["denied"]
  deny   = "call.via == 'tool' && call.depth == 1 && call.parent == 'run' && principal.id == 'anonymous'"
  reason = "Not from here"
}
policy "gone" {
  tools    = ["hidden"]
  deny     = "true"
  reason   = "never told"
  disclose = "hide"
}
tool "run" {
  input "name" { type = string }
  input "args" {
    type     = any
    required = false
  }
  allow {
    call { tools = ["*"] }
  }
  run = <<JS
    try {
      return { value: (await tools[input.name](input.args)) ?? null };
    } catch (e) {
      return { error: [e.name, e.code ?? null, e.message].join(" ") };
    }
  JS
}
`

func TestNested_pipeline(t *testing.T) {
	s := server(t, engine.Options{Files: engine.Files{Tools: files("desk.hcl", resultTools)}})
	for _, test := range []struct{ name, args, want string }{
		{"object", `{"id":"a"}`, `{"value":{"id":"a"}}`},
		{"text", `{}`, `{"value":"plain"}`},
		{"plain", `{}`, `{"value":{"free":[1,null]}}`},
		{"nothing", `{}`, `{"value":null}`},
		{"rich", `{}`, `{"value":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`},
		{"who", `{}`, `{"value":"tool 1 run who anonymous"}`},
		{"object", `{"id":1}`, `{"error":"HostError INVALID_INPUT the arguments do not fit the tool's input schema: /id must be a string, not a number"}`},
		{"throws", `{}`, `{"error":"HostError EXECUTION_ERROR no such order"}`},
		{"broken", `{}`, `{"error":"HostError EXECUTION_ERROR the tool's result does not fit its output schema: /n must be an integer, not a string"}`},
		{"slow", `{}`, `{"error":"HostError TIMEOUT the tool did not end within its timeout of 30ms"}`},
		{"denied", `{}`, `{"error":"HostError POLICY_DENIED Not from here"}`},
		{"hidden", `{}`, `{"error":"HostError TOOL_NOT_FOUND no tool named \"hidden\""}`},
		{"objekt", `{}`, `{"error":"HostError TOOL_NOT_FOUND no tool named \"objekt\"; did you mean \"object\"?"}`},
		{"asks", `{}`, `{"error":"HostError EXECUTION_ERROR a tool that another tool calls cannot ask the client; ask in the tool that calls it"}`},
		{"object", `"text"`, `{"error":"TypeError  tools.object: the arguments must be an object, such as { name: value }"}`},
		{"object", `null`, `{"error":"TypeError  tools.object: the arguments must be an object, such as { name: value }"}`},
		{"object", `[1]`, `{"error":"TypeError  tools.object: the arguments must be an object, such as { name: value }"}`},
	} {
		got := s.Execute(t.Context(), call.Request{
			Name: "run", Arguments: json.RawMessage(fmt.Sprintf(`{"name":%q,"args":%s}`, test.name, test.args)), Caller: anonymous(),
			Can: call.Capabilities{Form: true},
		})
		if got.Err != nil {
			t.Fatalf("%s: %v", test.name, got.Err)
		}
		if diff := cmp.Diff(test.want, string(got.Value)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", test.name, diff)
		}
	}
	if running := s.Status().Running; running != 0 {
		t.Errorf("%d calls are still running", running)
	}
}

// anonymous returns an unauthenticated caller.
func anonymous() identity.Caller {
	return identity.Caller{Principal: identity.Anonymous(), Agent: identity.Agent{AgentID: identity.AnonymousAgent}}
}

// goTool registers a Go tool before the files that name it are loaded.
func goTool(t *testing.T, s *engine.Server, name string, run func(ctx context.Context) (string, error)) {
	t.Helper()
	err := engine.AddTool(s, engine.ToolOptions{Name: name, Timeout: time.Minute}, func(ctx context.Context, _ identity.Agent, _ struct{}) (string, error) { return run(ctx) })
	if err != nil {
		t.Fatal(err)
	}
}

// caller returns a file with a tool that may call all others.
func caller(body string) string {
	return `
tool "outer" {
  timeout = "20s"
  allow {
    call { tools = ["*"] }
  }
  run = <<JS
    ` + body + `
  JS
}
`
}

func TestNested_goTool(t *testing.T) {
	s := unloaded(t, engine.Options{Files: engine.Files{Tools: files("t.hcl", caller(`
    const panicked = await tools.panics().catch((e) => e.code + ": " + e.message);
    const failed = await tools.fails().catch((e) => e.code + ": " + e.message);
    return [await tools.answers({}), panicked, failed];`))}})
	goTool(t, s, "answers", func(context.Context) (string, error) { return "42", nil })
	goTool(t, s, "panics", func(context.Context) (string, error) { panic("secret") })
	goTool(t, s, "fails", func(context.Context) (string, error) { return "", errors.New("no paper") })
	wantValue(t, s, call.Request{Name: "outer"}, `["42","EXECUTION_ERROR: the tool failed inside the server","EXECUTION_ERROR: no paper"]`)
}

func TestNested_sameSnapshot(t *testing.T) {
	folder := files("outer.hcl", caller(`
    const before = await tools.version();
    await tools.reload();
    return before + (await tools.version());`), "version.hcl", `tool "version" { run = "return 'one';" }`)
	s := unloaded(t, engine.Options{Files: engine.Files{Tools: folder}})
	goTool(t, s, "reload", func(ctx context.Context) (string, error) {
		folder["version.hcl"].Data = []byte(`tool "version" { run = "return 'two';" }`)
		_, err := s.Load(ctx)
		return "", err
	})
	wantValue(t, s, call.Request{Name: "outer"}, `"oneone"`)
	wantValue(t, s, call.Request{Name: "outer"}, `"twotwo"`)
}

func TestNested_maxDepth(t *testing.T) {
	s := server(t, engine.Options{Files: engine.Files{Tools: files("outer.hcl", caller(`
    try {
      return await tools.outer();
    } catch (e) {
      return call.depth + " " + (call.depth === 0 ? call.parent : call.parent + " " + call.via) + " " + e.code + " " + e.message;
    }`))}})
	wantValue(t, s, call.Request{Name: "outer"}, `"8 outer tool DENIED calls of tools nest at most 8 deep"`)
}

func TestNested_maxCalls(t *testing.T) {
	var began, ended, running, most atomic.Int64
	s := server(t, engine.Options{
		Hooks: []engine.Hook{func(_ context.Context, e call.Event) {
			if e.Depth > calltree.MaxDepth {
				return // which is rejected
			}
			if e.Phase == call.Start {
				began.Add(1)
				for now := running.Add(1); now > most.Load(); {
					most.Store(now)
				}
			} else {
				ended.Add(1)
				running.Add(-1)
			}
		}},
		Files: engine.Files{Tools: files("outer.hcl", caller(`for (;;) await Promise.allSettled(Array.from({ length: 20 }, () => tools.outer()));`))},
	})
	got := s.Execute(t.Context(), call.Request{Name: "outer"})
	if got.Err == nil || got.Err.Code != call.ExecutionError || got.Err.Message != "one call makes at most 256 tool calls, including nested calls" {
		t.Errorf("got %v", got.Err)
	}
	if began.Load() != ended.Load() || began.Load() > calltree.MaxCalls+1 {
		t.Errorf("%d calls started and %d ended", began.Load(), ended.Load())
	}
	if most.Load() > calltree.MaxDepth*calltree.MaxParallel+1 {
		t.Errorf("%d calls ran at once", most.Load())
	}
}

func TestNested_exactlyMaxCalls(t *testing.T) {
	s := server(t, engine.Options{Files: engine.Files{Tools: files("outer.hcl", caller(`
    let sum = 0;
    for (let i = 0; i < 4; i++) for (const n of await Promise.all(Array.from({ length: 64 }, () => tools.one()))) sum += n;
    return sum;`), "one.hcl", "tool \"one\" {\n  timeout = \"20s\"\n  run     = \"return 1;\"\n}\n")}})
	wantValue(t, s, call.Request{Name: "outer"}, `256`)
}

func TestNested_fullServer(t *testing.T) {
	s := server(t, engine.Options{
		Files: engine.Files{
			Config: files("mcpd.hcl", `limits { concurrency = 1 }`),
			Tools:  files("outer.hcl", caller(`return call.depth === 5 ? "deep" : await tools.outer();`)),
		},
	})
	wantValue(t, s, call.Request{Name: "outer"}, `"deep"`)
}

func TestNested_draining(t *testing.T) {
	s := unloaded(t, engine.Options{Files: engine.Files{Tools: files("outer.hcl", caller(`
    await tools.drain();
    return tools.inner();`), "inner.hcl", `tool "inner" { run = "return 'served';" }`)}})
	drained := make(chan error, 1)
	goTool(t, s, "drain", func(context.Context) (string, error) {
		go func() { drained <- s.Drain(context.Background()) }()
		for !s.Status().Draining {
			runtime.Gosched()
		}
		return "", nil
	})
	wantValue(t, s, call.Request{Name: "outer"}, `"served"`)
	if err := <-drained; err != nil {
		t.Error(err)
	}
}

func TestNested_cancelled(t *testing.T) {
	s := unloaded(t, engine.Options{Files: engine.Files{Tools: files("outer.hcl", caller(`return tools.waits();`))}})
	ctx, cancel := context.WithCancel(t.Context())
	ended, left := make(chan error, 1), time.Duration(0)
	goTool(t, s, "waits", func(ctx context.Context) (string, error) {
		deadline, _ := ctx.Deadline()
		left = time.Until(deadline)
		cancel()
		<-ctx.Done()
		ended <- ctx.Err()
		return "", ctx.Err()
	})
	got := s.Execute(ctx, call.Request{Name: "outer"})
	if got.Err == nil || got.Err.Message != "the call was canceled" {
		t.Errorf("got %v", got.Err)
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the nested call ended with %v", err)
	}
	if left > 20*time.Second {
		t.Errorf("the nested call has %s, and the outer one 20 s in all", left)
	}
}

// If a prompt could have the name of a tool, a policy for one would cover the other.
func TestNested_ambiguousNames(t *testing.T) {
	s := server(t, engine.Options{Files: engine.Files{Tools: files("t.hcl", `
tool "inner" { run = "return call.parent;" }
tool "total" {
  allow {
    call { tools = ["inner"] }
  }
  run = "return tools.inner();"
}
prompt "total" {
  allow {
    call { tools = ["inner"] }
  }
  run = "return tools.inner().catch((e) => e.message);"
}
policy "total_alone" {
  tools  = ["inner"]
  deny   = "call.parent != 'total'"
  reason = "not for this one"
}
`)}})
	wantValue(t, s, call.Request{Name: "total"}, `"total"`)
	got := s.Execute(t.Context(), call.Request{Kind: call.Prompts, Name: "total"})
	if got.Err != nil || !strings.Contains(string(got.Reply), "not for") {
		t.Errorf("got %s, %v", got.Reply, got.Err)
	}
}

func TestNested_deadline(t *testing.T) {
	s := server(t, engine.Options{Files: engine.Files{Tools: files("outer.hcl", caller(`return Math.abs((await tools.inner()) - call.deadline) < 5000 && (await tools.brief()) < call.deadline;`), "inner.hcl", `
tool "inner" {
  timeout = "5m"
  run     = "return call.deadline;"
}
tool "brief" { run = "return call.deadline;" }
`)}})
	wantValue(t, s, call.Request{Name: "outer"}, `true`)
}

func TestNested_replay(t *testing.T) {
	var calls atomic.Int64
	s := unloaded(t, engine.Options{Files: engine.Files{Tools: files("outer.hcl", `
tool "outer" {
  allow {
    call { tools = ["counts"] }
    ask { elicit = true }
  }
  run = <<JS
    const number = await tools.counts();
    const answer = await elicit({ message: "Go on?", schema: { type: "object", properties: { ok: { type: "boolean" } } } });
    return number + " " + answer.action + " " + (await tools.counts());
  JS
}`)}})
	goTool(t, s, "counts", func(context.Context) (string, error) { return fmt.Sprint(calls.Add(1)), nil })
	request := call.Request{Name: "outer", Can: call.Capabilities{Form: true}, Caller: anonymous()}
	asked := s.Execute(t.Context(), request)
	if asked.Ask == nil {
		t.Fatalf("no input request: %v", asked.Err)
	}
	request.Resume = &call.Resume{State: asked.Ask.State, Responses: map[string]json.RawMessage{"elicit": json.RawMessage(`{"action":"accept","content":{}}`)}}
	wantValue(t, s, request, `"1 accept 2"`)
	if calls.Load() != 2 {
		t.Errorf("%d calls were made, want 2", calls.Load())
	}
}

func TestNested_limits(t *testing.T) {
	s := server(t, engine.Options{Files: engine.Files{Tools: files("outer.hcl", caller(`
    await tools.inner();
    return tools.inner().catch((e) => e.code);`), "inner.hcl", `
tool "inner" { run = "return 1;" }
limit "one" {
  tools = ["inner"]
  rate  = "1/h"
}
`)}})
	wantValue(t, s, call.Request{Name: "outer"}, `"POLICY_DENIED"`)
}

func TestNested_logs(t *testing.T) {
	log := &logBuffer{}
	s := server(t, engine.Options{Logger: log.logger(), Files: engine.Files{Tools: files("outer.hcl", caller(`return tools.inner();`), "inner.hcl", `
tool "inner" {
  run = <<JS
    log.info("from within");
    progress(1, 2);
    throw new Error("over");
  JS
}`)}})
	told := &clientRecorder{}
	got := s.Execute(t.Context(), call.Request{Name: "outer", Emit: told})
	if got.Err == nil || got.Err.Message != "over" || len(told.told) > 0 {
		t.Errorf("got %v, and the client got %v", got.Err, told.told)
	}
	for _, want := range []string{"from within", "tool=inner", "parent_id=" + got.CallID} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %s:\n%s", want, log.String())
		}
	}
}

// clientRecorder records the notifications to a client.
type clientRecorder struct {
	mu   sync.Mutex
	told []string
}

func (e *clientRecorder) record(what string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.told = append(e.told, what)
}

func (e *clientRecorder) Progress(float64, *float64, string)       { e.record("progress") }
func (e *clientRecorder) Log(_, message string, _ json.RawMessage) { e.record(message) }
func (e *clientRecorder) CloseStream()                             { e.record("close") }
