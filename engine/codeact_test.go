package engine_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/scripting"
)

// codeTools has the tools for agent code.
const codeTools = `
tool "search_web" {
  read_only = true
  input "query" { type = string }
  input "max_results" {
    type    = integer
    default = 3
  }
  run = <<JS
    return Array.from({ length: input.max_results }, (_, i) => input.query + " " + i);
  JS
}
tool "read_file" {
  read_only = true
  input "path" { type = string }
  output "debug" { type = bool }
  run = <<JS
    if (input.path !== "/workspace/config.json") throw new ToolError("no file " + input.path);
    return { debug: true };
  JS
}
tool "write_file" {
  input "path" { type = string }
  run     = "return 'wrote ' + input.path;"
  dry_run = "return 'would write ' + input.path;"
}
tool "erase-file" {
  destructive = true
  input "path" { type = string }
  run = "return 'erased ' + input.path;"
}
tool "picture" {
  read_only = true
  run = <<JS
    return [content.text("see"), content.image(new Uint8Array([1, 2, 3]), "image/png")];
  JS
}
tool "secret_tool" {
  run = "return 1;"
}
policy "no_secrets" {
  tools  = ["secret_tool"]
  deny   = "true"
  reason = "Nobody may"
}
`

// codeServer returns a server with code mode.
func codeServer(t *testing.T, block string, more ...string) *engine.Server {
	t.Helper()
	return server(t, engine.Options{Files: engine.Files{Config: files("mcpd.hcl", "codeact {\n"+block+"\n}\n"+strings.Join(more, "\n")), Tools: files("a.hcl", codeTools)}})
}

// runCodeCall returns a call of run_code.
func runCodeCall(text string) call.Request {
	arguments, _ := json.Marshal(map[string]string{"code": text})
	return tool("run_code", string(arguments))
}

func TestCode_rfcExample(t *testing.T) {
	result := executeCall(t, codeServer(t, ""), runCodeCall(`
// Tools are already available, just use them directly
results = await search_web({ query: "JavaScript async patterns", max_results: 5 })
print(`+"`Found ${results.length} results`"+`)

// Read configuration
config = await read_file({ path: "/workspace/config.json" })
print(`+"`Config: ${JSON.stringify(config)}`"+`)
`))
	var ran struct{ Stdout string }
	if err := json.Unmarshal(result.Structured, &ran); err != nil || ran.Stdout != "Found 5 results\nConfig: {\"debug\":true}\n" {
		t.Errorf("%v, it prints %q: %s", err, ran.Stdout, outcomeLine(result))
	}
}

func TestCode_report(t *testing.T) {
	s := codeServer(t, "")
	for name, c := range map[string]struct{ code, want string }{
		"the last expression":       {`const r = await search_web({ query: "x" }); r.length`, `{"result":3,"stdout":"","calls":[{"tool":"search_web","outcome":"ok"}]}`},
		"what return returns":       {`return { a: [1] };`, `{"result":{"a":[1]},"stdout":"","calls":[]}`},
		"nothing":                   {`const x = 1;`, `{"stdout":"","calls":[]}`},
		"imports that are left out": {"import fs from \"fs\"\nfrom tools import search_web\n1", `{"result":1,"stdout":"","calls":[],"notes":["import statements are not needed: removed line 1: import fs from \"fs\"","import statements are not needed: removed line 2: from tools import search_web"]}`},
		"a fence of Markdown":       {"```js\nawait search_web({ query: \"x\", max_results: 1 })\n```", `{"result":["x 0"],"stdout":"","calls":[{"tool":"search_web","outcome":"ok"}],"notes":["code needs no Markdown fence: removed the fence around it"]}`},
		"calls at once":             {`await parallel([search_web({ query: "x", max_results: 1 }), read_file({ path: "/workspace/config.json" })])`, `{"result":[["x 0"],{"debug":true}],"stdout":"","calls":[{"tool":"search_web","outcome":"ok"},{"tool":"read_file","outcome":"ok"}]}`},
		"a failure that is caught":  {`try { await read_file({ path: "x" }) } catch (e) { e.code + " " + e.message }; 2`, `{"result":2,"stdout":"","calls":[{"tool":"read_file","outcome":"EXECUTION_ERROR"}]}`},
		"a name with a dash":        {`await tools["erase-file"]({ path: "x" })`, `{"result":"erased x","stdout":"","calls":[{"tool":"erase-file","outcome":"ok"}]}`},
		"types":                     {`const n: number = 3; n as number`, `{"result":3,"stdout":"","calls":[]}`},
	} {
		if got := executeCall(t, s, runCodeCall(c.code)); string(got.Structured) != c.want {
			t.Errorf("%s: got  %s %s\nwant %s", name, got.Structured, outcomeLine(got), c.want)
		}
	}
}

func TestCode_content(t *testing.T) {
	got := executeCall(t, codeServer(t, ""), runCodeCall(`await picture()`))
	var blocks []struct{ Type string }
	if err := json.Unmarshal(got.Content, &blocks); err != nil || len(blocks) != 3 || blocks[0].Type != "text" || blocks[2].Type != "image" {
		t.Errorf("%v: %s", err, got.Content)
	}
}

func TestCode_failureReport(t *testing.T) {
	s := codeServer(t, `  timeout = "1s"`)
	for name, c := range map[string]struct{ code, want string }{
		"what it throws": {"console.log('begun');\nawait write_file({ path: 'a' });\nawait read_file({ path: 'b' });",
			"EXECUTION_ERROR: HostError: no file b (EXECUTION_ERROR of read_file)\n  at 3:7\n    3 | await read_file({ path: 'b' });\n      |       ^^^^^^^^^\nIt had printed:\nbegun\nIt made these calls, which are not undone:\n- write_file: ok\n- read_file: EXECUTION_ERROR"},
		"its deadline": {"console.log('begun'); await write_file({ path: 'a' }); for (;;) {}",
			"TIMEOUT: the tool did not end within its timeout of 1s\nIt had printed:\nbegun\nIt made these calls, which are not undone:\n- write_file: ok"},
		"a mistake in it": {"const r = await serch_web({ query: 'x' });",
			"EXECUTION_ERROR: ReferenceError: serch_web is not defined; did you mean search_web?"},
		"arguments of Python": {`search_web(query="x")`,
			"EXECUTION_ERROR: script-keywords at 1:1: search_web(name=value) is not valid JavaScript\n  1 | search_web(query=\"x\")\n    | ^^^^^^^^^^^^^^^^^^^^^\n  write await search_web({ query: \"x\" })"},
		"no code": {"", "INVALID_INPUT: "},
	} {
		if got := outcomeLine(executeCall(t, s, runCodeCall(c.code))); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, c.want)
		}
	}
}

// A call that is interrupted, or still queued, may have had effects.
func TestCode_interruptedCall(t *testing.T) {
	s := server(t, engine.Options{Files: engine.Files{Config: files("mcpd.hcl", "codeact {\n  timeout      = \"300ms\"\n  max_parallel = 1\n}\n"), Tools: files("a.hcl", codeTools+`
tool "sleep" {
  timeout = "1m"
  run     = "await new Promise(done => setTimeout(done, 60000));"
}
`)}})
	want := "TIMEOUT: the tool did not end within its timeout of 300ms\nIt made these calls, which are not undone:\n- read_file: ok\n- sleep: unknown, 2 times"
	if diff := cmp.Diff(want, outcomeLine(executeCall(t, s, runCodeCall(`await read_file({ path: "/workspace/config.json" }); await parallel([sleep(), sleep()])`)))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestCode_print(t *testing.T) {
	got := executeCall(t, codeServer(t, ""), runCodeCall("console.log('a < b && c > d'); ({ tag: '<b>' })"))
	var blocks []struct{ Text string }
	if err := json.Unmarshal(got.Content, &blocks); err != nil {
		t.Fatal(err)
	}
	if want := `{"result":{"tag":"<b>"},"stdout":"a < b && c > d\n","calls":[]}`; len(blocks) != 1 || blocks[0].Text != want {
		t.Errorf("the model reads %+v, want %s", blocks, want)
	}
}

func TestCode_failurePosition(t *testing.T) {
	s := codeServer(t, `  timeout = "200ms"`, "server {\n  expose_traces = true\n}")
	for text, want := range map[string]string{
		"await read_file({ path: 'b' });": "EXECUTION_ERROR: HostError: no file b (EXECUTION_ERROR of read_file)\n  at 1:7\n    1 | await read_file({ path: 'b' });\n      |       ^^^^^^^^^\nIt made these calls, which are not undone:\n- read_file: EXECUTION_ERROR",
		"for (;;) {}":                     "TIMEOUT: the tool did not end within its timeout of 200ms",
	} {
		got := executeCall(t, s, runCodeCall(text))
		if diff := cmp.Diff(want, outcomeLine(got)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", text, diff)
		}
		if got.Err == nil || got.Err.Code == call.ExecutionError && got.Err.Trace != "" {
			t.Errorf("%s: a trace repeats it: %+v", text, got.Err)
		}
	}
}

func TestCode_callsPipeline(t *testing.T) {
	var mu sync.Mutex
	var heard []call.Event
	s := server(t, engine.Options{
		Files: engine.Files{Config: files("mcpd.hcl", `
codeact {
  tools = ["*_web", "write_file", "read_file"]
}
policy "by_code_alone" {
  tools  = ["write_file"]
  deny   = "call.via != 'code' || call.parent != 'run_code' || args.path == 'x'"
  reason = "Not so"
}
limit "once" {
  tools = ["read_file"]
  rate  = "1/h"
}
`), Tools: files("a.hcl", codeTools)},
		Hooks: []engine.Hook{func(_ context.Context, e call.Event) {
			mu.Lock()
			defer mu.Unlock()
			if e.Phase != call.Start {
				heard = append(heard, e)
			}
		}},
	})
	got := executeCall(t, s, runCodeCall(`
const codes = [];
for (const path of ["a", "x"]) {
  try { codes.push(await write_file({ path })) } catch (e) { codes.push(e.code + " " + e.message) }
}
try { await write_file({ paht: "a" }) } catch (e) { codes.push(e.code) }
const config = { path: "/workspace/config.json" };
codes.push(await read_file(config));
try { await read_file(config) } catch (e) { codes.push(e.code) }
try { const name = "erase-file"; await tools[name]({ path: "a" }) } catch (e) { codes.push(e.name) }
codes`))
	var ran struct{ Result json.RawMessage }
	_ = json.Unmarshal(got.Structured, &ran)
	if want := `["wrote a","POLICY_DENIED Not so","INVALID_INPUT",{"debug":true},"POLICY_DENIED","TypeError"]`; string(ran.Result) != want {
		t.Errorf("got  %s %s\nwant %s", ran.Result, outcomeLine(got), want)
	}
	if direct := outcomeLine(executeCall(t, s, tool("write_file", `{"path":"a"}`))); direct != "POLICY_DENIED: Not so" {
		t.Errorf("a call of a client: %s", direct)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(heard) < 6 || heard[0].Tool != "write_file" || heard[0].Via != call.ViaCode || heard[0].ParentID != got.CallID || heard[0].Depth != 1 {
		t.Errorf("%d end events, the first is %+v", len(heard), heard)
	}
}

func TestCode_callBudget(t *testing.T) {
	s := codeServer(t, "  max_calls  = 3\n  max_stdout = \"20B\"")
	got := executeCall(t, s, runCodeCall(`
const codes = [];
for (let i = 0; i < 5; i++) {
  try { await search_web({ query: "x", max_results: 1 }) } catch (e) { codes.push(e.code + " " + e.message) }
}
for (let i = 0; i < 100; i++) print("a line");
codes`))
	var ran struct {
		Result []string
		Stdout string
		Calls  []struct{ Outcome string }
	}
	if err := json.Unmarshal(got.Structured, &ran); err != nil {
		t.Fatalf("%v: %s", err, outcomeLine(got))
	}
	refused := "DENIED the program has made 3 calls, the maximum"
	if diff := cmp.Diff([]string{refused, refused}, ran.Result); diff != "" || len(ran.Calls) != 5 || len(ran.Stdout) > 100 || !strings.HasPrefix(ran.Stdout, "a line\na line\n") {
		t.Errorf("%d calls, printed %q (-want +got)\n%s", len(ran.Calls), ran.Stdout, diff)
	}
}

func TestPlan_readsOnly(t *testing.T) {
	s := codeServer(t, "", `
policy "ask" {
  tools             = ["erase-file"]
  requires_approval = "true"
  reason            = "Gone is gone"
}
policy "not_there" {
  tools  = ["write_file"]
  deny   = "args.path == 'x'"
  reason = "Not there"
}`)
	r := runCodeCall(`
const seen = await search_web({ query: "x", max_results: 1 });
const wrote = await write_file({ path: seen[0] });
const erased = await tools["erase-file"]({ path: "b" });
let denied;
try { await write_file({ path: "x" }) } catch (e) { denied = e.code }
return [seen, wrote, erased, denied];`)
	var arguments map[string]string
	_ = json.Unmarshal(r.Arguments, &arguments)
	arguments["mode"] = "plan"
	r.Arguments, _ = json.Marshal(arguments)
	got := executeCall(t, s, r)
	want := `{"result":[["x 0"],"would write x 0",null,"POLICY_DENIED"],"stdout":"","calls":[{"tool":"search_web","outcome":"ok"},` +
		`{"tool":"write_file","outcome":"dry_run","arguments":{"path":"x 0"}},{"tool":"erase-file","outcome":"planned","arguments":{"path":"b"},"approval":true},{"tool":"write_file","outcome":"POLICY_DENIED"}]}`
	if string(got.Structured) != want {
		t.Errorf("got  %s %s\nwant %s", got.Structured, outcomeLine(got), want)
	}
}

func TestCode_listsTools(t *testing.T) {
	s := codeServer(t, "")
	prompt := outcomeLine(executeCall(t, s, call.Request{Kind: call.Prompts, Name: "code_mode"}))
	for _, want := range []string{`declare function search_web(args: {\n  query: string;`, "Do NOT write import statements"} {
		if !strings.Contains(prompt, want) {
			t.Errorf("the prompt lacks %q:\n%s", want, prompt)
		}
	}
	found := outcomeLine(executeCall(t, s, tool("search_tools", `{"query":"file secret code"}`)))
	described := outcomeLine(executeCall(t, s, tool("describe_tool", `{"name":"secret_tool"}`)))
	for name, text := range map[string]string{"the prompt": prompt, "a search": found} {
		if strings.Contains(text, "secret_tool") || strings.Contains(text, "run_code") {
			t.Errorf("%s shows a denied tool: %s", name, text)
		}
	}
	if !strings.Contains(found, `"name":"read_file","call":"read_file"`) || described != `EXECUTION_ERROR: no tool is named "secret_tool"` {
		t.Errorf("a search finds %s; a description is %s", found, described)
	}
	if got := outcomeLine(executeCall(t, s, tool("describe_tool", `{"name":"read_file"}`))); !strings.Contains(got, "declare function read_file(args: { path: string }): Promise\\u003c{ debug: boolean }\\u003e;") {
		t.Errorf("a description is %s", got)
	}
	if got := outcomeLine(executeCall(t, s, tool("describe_tool", `{"name":"web"}`))); got != `EXECUTION_ERROR: no tool is named "web"; did you mean "search_web"?` {
		t.Errorf("a shortened name: %s", got)
	}
	short := executeCall(t, s, call.Request{Kind: call.Prompts, Name: "code_mode", Arguments: []byte(`{"budget":"1"}`)})
	if got := outcomeLine(short); len(got) >= len(prompt) || !strings.Contains(got, "search_web") {
		t.Errorf("a short prompt is %s", got)
	}
}

func TestAlias_redirectsCall(t *testing.T) {
	s := codeServer(t, "", `
policy "direct" {
  tools  = ["call_tool"]
  deny   = "true"
  reason = "The alias itself has no part in it"
}
policy "reads" {
  tools  = ["read_file"]
  deny   = "args.path == 'x' || call.via != 'client' || call.depth != 0"
  reason = "Not x"
}`)
	for arguments, want := range map[string]string{
		`{"name":"read_file","arguments":{"path":"/workspace/config.json"}}`: `[{"type":"text","text":"{\"debug\":true}"}] {"debug":true}`,
		`{"name":"read_file","arguments":{"path":"x"}}`:                      `POLICY_DENIED: Not x`,
		`{"name":"read_file","arguments":{"pth":"x"}}`:                       `INVALID_INPUT: the arguments do not fit the tool's input schema: /path is required; /pth unknown argument "pth" (did you mean "path"?)`,
		`{"name":"picture"}`:                                  `[{"type":"text","text":"see"},{"type":"image","data":"AQID","mimeType":"image/png"}]`,
		`{"name":"read_fil"}`:                                 `TOOL_NOT_FOUND: no tool named "read_fil"; did you mean "read_file"?`,
		`{"name":"secret_tool"}`:                              `POLICY_DENIED: Nobody may`,
		`{"name":"call_tool","arguments":{"name":"picture"}}`: `POLICY_DENIED: The alias itself has no part in it`,
		`{}`: `POLICY_DENIED: The alias itself has no part in it`,
	} {
		if got := outcomeLine(executeCall(t, s, tool("call_tool", arguments))); got != want {
			t.Errorf("%s: got  %s\nwant %s", arguments, got, want)
		}
	}
}

func TestAlias_audit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	s := codeServer(t, "", auditBlock(path, ""))
	executeCall(t, s, tool("picture", `{}`))
	executeCall(t, s, tool("call_tool", `{"name":"picture"}`))
	executeCall(t, s, tool("call_tool", `{"name":"pictures"}`))
	run := executeCall(t, s, runCodeCall("await picture()"))
	var got []string
	for _, l := range outcomesOf(t, s, path) {
		got = append(got, strings.Join([]string{l.Tool, l.Via, l.Alias, l.Outcome, strings.ReplaceAll(l.Parent, run.CallID, "run")}, " "))
	}
	want := []string{"picture client  ok ", "picture client call_tool ok ", "pictures client call_tool TOOL_NOT_FOUND ", "picture code  ok run", "run_code client  ok "}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestAlias_invalidName(t *testing.T) {
	s := codeServer(t, "")
	for arguments, want := range map[string]string{
		`{}`:                   `INVALID_INPUT: the arguments do not fit the tool's input schema: /name is required`,
		`{"name":""}`:          `INVALID_INPUT: the arguments do not fit the tool's input schema: /name must be at least 1 character long`,
		`{"name":"call_tool"}`: `EXECUTION_ERROR: call_tool calls other tools, not itself`,
		`{"name":"call_tool","arguments":{"name":"picture"}}`: `EXECUTION_ERROR: call_tool calls other tools, not itself`,
		`{"name":"picture","arguments":"x"}`:                  `INVALID_INPUT: the arguments do not fit the tool's input schema: must be an object, not a string`,
	} {
		if got := outcomeLine(executeCall(t, s, tool("call_tool", arguments))); got != want {
			t.Errorf("%s: got  %s\nwant %s", arguments, got, want)
		}
	}
}

func TestCode_notCallableByTools(t *testing.T) {
	s := server(t, engine.Options{Files: engine.Files{Config: files("mcpd.hcl", "codeact {}\n"), Tools: files("a.hcl", `
tool "other" { run = "return 'reached';" }
tool "sly" {
  allow {
    call { tools = ["call_tool", "run_code", "search_tools"] }
  }
  run = <<JS
    const got = [];
    for (const [tool, args] of [["call_tool", { name: "other" }], ["run_code", { code: "await other()" }], ["search_tools", { query: "other" }]]) {
      try { got.push(await tools[tool](args)) } catch (e) { got.push(e.code + " " + e.message) }
    }
    return got.join("; ");
  JS
}
`)}})
	const refused = "NOT_GRANTED this tool cannot be called by another tool"
	if got, want := outcomeLine(executeCall(t, s, tool("sly", `{}`))), refused+"; "+refused+"; "+refused; !strings.Contains(got, want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestCode_maxCompiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, ran atomic.Int32
		goOn := make(chan struct{})
		s := server(t, engine.Options{Files: engine.Files{Config: files("mcpd.hcl", "codeact {}\n")}, Scripts: engine.Scripts{Trial: func(scripting.Source) error {
			running.Add(1)
			<-goOn
			ran.Add(1)
			return nil
		}}})
		var calls sync.WaitGroup
		for range 12 {
			calls.Go(func() {
				if got := executeCall(t, s, runCodeCall("1;"+strings.Repeat(" ", 5<<10)+"2")); got.Err != nil {
					t.Errorf("a call ends with %s", outcomeLine(got))
				}
			})
		}
		synctest.Wait()
		if n := running.Load(); n != 4 {
			t.Errorf("%d are compiled at once", n)
		}
		close(goOn)
		calls.Wait()
		if n := ran.Load(); n != 12 {
			t.Errorf("%d were compiled", n)
		}
	})
}
