package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/ops/control"
)

// try begins a call.
func (a *controlledServer) try(t *testing.T, of control.TryCall) *control.Conn {
	t.Helper()
	r, err := control.NewRequest(control.Try, of)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := control.Open(t.Context(), a.socket, r, &struct{}{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// toolCall returns a call of a tool.
func toolCall(name, arguments string) control.TryCall {
	return control.TryCall{ItemName: control.ItemName{Kind: "tool", Address: name}, Arguments: json.RawMessage(arguments)}
}

// next returns the next event that is no step, and appends steps to *steps.
func nextEvent(t *testing.T, conn *control.Conn, steps *[]string) control.TryEvent {
	t.Helper()
	for {
		var e control.TryEvent
		if err := conn.Receive(&e); err != nil {
			t.Fatal(err)
		}
		if e.Step == nil {
			return e
		}
		*steps = append(*steps, strings.TrimSpace(fmt.Sprintf("%d %s %s", e.Step.Depth, e.Step.Name, e.Step.Failed)))
	}
}

// result returns the result of a call that asks nothing, with the steps of the call.
func (a *controlledServer) result(t *testing.T, of control.TryCall) (*control.TryResult, []string) {
	t.Helper()
	var steps []string
	conn := a.try(t, of)
	for {
		e := nextEvent(t, conn, &steps)
		switch {
		case e.Result != nil:
			if err := conn.Receive(&e); err != io.EOF {
				t.Errorf("after the result: %v", err)
			}
			return e.Result, steps
		case e.Error != "" || e.Ask != nil:
			t.Fatalf("got %+v", e)
		}
	}
}

func TestTry_eventsAndSteps(t *testing.T) {
	t.Parallel()
	a := startControlled(t, "")
	var steps, events []string
	conn := a.try(t, toolCall("add", `{"a":2,"b":3}`))
	for {
		e := nextEvent(t, conn, &steps)
		switch {
		case e.Log != nil:
			events = append(events, e.Log.Level+" "+e.Log.Message)
		case e.Progress != nil:
			events = append(events, fmt.Sprint(e.Progress.Done, " of ", *e.Progress.Total, " ", e.Progress.Message))
		}
		if e.Result != nil {
			if string(e.Result.Value) != "5" || e.Result.Code != "" || e.Result.CallID == "" || e.Result.Revision == "" || e.At.IsZero() {
				t.Errorf("got %+v", e.Result)
			}
			break
		}
	}
	if diff := cmp.Diff([]string{"info adding", "1 of 2 half"}, events); diff != "" {
		t.Errorf("events (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"1 gate", "1 policy", "1 script", "0 tools/call add"}, steps); diff != "" {
		t.Errorf("steps (-want +got)\n%s", diff)
	}
	got, steps := a.result(t, toolCall("twice", `{"n":600}`))
	if string(got.Value) != "1200" {
		t.Errorf("got %+v", got)
	}
	want := []string{"1 gate", "1 policy", "4 gate", "4 policy", "4 script", "3 tools/call add", "2 call", "1 script", "0 tools/call twice"}
	if diff := cmp.Diff(want, steps); diff != "" {
		t.Errorf("nested steps (-want +got)\n%s", diff)
	}
	got, steps = a.result(t, toolCall("twice", `{"n":1001}`))
	if got.Code != "EXECUTION_ERROR" || !strings.Contains(got.Message, "too large") || !strings.Contains(got.Trace, "tools.hcl") {
		t.Errorf("got %+v", got)
	}
	want = []string{"1 gate", "1 policy", "4 gate", `4 policy "small" POLICY_DENIED`, "3 tools/call add POLICY_DENIED", "2 call POLICY_DENIED", "1 script", "0 tools/call twice EXECUTION_ERROR"}
	if diff := cmp.Diff(want, steps); diff != "" {
		t.Errorf("denied steps (-want +got)\n%s", diff)
	}
}

func TestTry_kindsAndErrors(t *testing.T) {
	t.Parallel()
	a := startControlled(t, "")
	for _, row := range []struct{ kind, address, arguments, want string }{
		{"prompt", "greet", `{"name":"Ada"}`, `"Greet Ada"`},
		{"resource", "page://7", "", `"page 7"`},
		{"prompt", "greet", `{}`, "INVALID_INPUT"},
		{"tool", "add", `{"a":"x"}`, "INVALID_INPUT"},
		{"tool", "add", "", "INVALID_INPUT"},
		{"tool", "nope", `{}`, "TOOL_NOT_FOUND"},
		{"tool", "pay", `{}`, "only leads pay"},
	} {
		got, _ := a.result(t, control.TryCall{ItemName: control.ItemName{Kind: row.kind, Address: row.address}, Arguments: json.RawMessage(row.arguments)})
		if all := string(got.Reply) + got.Code + got.Message; !strings.Contains(all, row.want) {
			t.Errorf("%s %s %s: got %s, want %s", row.kind, row.address, row.arguments, all, row.want)
		}
	}
	for want, of := range map[string]control.TryCall{
		"a template cannot be called":                        {ItemName: control.ItemName{Kind: "template", Address: "page://{n}"}},
		"a resource takes no arguments":                      {ItemName: control.ItemName{Kind: "resource", Address: "page://7"}, Arguments: json.RawMessage(`{}`)},
		"the arguments must be a JSON object":                toolCall("add", `[1]`),
		`unknown kind "root" of a principal`:                 {ItemName: toolCall("add", "").ItemName, As: control.As{Principal: &identity.Principal{ID: "ada", Kind: "root"}}},
		"a principal needs an id":                            {ItemName: toolCall("add", "").ItemName, As: control.As{Principal: &identity.Principal{Kind: identity.KindKey}}},
		"the credential is bound to another agent":           {ItemName: toolCall("add", "").ItemName, As: control.As{Principal: &identity.Principal{ID: "ci", Kind: identity.KindKey, Agent: "bot"}, Agent: &control.Agent{AgentID: "other"}}},
		"the metadata of an agent has at most 32 entries":    {ItemName: toolCall("add", "").ItemName, As: control.As{Agent: &control.Agent{Metadata: map[string]string{"a": strings.Repeat("x", 5000)}}}},
		"nested deeper than the limit":                       toolCall("add", `{"a":`+strings.Repeat("[", 33)+strings.Repeat("]", 33)+"}"),
		"the kind of an item is tool, resource, template or": {},
	} {
		if err := a.ask(t, control.Try, of, &struct{}{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want %s", err, want)
		}
	}
}

func TestTry_asks(t *testing.T) {
	t.Parallel()
	a := startControlled(t, "")
	var steps []string
	asked := func() (*control.Conn, control.TryQuestion) {
		conn := a.try(t, toolCall("ask", `{}`))
		e := nextEvent(t, conn, &steps)
		if len(e.Ask) != 1 || e.Ask[0].Method != "elicitation/create" || !strings.Contains(string(e.Ask[0].Params), "Name?") {
			t.Fatalf("got %+v", e)
		}
		return conn, e.Ask[0]
	}
	conn, question := asked()
	// An incomplete answer repeats the question.
	for _, responses := range []map[string]json.RawMessage{{}, {question.Key: json.RawMessage(`{"action":"accept","content":{"name":"Ada"}}`)}} {
		if err := conn.Send(control.TryAnswer{Responses: responses}); err != nil {
			t.Fatal(err)
		}
		e := nextEvent(t, conn, &steps)
		if len(responses) == 0 && len(e.Ask) == 1 {
			continue
		}
		if e.Result == nil || string(e.Result.Value) != `"hello Ada"` {
			t.Errorf("got %+v", e)
		}
	}
	for name, row := range map[string]struct{ line, want string }{
		"invalid response": {`{"responses":{"KEY":5}}`, "INVALID_INPUT"},
		"no JSON":          {`accept`, "the line is invalid"},
		"unknown member":   {`{"accept":true}`, `unknown field "accept"`},
	} {
		conn, question := asked()
		if _, err := io.WriteString(conn, strings.ReplaceAll(row.line, "KEY", question.Key)+"\n"); err != nil {
			t.Fatal(err)
		}
		e := nextEvent(t, conn, &steps)
		if got := e.Error; e.Result != nil && e.Result.Code != row.want || e.Result == nil && !strings.Contains(got, row.want) {
			t.Errorf("%s: got %q, %+v, want %s", name, got, e.Result, row.want)
		}
	}
	// An answer in advance approves nothing.
	r, err := control.NewRequest(control.Try, toolCall("hang", `{}`))
	if err != nil {
		t.Fatal(err)
	}
	early, err := control.Open(t.Context(), a.socket, r, &struct{}{})
	if err != nil {
		t.Fatal(err)
	}
	defer early.Close()
	if err := early.Send(control.TryAnswer{}); err != nil {
		t.Fatal(err)
	}
	if e := nextEvent(t, early, &steps); e.Error != "an answer came before a question" {
		t.Errorf("got %+v", e)
	}
}

const controlAudit = `audit {
  path = "./audit/mcpd.jsonl"
  mode = "strict"
}
`

// records returns the members of the audit records that contain all texts.
func (a *controlledServer) records(t *testing.T, texts ...string) []map[string]any {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(a.dir, "audit", "mcpd.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var found []map[string]any
lines:
	for line := range strings.Lines(string(content)) {
		for _, text := range texts {
			if !strings.Contains(line, text) {
				continue lines
			}
		}
		var record map[string]any
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Fatal(err)
		}
		found = append(found, record)
	}
	return found
}

// A call as another principal has the rights of that principal, and the log names the operator.
func TestTry_impersonation(t *testing.T) {
	t.Parallel()
	a := startControlled(t, controlAudit)
	as := toolCall("pay", `{}`)
	as.Principal = &identity.Principal{ID: "ada", Kind: identity.KindToken, Issuer: "https://idp.example.com", Groups: []string{"leads"}}
	got, _ := a.result(t, as)
	if string(got.Value) != `"paid"` {
		t.Fatalf("got %+v", got)
	}
	events := a.records(t, "console.impersonated", `"operator_kind":"local"`, `"operator_issuer":`)
	if len(events) != 1 {
		t.Fatalf("got %v", events)
	}
	attributes, _ := events[0]["attributes"].(map[string]any)
	calls := a.records(t, got.CallID, `"outcome":"ok"`)
	if len(calls) != 1 || calls[0]["listener"] != "console" || calls[0]["request_id"] != attributes["request_id"] {
		t.Errorf("the call is recorded as %v, the event as %v", calls, attributes)
	}
	own, _ := a.result(t, toolCall("pay", `{}`))
	owns := a.records(t, own.CallID)
	if own.Code != "POLICY_DENIED" || len(owns) != 1 || owns[0]["listener"] != "console" || len(a.records(t, "console.impersonated")) != 1 {
		t.Fatalf("the operator got %+v, recorded as %v", own, owns)
	}
	delete(attributes, "request_id")
	operator, _ := owns[0]["principal"].(map[string]any)
	if diff := cmp.Diff(map[string]any{"operator_issuer": "", "operator_kind": "local", "operator": operator["id"], "principal": "ada", "kind": "jwt", "issuer": "https://idp.example.com"}, attributes); diff != "" {
		t.Errorf("(-want +got)\n%s\n%v", diff, events[0])
	}
}

// The call ends when the client closes its end.
func TestTry_cancel(t *testing.T) {
	t.Parallel()
	a := startControlled(t, controlAudit)
	conn := a.try(t, toolCall("hang", `{}`))
	var steps []string
	for len(steps) < 2 { // its policies have been evaluated, and its script runs
		var e control.TryEvent
		if err := conn.Receive(&e); err != nil {
			t.Fatal(err)
		}
		steps = append(steps, e.Step.Name)
	}
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if e := nextEvent(t, conn, &steps); e.Result == nil || e.Result.Code != "EXECUTION_ERROR" {
		t.Errorf("got %+v", e)
	}
	if calls := a.records(t, `"cancelled_by":"connection"`, "hang"); len(calls) != 1 {
		t.Errorf("the log has %v", a.records(t, "hang"))
	}
}

// A server with open streams shuts down: it completes running calls within its grace, and ends the
// streams.
func TestTry_shutdown(t *testing.T) {
	t.Parallel()
	a := startControlled(t, "")
	live := a.calls(t, control.CallQuery{})
	var steps []string
	asking := a.try(t, toolCall("ask", `{}`))
	if e := nextEvent(t, asking, &steps); len(e.Ask) != 1 {
		t.Fatalf("got %+v", e)
	}
	if row := nextCall(t, live); row.Outcome != "input_required" {
		t.Errorf("got %+v", row)
	}
	if err := a.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := a.cmd.Wait(); err != nil {
		t.Errorf("the server exited with %v", err)
	}
	if err := live.Receive(&control.Call{}); err == nil {
		t.Error("the stream of calls outlived the server")
	}
	for {
		var e control.TryEvent
		if err := asking.Receive(&e); err != nil {
			break
		}
		if e.Result != nil {
			t.Errorf("the waiting call got %+v", e.Result)
		}
	}
}
