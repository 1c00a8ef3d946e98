package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/extensions/codemode"
	"github.com/mcpd/mcpd/extensions/federation"
	"github.com/mcpd/mcpd/extensions/oidc"
	"github.com/mcpd/mcpd/extensions/postgres"
	"github.com/mcpd/mcpd/extensions/sqlite"
	"github.com/mcpd/mcpd/extensions/typescript"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/scripting"
)

// TestMain makes the test binary a crashing program on demand.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		if be := map[string]func(){crashing: crash, steady: func() { serveStdio(false) }, hostsFail: serveFaultyHosts, hostsDo: serveHealthyHosts, hostOfLabs: serveTestUpstream}[os.Args[1]]; be != nil {
			be()
			return
		}
	}
	debug.SetGCPercent(400) // the heaps are small, and garbage collection takes a quarter of the time
	goleak.VerifyTestMain(m)
}

// files returns a tools directory from pairs of names and texts.
func files(pairs ...string) fstest.MapFS {
	folder := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		folder[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1]), Mode: 0o644}
	}
	return folder
}

// server returns a loaded server that is closed at the end of the test.
func server(t *testing.T, o engine.Options) *engine.Server {
	t.Helper()
	s := unloaded(t, o)
	if _, err := s.Load(t.Context()); err != nil {
		t.Fatalf("load: %v", err)
	}
	return s
}

func unloaded(t *testing.T, o engine.Options) *engine.Server {
	t.Helper()
	if o.Name == "" {
		o.Name = "test"
	}
	if o.Scripts.Programs == nil {
		o.Scripts.Programs = scripting.Inline() // the tests trust their agents
	}
	o.Extensions = append(o.Extensions, codemode.New(), federation.New(), typescript.New(), oidc.New(), postgres.New(), sqlite.New())
	s, err := engine.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

const addTool = `
tool "add" {
  description = "Adds two numbers."
  input "a" { type = integer }
  input "b" { type = integer }
  output "sum" { type = integer }
  run = <<JS
    return { sum: input.a + input.b };
  JS
}
`

func TestExecute_fileTool(t *testing.T) {
	s := server(t, engine.Options{Files: engine.Files{Tools: files("add.hcl", addTool)}})
	got, err := s.Call(t.Context(), "add", map[string]any{"a": 2, "b": 3})
	if err != nil {
		t.Fatal(err)
	}
	if string(got.Structured) != `{"sum":5}` || string(got.Content) != `[{"type":"text","text":"{\"sum\":5}"}]` {
		t.Errorf("structured %s, content %s", got.Structured, got.Content)
	}
	if got.Revision != s.Snapshot().Revision() || got.CallID == "" {
		t.Errorf("revision %q, call id %q", got.Revision, got.CallID)
	}
}

func TestExecute_errorCodes(t *testing.T) {
	s := server(t, engine.Options{Files: engine.Files{Tools: files("a.hcl", addTool, "b.hcl", `
tool "closed" {
  run = <<JS
    return 1;
  JS
}
policy "closed" {
  tools  = ["closed"]
  deny   = "true"
  reason = "Blocked in prod"
}
tool "throws" {
  run = <<JS
    throw new Error("no such customer");
  JS
}
tool "loops" {
  timeout = "20ms"
  run = <<JS
    for (;;) {}
  JS
}
tool "broken_output" {
  output "n" { type = integer }
  run = <<JS
    return { n: "x" };
  JS
}
`)}})
	for _, test := range []struct {
		tool    string
		args    any
		code    call.Code
		message string
	}{
		{"add", map[string]any{"a": "x", "b": 1}, call.InvalidInput, "/a"},
		{"addd", map[string]any{}, call.ToolNotFound, `did you mean "add"?`},
		{"closed", nil, call.PolicyDenied, "Blocked in prod"},
		{"throws", nil, call.ExecutionError, "no such customer"},
		{"broken_output", nil, call.ExecutionError, "output schema"},
		{"loops", nil, call.Timeout, "20ms"},
	} {
		t.Run(test.tool, func(t *testing.T) {
			_, err := s.Call(t.Context(), test.tool, test.args)
			var failed *call.Error
			if !errors.As(err, &failed) || failed.Code != test.code || !strings.Contains(failed.Message, test.message) {
				t.Errorf("got %v, want %s with %q", err, test.code, test.message)
			}
		})
	}
}

// recorder is a Go hook that records events.
type recorder struct {
	mu     sync.Mutex
	events []string
}

func (r *recorder) hook(_ context.Context, e call.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	line := string(e.Phase) + " " + e.Tool
	if e.Err != nil {
		line += " " + string(e.Err.Code)
	}
	r.events = append(r.events, line)
}

func TestHook_startAndOneTerminal(t *testing.T) {
	var seen recorder
	panicking := func(context.Context, identity.Agent, struct{}) (struct{}, error) { panic("boom") }
	waiting := func(ctx context.Context, _ identity.Agent, _ struct{}) (struct{}, error) {
		<-ctx.Done()
		return struct{}{}, ctx.Err()
	}
	s := unloaded(t, engine.Options{
		Files: engine.Files{Tools: files("add.hcl", addTool, "p.hcl", "policy \"no\" {\n  tools = [\"denied\"]\n  deny = \"true\"\n  reason = \"no\"\n}\n")},
		Hooks: []engine.Hook{seen.hook, func(context.Context, call.Event) { panic("hooks may fail") }},
	})
	for options, run := range map[*engine.ToolOptions]func(context.Context, identity.Agent, struct{}) (struct{}, error){
		{Name: "panics", Timeout: time.Minute}:          panicking,
		{Name: "denied", Timeout: time.Minute}:          waiting,
		{Name: "waits", Timeout: 10 * time.Millisecond}: waiting,
	} {
		if err := engine.AddTool(s, *options, run); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for _, call := range []struct {
		ctx  context.Context
		tool string
		args any
		want string
	}{
		{t.Context(), "add", map[string]any{"a": 1, "b": 2}, "end add"},
		{t.Context(), "add", map[string]any{"a": 1}, "error add INVALID_INPUT"},
		{t.Context(), "nothing", nil, "error nothing TOOL_NOT_FOUND"},
		{t.Context(), "denied", nil, "error denied POLICY_DENIED"},
		{t.Context(), "panics", nil, "error panics EXECUTION_ERROR"},
		{t.Context(), "waits", nil, "error waits TIMEOUT"},
		{gone, "waits", nil, "error waits EXECUTION_ERROR"},
	} {
		seen.events = nil
		_, _ = s.Call(call.ctx, call.tool, call.args)
		if diff := cmp.Diff([]string{"start " + call.tool, call.want}, seen.events); diff != "" {
			t.Errorf("%s: hooks (-want +got)\n%s", call.want, diff)
		}
	}
}

func TestReload_keepsSnapshotOnError(t *testing.T) {
	folder := files("add.hcl", addTool)
	var kinds []engine.EventKind
	s := server(t, engine.Options{Files: engine.Files{Tools: folder}, OnEvent: func(e engine.Event) { kinds = append(kinds, e.Kind) }})
	before := s.Snapshot()
	folder["bad.hcl"] = &fstest.MapFile{Data: []byte(`tool "x" { descriptoin = "y" }`), Mode: 0o644}
	report, err := s.Reload(t.Context(), engine.Change{Paths: []string{"bad.hcl"}})
	var problems diag.List
	if !errors.As(err, &problems) || len(problems) == 0 {
		t.Fatalf("reload of a broken file: %v", err)
	}
	if s.Snapshot() != before || report.Revision != before.Revision() {
		t.Error("the snapshot changed")
	}
	if status := s.Status(); status.Synchronized || status.FailedLoads != 1 || len(status.Problems) == 0 {
		t.Errorf("status %+v", status)
	}
	delete(folder, "bad.hcl")
	if _, err := s.Reload(t.Context(), engine.Change{Paths: []string{"bad.hcl"}}); err != nil {
		t.Fatal(err)
	}
	if !s.Status().Synchronized {
		t.Error("not synchronized after the file is gone")
	}
	if diff := cmp.Diff([]engine.EventKind{engine.Started, engine.ReloadFailed, engine.Reloaded}, kinds); diff != "" {
		t.Error(diff)
	}
}

func TestReload_reusesTools(t *testing.T) {
	folder := files("add.hcl", addTool, "b.hcl", strings.ReplaceAll(addTool, `"add"`, `"plus"`))
	s := server(t, engine.Options{Files: engine.Files{Tools: folder}})
	add, plus := s.Snapshot().Tool("add"), s.Snapshot().Tool("plus")
	folder["b.hcl"] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(addTool, `"add"`, `"plus2"`)), Mode: 0o644}
	if _, err := s.Reload(t.Context(), engine.Change{Paths: []string{"b.hcl"}}); err != nil {
		t.Fatal(err)
	}
	now := s.Snapshot()
	if now.Tool("add") != add {
		t.Error("an unchanged tool was compiled again")
	}
	if now.Tool("plus") != nil || now.Tool("plus2") == nil || now.Tool("plus2") == plus {
		t.Error("the renamed tool is not what serves")
	}
}

func TestNew_twoServers(t *testing.T) {
	var group sync.WaitGroup
	for i := range 2 {
		name := fmt.Sprintf("tool%d", i)
		s := server(t, engine.Options{Name: name, Files: engine.Files{Tools: files("t.hcl", fmt.Sprintf("tool %q {\n  run = <<JS\n    return %d;\n  JS\n}\n", name, i))}})
		group.Go(func() {
			for range 50 {
				got, err := s.Call(context.Background(), name, nil)
				if err != nil || string(got.Value) != fmt.Sprint(i) {
					t.Errorf("%s: %s, %v", name, got.Value, err)
				}
			}
		})
	}
	group.Wait()
}

func TestGoTool_agentAndSchemas(t *testing.T) {
	type in struct {
		Name string `json:"name" jsonschema:"who to greet"`
	}
	type out struct {
		Greeting string `json:"greeting"`
	}
	s := unloaded(t, engine.Options{})
	err := engine.AddTool(s, engine.ToolOptions{Name: "greet", Description: "Greets."}, func(_ context.Context, agent identity.Agent, v in) (out, error) {
		return out{"Hello " + v.Name + " from " + agent.AgentID}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Call(t.Context(), "greet", in{"Ada"})
	if err != nil || string(got.Structured) != `{"greeting":"Hello Ada from anonymous"}` {
		t.Fatalf("%s, %v", got.Structured, err)
	}
	var schema struct {
		Properties map[string]struct{ Type, Description string }
		Required   []string
	}
	m := s.Snapshot().Tool("greet").Metadata()
	if err := json.Unmarshal(m.InputSchema, &schema); err != nil {
		t.Fatal(err)
	}
	if p := schema.Properties["name"]; p.Type != "string" || p.Description != "who to greet" || len(schema.Required) != 1 {
		t.Errorf("schema %s", m.InputSchema)
	}
	if _, err := s.Call(t.Context(), "greet", map[string]any{"nam": "x"}); err == nil {
		t.Error("an unknown argument was accepted")
	}
	if err := engine.AddTool(s, engine.ToolOptions{Name: "greet"}, func(context.Context, identity.Agent, in) (out, error) { return out{}, nil }); err == nil {
		t.Error("a second tool of the same name was accepted")
	}
	if err := engine.AddTool(s, engine.ToolOptions{Name: "no spaces"}, func(context.Context, identity.Agent, in) (out, error) { return out{}, nil }); err == nil {
		t.Error("a bad name was accepted")
	}
	if err := engine.AddTool[in, out](s, engine.ToolOptions{Name: "nil"}, nil); err == nil {
		t.Error("a nil function was accepted")
	}
}

func TestPolicy_order(t *testing.T) {
	operator := files("mcpd.hcl", `
server { name = "ordered" }
policy "operator" {
  deny   = "args.a == 1"
  reason = "operator"
}
`)
	var asked []string
	s := server(t, engine.Options{
		Files: engine.Files{
			Config:     operator,
			ConfigPath: "mcpd.hcl",
			Tools: files("add.hcl", addTool+`
policy "file" {
  tools  = ["add"]
  deny   = "args.a <= 3"
  reason = "file"
}
`),
		},
		Policies: []engine.Policy{func(in engine.PolicyInput) engine.Decision {
			asked = append(asked, in.Tool)
			if in.Args["a"] == int64(2) {
				return engine.Deny("go")
			}
			return engine.Allow()
		}},
	})
	for a, want := range map[int]string{1: "operator", 2: "go", 3: "file", 4: ""} {
		_, err := s.Call(t.Context(), "add", map[string]any{"a": a, "b": 0})
		var failed *call.Error
		got := ""
		if errors.As(err, &failed) {
			got = failed.Message
		}
		if got != want {
			t.Errorf("a = %d: denied by %q, want %q", a, got, want)
		}
	}
	if len(asked) != 3 {
		t.Errorf("the Go policy was called %d times, want 3", len(asked))
	}
}

func TestPolicy_beforeValidation(t *testing.T) {
	s := server(t, engine.Options{Files: engine.Files{Tools: files("add.hcl", addTool+`
policy "readers" {
  allow  = "principal.scopes.exists(s, s == 'write') && args.a > 0"
  reason = "writers only"
}
`)}})
	_, err := s.Call(t.Context(), "add", map[string]any{"a": "not a number"})
	var failed *call.Error
	if !errors.As(err, &failed) || failed.Code != call.PolicyDenied || failed.Message != "writers only" {
		t.Errorf("got %v", err)
	}
	if visible := s.Visible(t.Context(), call.Tools, identity.Caller{Principal: identity.Anonymous()}); len(visible.Tools) != 0 || !visible.Private {
		t.Errorf("a denied tool is listed: %+v", visible)
	}
	writer := identity.Anonymous()
	writer.Scopes = []string{"write"}
	if visible := s.Visible(t.Context(), call.Tools, identity.Caller{Principal: writer}); len(visible.Tools) != 1 {
		t.Error("a tool that depends on the arguments is not listed")
	}
}

// A script that returns nothing is an error while loading; one that returns in some cases is one at
// run time.
func TestReturn_forgotten(t *testing.T) {
	const sum = `
tool "sum" {
  input "a" { type = integer }
  output "sum" { type = integer }
  run = <<JS
    const sum = input.a + 1;
    ({ sum });
  JS
}
`
	const some = `
tool "some" {
  input "a" { type = integer }
  output "sum" { type = integer }
  run = "if (input.a > 1) return { sum: input.a }"
}
`
	report, err := unloaded(t, engine.Options{Files: engine.Files{Tools: files("sum.hcl", sum+some)}}).Load(t.Context())
	if err == nil {
		t.Error("the files were loaded")
	}
	want := []string{"tools.d/sum.hcl:7:6: error: the value of the last line is dropped, and the script returns nothing; write return before it"}
	var got []string
	for _, d := range report.Problems {
		got = append(got, d.String())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	s := server(t, engine.Options{Files: engine.Files{Tools: files("some.hcl", some)}})
	if _, err := s.Call(t.Context(), "some", map[string]any{"a": 1}); err == nil || !strings.Contains(err.Error(), "the script returned nothing; its last line must return an object") {
		t.Errorf("got %v", err)
	}
}

func TestNew_warnsOfScriptsInProcess(t *testing.T) {
	for name, test := range map[string]struct {
		options engine.Options
		warns   int
	}{
		"tool files":            {engine.Options{Files: engine.Files{Tools: files("add.hcl", addTool)}}, 1},
		"an operator's file":    {engine.Options{Files: engine.Files{Config: files("mcpd.hcl", "")}}, 1},
		"no files":              {engine.Options{}, 0},
		"an executor is chosen": {engine.Options{Files: engine.Files{Tools: files("add.hcl", addTool)}, Scripts: engine.Scripts{Executor: scripting.Inline()}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			log := &logBuffer{}
			test.options.Logger = log.logger()
			s := server(t, test.options)
			if _, err := s.Reload(t.Context(), engine.Change{}); err != nil {
				t.Fatal(err)
			}
			if got := strings.Count(log.String(), "scripts run in this process"); got != test.warns {
				t.Errorf("%d warnings, want %d:\n%s", got, test.warns, log.String())
			}
		})
	}
}
