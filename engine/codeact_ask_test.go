package engine_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
)

// elicitingTools returns tools with effects that request input.
func elicitingTools(host string) string {
	return fmt.Sprintf(deploy, host, host) + `
tool "note" {
  input "text" { type = string }
  run = "return 'noted ' + input.text;"
}
policy "sure" {
  tools             = ["note"]
  requires_approval = "args.text == 'danger'"
  reason            = "Notes of danger"
}
tool "bump" {
  run = "return 2;"
}
tool "outer" {
  timeout = "10s"
  allow {
    call { tools = ["run_code"] }
  }
  run = <<JS
    return await tools.run_code({ code: "await deploy({ service: 'x' })" });
  JS
}
`
}

// runCodeAskCall returns a call of run_code by a client with all input capabilities.
func runCodeAskCall(text string, resume *call.Resume) call.Request {
	r := runCodeCall(text)
	r.Can, r.Resume = call.Capabilities{Form: true}, resume
	return r
}

func codeAskServer(t *testing.T, e *effects) *engine.Server {
	t.Helper()
	return server(t, engine.Options{Files: engine.Files{Config: files("mcpd.hcl", "codeact {\n  max_calls = 10\n}\n"), Tools: files("a.hcl", elicitingTools(e.host))}})
}

// The tool asks twice, and no effect is repeated.
func TestCodeAsk_toolElicits(t *testing.T) {
	e := startEffects(t)
	s := codeAskServer(t, e)
	const program = `print("begun"); const first = await note({ text: "a" }); [first, await deploy({ service: "x" }), await note({ text: "b" })]`
	result := executeCall(t, s, runCodeAskCall(program, nil))
	for _, want := range []string{"Deploy x?", "Keep it?"} {
		if result.Ask == nil || len(result.Ask.Requests) != 1 || !strings.Contains(string(result.Ask.Requests[0].Params), want) {
			t.Fatalf("no request %s: %s", want, outcomeLine(result))
		}
		result = executeCall(t, s, runCodeAskCall(program, respond(result.Ask, `{"ok":true}`)))
	}
	want := `{"result":["noted a","plan#1 deploy#2 true finish#3 true","noted b"],"stdout":"begun\n","calls":[{"tool":"note","outcome":"ok"},{"tool":"deploy","outcome":"ok"},{"tool":"note","outcome":"ok"}]}`
	if got := string(result.Structured); got != want {
		t.Errorf("got  %s %s\nwant %s", got, outcomeLine(result), want)
	}
	if n := e.n.Load(); n != 3 {
		t.Errorf("%d effects, want 3", n)
	}
}

// A resumed call counts once for the budget, across all legs.
func TestCodeAsk_callBudget(t *testing.T) {
	e := startEffects(t)
	s := server(t, engine.Options{Files: engine.Files{Config: files("mcpd.hcl", "codeact {\n  max_calls = 3\n}\n"), Tools: files("a.hcl", elicitingTools(e.host))}})
	const program = `
const told = [await bump()];
for (const text of ["a", "b"]) {
  try { told.push(await deploy({ service: text }), await note({ text })) } catch (e) { told.push(e.code) }
}
told`
	result := executeCall(t, s, runCodeAskCall(program, nil))
	for range 2 {
		if result.Ask == nil {
			t.Fatalf("no input request: %s", outcomeLine(result))
		}
		result = executeCall(t, s, runCodeAskCall(program, respond(result.Ask, `{"ok":true}`)))
	}
	if got, want := string(result.Structured), `{"result":[2,"plan#1 deploy#2 true finish#3 true","noted a","DENIED"],`; !strings.HasPrefix(got, want) {
		t.Errorf("got  %s %s\nwant %s", got, outcomeLine(result), want)
	}
}

func TestCodeAsk_parallelRequests(t *testing.T) {
	e := startEffects(t)
	s := codeAskServer(t, e)
	const program = `await parallel([deploy({ service: "x" }), deploy({ service: "y" })])`
	result := executeCall(t, s, runCodeAskCall(program, nil))
	for range 2 {
		if result.Ask == nil || len(result.Ask.Requests) != 2 {
			t.Fatalf("not two input requests: %+v, %s", result.Ask, outcomeLine(result))
		}
		result = executeCall(t, s, runCodeAskCall(program, respond(result.Ask, `{"ok":true}`)))
	}
	var ran struct{ Result []string }
	if err := json.Unmarshal(result.Structured, &ran); err != nil || len(ran.Result) != 2 || e.n.Load() != 6 {
		t.Errorf("%v: %d effects, %s", err, e.n.Load(), outcomeLine(result))
	}
}

func TestCodeAsk_toolApproval(t *testing.T) {
	s := codeAskServer(t, startEffects(t))
	const program = `await note({ text: "danger" })`
	result := executeCall(t, s, runCodeAskCall(program, nil))
	if result.Ask == nil || !strings.Contains(string(result.Ask.Requests[0].Params), `Notes of danger\n\nTool: note\nArguments: {\"text\":\"danger\"}`) {
		t.Fatalf("no input request: %s", outcomeLine(result))
	}
	if got := string(executeCall(t, s, runCodeAskCall(program, respond(result.Ask, `{}`))).Structured); got != `{"result":"noted danger","stdout":"","calls":[{"tool":"note","outcome":"ok"}]}` {
		t.Errorf("an approval: %s", got)
	}
	again := executeCall(t, s, runCodeAskCall(program, nil))
	declined := &call.Resume{State: again.Ask.State, Responses: map[string]json.RawMessage{again.Ask.Requests[0].Key: json.RawMessage(`{"action":"decline"}`)}}
	if got := outcomeLine(executeCall(t, s, runCodeAskCall(program, declined))); !strings.HasPrefix(got, "EXECUTION_ERROR: HostError: the user did not approve the call (POLICY_DENIED of note)") {
		t.Errorf("a refusal: %s", got)
	}
}

func TestCodeAsk_missingCapability(t *testing.T) {
	s := codeAskServer(t, startEffects(t))
	var got []string
	for _, program := range []string{`await deploy({ service: "x" })`, `await note({ text: "danger" })`} {
		got = append(got, strings.SplitN(outcomeLine(executeCall(t, s, runCodeCall(program))), "\n", 2)[0])
	}
	want := []string{
		"EXECUTION_ERROR: HostError: the client does not support this: it lacks the capability elicitation (EXECUTION_ERROR of deploy)",
		"EXECUTION_ERROR: HostError: the call needs the approval of a user, and the client does not support it: Notes of danger (POLICY_DENIED of note)",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	outer := tool("outer", `{}`)
	outer.Can = call.Capabilities{Form: true}
	if got := outcomeLine(executeCall(t, s, outer)); !strings.Contains(got, "this tool cannot be called by another tool") {
		t.Errorf("code that a tool runs: %s", got)
	}
}

// runCodeApproveCall returns a call of run_code in mode approve.
func runCodeApproveCall(text string, resume *call.Resume) call.Request {
	r := runCodeAskCall(text, resume)
	r.Arguments, _ = json.Marshal(map[string]string{"code": text, "mode": "approve"})
	return r
}

func TestPlan_approvedOnce(t *testing.T) {
	s := codeAskServer(t, startEffects(t))
	const program = `const n = await bump() ?? 1; const all = []; for (let i = 0; i < n; i++) all.push(await note({ text: "danger" })); all`
	result := executeCall(t, s, runCodeApproveCall(program, nil))
	want := `The program is going to make these calls: bump({}); note({\"text\":\"danger\"})`
	if result.Ask == nil || len(result.Ask.Requests) != 1 || !strings.Contains(string(result.Ask.Requests[0].Params), want) {
		t.Fatalf("the plan is not shown: %s", outcomeLine(result))
	}
	// The program makes one call more than planned.
	result = executeCall(t, s, runCodeApproveCall(program, respond(result.Ask, `{}`)))
	if result.Ask == nil || !strings.Contains(string(result.Ask.Requests[0].Params), `Notes of danger\n\nTool: note`) {
		t.Fatalf("an unplanned call needs no approval: %s", outcomeLine(result))
	}
	result = executeCall(t, s, runCodeApproveCall(program, respond(result.Ask, `{}`)))
	if got := string(result.Structured); !strings.HasPrefix(got, `{"result":["noted danger","noted danger"],`) {
		t.Errorf("got %s %s", got, outcomeLine(result))
	}
}

func TestPlan_approvalBoundToArguments(t *testing.T) {
	s := server(t, engine.Options{Files: engine.Files{Config: files("mcpd.hcl", "codeact {}\n"), Tools: files("a.hcl", elicitingTools(startEffects(t).host)+`
policy "all" {
  tools             = ["note"]
  requires_approval = "true"
  reason            = "A note"
}
`)}})
	const program = `const n = await bump() ?? 1; await note({ text: "a " + n })` // a plan does not run bump
	result := executeCall(t, s, runCodeApproveCall(program, nil))
	if result.Ask == nil || !strings.Contains(string(result.Ask.Requests[0].Params), `bump({}); note({\"text\":\"a 1\"})`) {
		t.Fatalf("the plan is not shown: %s", outcomeLine(result))
	}
	result = executeCall(t, s, runCodeApproveCall(program, respond(result.Ask, `{}`)))
	if result.Ask == nil || !strings.Contains(string(result.Ask.Requests[0].Params), `\"a 2\"`) {
		t.Errorf("arguments that differ from the plan need no approval: %+v %s", result.Ask, outcomeLine(result))
	}
}

func TestPlan_redactsSensitiveInputs(t *testing.T) {
	s := server(t, engine.Options{Files: engine.Files{Config: files("mcpd.hcl", "codeact {}\n"), Tools: files("a.hcl", `
tool "pay" {
  input "card" {
    type      = string
    sensitive = true
  }
  input "cents" { type = integer }
  run = "return input.card.length + input.cents;"
}
policy "sure" {
  tools             = ["pay"]
  requires_approval = "true"
  reason            = "Sure"
}
`)}})
	const program = `await pay({ card: ["VI", "SA"].join(""), cents: 7 })`
	if got := string(executeCall(t, s, runCodePlanCall(program)).Structured); !strings.Contains(got, `"arguments":{"card":"[sensitive]","cents":7}`) {
		t.Errorf("a plan shows %s", got)
	}
	result := executeCall(t, s, runCodeApproveCall(program, nil))
	if result.Ask == nil || !strings.Contains(string(result.Ask.Requests[0].Params), `pay({\"card\":\"[sensitive]\",\"cents\":7})`) {
		t.Fatalf("the user is shown %+v %s", result.Ask, outcomeLine(result))
	}
	if got := string(executeCall(t, s, runCodeApproveCall(program, respond(result.Ask, `{}`))).Structured); !strings.HasPrefix(got, `{"result":11,`) {
		t.Errorf("got %s", got)
	}
}

func TestPlan_withoutApproval(t *testing.T) {
	s := codeAskServer(t, startEffects(t))
	if got := string(executeCall(t, s, runCodeApproveCall(`await note({ text: "a" })`, nil)).Structured); !strings.HasPrefix(got, `{"result":"noted a",`) {
		t.Errorf("got %s", got)
	}
}

func TestPlan_declined(t *testing.T) {
	s := codeAskServer(t, startEffects(t))
	const program = `await note({ text: "danger" })`
	asked := executeCall(t, s, runCodeApproveCall(program, nil))
	declined := &call.Resume{State: asked.Ask.State, Responses: map[string]json.RawMessage{asked.Ask.Requests[0].Key: json.RawMessage(`{"action":"decline"}`)}}
	if got := executeCall(t, s, runCodeApproveCall(program, declined)); got.Err == nil || got.Err.DeniedBy != "(plan)" || got.Err.Message != "the user did not approve the call" {
		t.Errorf("a refusal: %s", outcomeLine(got))
	}
	other := executeCall(t, s, runCodeApproveCall(`await note({ text: "danger" }); 1`, respond(executeCall(t, s, runCodeApproveCall(program, nil)).Ask, `{}`)))
	if other.Err == nil || other.Err.Code != call.InvalidInput {
		t.Errorf("another program resumes from the approval: %s", outcomeLine(other))
	}
	deaf := runCodeApproveCall(program, nil)
	deaf.Can = call.Capabilities{}
	if got := outcomeLine(executeCall(t, s, deaf)); !strings.HasPrefix(got, "POLICY_DENIED: the call needs the approval of a user, and the client does not support it: The program is going to") {
		t.Errorf("a client without capabilities: %s", got)
	}
}
