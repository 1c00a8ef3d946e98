package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
)

// runCodePlanCall returns a call of run_code in mode plan.
func runCodePlanCall(text string) call.Request {
	arguments, _ := json.Marshal(map[string]string{"code": text, "mode": "plan"})
	return tool("run_code", string(arguments))
}

func TestPlan_nestedWrite(t *testing.T) {
	var mu sync.Mutex
	var made []string
	s := server(t, engine.Options{
		Files: engine.Files{
			Config: files("mcpd.hcl", "codeact {}\n"),
			Tools: files("a.hcl", `
tool "writes" {
  run = "return 'wrote';"
}
tool "says_it_reads" {
  read_only = true
  allow {
    call { tools = ["writes"] }
  }
  run = "return await tools.writes({});"
}
tool "rehearses" {
  allow {
    call { tools = ["writes"] }
  }
  run     = "return 1;"
  dry_run = "return await tools.writes({});"
}
`),
		},
		Hooks: []engine.Hook{func(_ context.Context, e call.Event) {
			mu.Lock()
			defer mu.Unlock()
			if e.Tool == "writes" && e.Phase == call.End {
				made = append(made, e.Outcome)
			}
		}},
	})
	got := executeCall(t, s, runCodePlanCall(`
let refused;
try { await says_it_reads() } catch (e) { refused = e.message }
return [refused, await rehearses()];`))
	want := `{"result":["in a plan, a read-only tool cannot call \"writes\", which is not read-only",null],"stdout":"","calls":[{"tool":"says_it_reads","outcome":"EXECUTION_ERROR"},{"tool":"rehearses","outcome":"dry_run","arguments":{}}]}`
	if string(got.Structured) != want {
		t.Errorf("got  %s %s\nwant %s", got.Structured, outcomeLine(got), want)
	}
	mu.Lock()
	defer mu.Unlock()
	if diff := cmp.Diff([]string{"rehearsed"}, made); diff != "" {
		t.Errorf("outcomes in hook events (-want +got)\n%s", diff)
	}
}

// asksFirst are a read-only tool that elicits, a tool with a dry_run that elicits, and one that
// writes.
const asksFirst = `
tool "choose" {
  read_only = true
  allow {
    ask { elicit = true }
  }
  run = <<JS
    const form = { type: "object", properties: { ok: { type: "boolean" } }, required: ["ok"] };
    try { return (await elicit({ message: "Which?", schema: form })).content.ok } catch (e) { return "none" }
  JS
}
tool "unsure" {
  allow {
    ask { elicit = true }
  }
  run     = "return 1;"
  dry_run = "return await elicit({ message: 'Really?', schema: { type: 'object', properties: { ok: { type: 'boolean' } } } });"
}
tool "writes" {
  run = "return 'wrote';"
}
policy "sure" {
  tools             = ["writes"]
  requires_approval = "true"
  reason            = "Sure"
}
`

func TestPlan_cannotElicit(t *testing.T) {
	s := server(t, engine.Options{Files: engine.Files{Config: files("mcpd.hcl", "codeact {}\n"), Tools: files("a.hcl", asksFirst)}})
	const program = `
await writes();
const told = [];
for (const tool of [choose, unsure]) {
  try { told.push(await tool()) } catch (e) { told.push(e.code + " of " + e.tool + ": " + e.message) }
}
return told;`
	r := runCodePlanCall(program)
	r.Can = call.Capabilities{Form: true}
	got := executeCall(t, s, r)
	const refused = "the tool requests input from its user, which a plan cannot do"
	want := `{"result":["EXECUTION_ERROR of choose: ` + refused + `","EXECUTION_ERROR of unsure: ` + refused + `"],"stdout":"",` +
		`"calls":[{"tool":"writes","outcome":"planned","arguments":{},"approval":true},{"tool":"choose","outcome":"EXECUTION_ERROR"},{"tool":"unsure","outcome":"EXECUTION_ERROR"}]}`
	if string(got.Structured) != want {
		t.Errorf("got  %s %s\nwant %s", got.Structured, outcomeLine(got), want)
	}
	asked := executeCall(t, s, runCodeApproveCall(program, nil))
	if asked.Ask == nil || !strings.Contains(string(asked.Ask.Requests[0].Params), "is going to make these calls: writes({})") {
		t.Errorf("the plan to approve: %+v %s", asked.Ask, outcomeLine(asked))
	}
}

func TestPlan_upstreamCall(t *testing.T) {
	behind, canceled := &legacyUpstream{}, make(chan struct{})
	url := web(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(text))
		if bytes.Contains(text, []byte("notifications/cancelled")) {
			close(canceled)
		}
		behind.ServeHTTP(w, r)
	}))
	s := federated(t, "codeact {}\n"+upstreamAt(url, `ask = ["elicit"]`, "override \"asks\" {\n    read_only = true\n  }"))
	r := runCodePlanCall("await lab.asks()")
	r.Can = call.Capabilities{Form: true}
	if got := outcomeLine(executeCall(t, s, r)); !strings.Contains(got, "which a plan cannot do") {
		t.Errorf("it ends with %s", got)
	}
	select {
	case <-canceled:
	case <-time.After(time.Minute):
		t.Error("the upstream request is not cancelled")
	}
	behind.mu.Lock()
	defer behind.mu.Unlock()
	for _, waits := range behind.answers {
		waits <- nil
	}
}

func TestPlan_failureMessage(t *testing.T) {
	s := codeServer(t, "  max_calls = 2")
	const program = `await search_web({ query: "x" }); await tools["erase-file"]({ path: "a" }); await tools["erase-file"]({ path: "b" })`
	want := "It planned these calls. Only the read-only calls were made:\n- search_web: ok\n- erase-file: planned\n- erase-file: DENIED"
	for _, r := range []call.Request{runCodePlanCall(program), runCodeApproveCall(program, nil)} {
		if got := outcomeLine(executeCall(t, s, r)); !strings.HasSuffix(got, want) {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// A skipped call returns null, which the program may not expect.
func TestPlan_missingResult(t *testing.T) {
	s := codeServer(t, "")
	const why = "In a plan, calls that would change something are not made, and their result is null: erase-file. " +
		"Write the program so that it works without these results, as in result?.id, or run it in mode \"run\". Tools with a dry_run script return a result in a plan too."
	const erase = `const e = await tools["erase-file"]({ path: "a" }); `
	for program, told := range map[string]bool{
		erase + "e.entities.length":                                    true,
		erase + "const { entities } = e; entities":                     true,
		erase + "for (const x of e) print(x)":                          true,
		"const gone = null; gone.x; " + erase:                          false,
		erase + "throw new Error('null')":                              false,
		`(await write_file({ path: "a" })).missing.length`:             false,
		erase + `await read_file({ path: "x" })`:                       false,
		erase + "e?.entities; (await search_web({ query: 'x' }))[9].x": true,
	} {
		for _, r := range []call.Request{runCodePlanCall(program), runCodeApproveCall(program, nil)} {
			got := outcomeLine(executeCall(t, s, r))
			if strings.Contains(got, why) != told || !strings.HasPrefix(got, "EXECUTION_ERROR") {
				t.Errorf("%s:\n%s", program, got)
			}
		}
	}
	if got := outcomeLine(executeCall(t, s, runCodeCall("null.x"))); strings.Contains(got, "In a plan") {
		t.Errorf("a normal run: %s", got)
	}
}

func TestCode_testBlockMocks(t *testing.T) {
	ran := false
	s := unloaded(t, engine.Options{
		Files: engine.Files{
			Config: files("mcpd.hcl", "codeact {}\n"),
			Tools: files("a.hcl", `
tool "reads" {
  read_only = true
  allow {
    call { tools = ["hit"] }
  }
  run = "return await tools.hit({});"
}
tool "writes" {
  run = "return 1;"
}
tool "rehearses" {
  run     = "return 1;"
  dry_run = "return 2;"
}
test "mocks answer" {
  tool  = "run_code"
  input = { code = "[await reads(), await writes()]" }
  mock "tools" "reads" { json = "read" }
  mock "tools" "writes" { json = "wrote" }
  expect { output = { result = ["read", "wrote"], stdout = "", calls = [{ tool = "reads", outcome = "ok" }, { tool = "writes", outcome = "ok" }] } }
}
test "and in a plan" {
  tool  = "run_code"
  input = { code = "[await reads(), await writes(), await rehearses()]", mode = "plan" }
  mock "tools" "reads" { json = "read" }
  mock "tools" "rehearses" { json = "would" }
  expect {
    output = {
      result = ["read", null, "would"]
      stdout = ""
      calls = [
        { tool = "reads", outcome = "ok" }, { tool = "writes", outcome = "planned", arguments = {} }, { tool = "rehearses", outcome = "dry_run", arguments = {} },
      ]
    }
  }
}
test "what has no mock is not called" {
  tool  = "run_code"
  input = { code = "await reads()" }
  expect { error = "EXECUTION_ERROR" }
}
`),
		},
	})
	if err := engine.AddTool(s, engine.ToolOptions{Name: "hit"}, func(context.Context, identity.Agent, struct{}) (string, error) {
		ran = true
		return "hit", nil
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	results, err := s.RunTests(t.Context(), nil)
	if err != nil || len(results) != 3 {
		t.Fatalf("%d tests ran: %v", len(results), err)
	}
	for _, r := range results[:2] {
		for _, failure := range r.Failures {
			t.Errorf("%s: %s", r.Name, failure)
		}
	}
	if results[2].Passed() {
		t.Error("a tool without a mock returned a result")
	}
	if ran {
		t.Error("a test has called a tool")
	}
}
