package main

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
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
		if !strings.HasSuffix(line, "\n") {
			break // the server is writing the record
		}
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
	if caller, _ := calls[0]["principal"].(map[string]any); !reflect.DeepEqual(caller["groups"], []any{"leads"}) {
		t.Errorf("the caller is recorded as %v", caller)
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

// recordedTools ask a host for data that contains secrets and sensitive values. HOST is the host.
const recordedTools = `tool "probe" {
  timeout = "20s"
  input "email" {
    type      = string
    sensitive = true
  }
  allow {
    http "shop" {
      hosts            = ["HOST"]
      private_networks = true
      methods          = ["POST"]
      header "Authorization" { value = "Bearer ${secret.token}" }
    }
    secrets { names = ["key"] }
    ask { elicit = true }
  }
  run = <<JS
    const url = "http://HOST/find?email=" + encodeURIComponent(input.email);
    const found = (await http.shop.post(url, { json: { key: secrets.key, email: input.email } })).json();
    const answer = await elicit({ message: "Why?", schema: { type: "object", properties: { why: { type: "string" } } } });
    return { found, why: answer.content.why };
  JS
}
tool "status" {
  timeout = "20s"
  cache { ttl = "1h" }
  read_only = true
  allow {
    http "shop" {
      hosts            = ["HOST"]
      private_networks = true
    }
  }
  run = "return (await http.shop.get('http://HOST/status')).status;"
}
tool "download" {
  timeout = "20s"
  allow {
    http "shop" {
      hosts            = ["HOST"]
      private_networks = true
    }
  }
  run = "return (await http.shop.get('http://HOST/large')).text().length;"
}
tool "reveals" {
  timeout = "20s"
  allow {
    http "shop" {
      hosts            = ["HOST"]
      private_networks = true
    }
    secrets { names = ["key"] }
  }
  run = "return (await http.shop.get('http://HOST/?key=' + encodeURIComponent(secrets.key))).text();"
}
tool "short" {
  timeout = "20s"
  input "pin" {
    type      = string
    sensitive = true
  }
  run = "return 1;"
}
`

const recordedSecrets = `secret "token" { file = "./token" }
secret "key" {
  file   = "./key"
  reveal = true
}
`

// A recorded call has a test that passes as it is, without values of secrets and of sensitive inputs in
// any form.
func TestTry_record(t *testing.T) {
	t.Parallel()
	const token, key, email = "tok/4f1c+2b9a7d==", "key-93ab/51cc+02", "ann+x@example.org"
	var asked atomic.Int64
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.URL.Path == "/large" {
			_, _ = io.WriteString(w, strings.Repeat("x", 2<<20))
			return
		}
		body, _ := io.ReadAll(r.Body)
		auth := r.Header.Get("Authorization")
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Location", "https://files.example/?token="+url.QueryEscape(token))
		_ = json.NewEncoder(w).Encode(map[string]string{
			"auth": auth, "base64": base64.StdEncoding.EncodeToString([]byte(auth)), "hex": hex.EncodeToString([]byte(token)),
			"url": url.QueryEscape(token), "body": string(body), "query": r.URL.RawQuery, "name": "Ann",
		})
	}))
	defer shop.Close()
	a := startControlled(t, recordedSecrets, func(dir string) {
		save(t, filepath.Join(dir, "token"), token)
		save(t, filepath.Join(dir, "key"), key)
		save(t, filepath.Join(dir, "tools.d", "shop.hcl"), strings.ReplaceAll(recordedTools, "HOST", strings.TrimPrefix(shop.URL, "http://")))
	})
	var steps []string
	recorded := func(of control.TryCall) *control.TryResult {
		t.Helper()
		of.Record = true
		conn := a.try(t, of)
		for {
			switch e := nextEvent(t, conn, &steps); {
			case e.Ask != nil:
				if err := conn.Send(control.TryAnswer{Responses: map[string]json.RawMessage{e.Ask[0].Key: json.RawMessage(`{"action":"accept","content":{"why":"a gift"}}`)}}); err != nil {
					t.Fatal(err)
				}
			case e.Result != nil:
				return e.Result
			default:
				t.Fatalf("got %+v", e)
			}
		}
	}
	var file strings.Builder
	keep := func(r *control.TryResult) {
		t.Helper()
		if r.Test == "" || r.TestProblem != "" {
			t.Fatalf("no test of the result %s %s %s: %s", r.Value, r.Code, r.Message, r.TestProblem)
		}
		file.WriteString(r.Test)
	}
	probe := recorded(toolCall("probe", `{"email":"`+email+`"}`))
	if string(probe.Value) == "" || !strings.Contains(probe.Test, `why = "a gift"`) || !strings.Contains(probe.Test, `mock "elicit" "elicit"`) || !strings.Contains(probe.Test, "http.shop") {
		t.Errorf("got %+v", probe)
	}
	reveals := recorded(toolCall("reveals", `{}`))
	if reveals.Test != "" || !strings.Contains(reveals.TestProblem, "its test would fail") { // its URL depends on the secret
		t.Errorf("got %+v", reveals)
	}
	probe.TestNotes = append(probe.TestNotes, reveals.TestProblem)
	for _, value := range []string{token, key, email} {
		for _, form := range []string{value, url.QueryEscape(value), url.PathEscape(value), base64.StdEncoding.EncodeToString([]byte(value)), base64.StdEncoding.EncodeToString([]byte("Bearer " + value)), hex.EncodeToString([]byte(value))} {
			if strings.Contains(probe.Test, form) || strings.Contains(strings.Join(probe.TestNotes, " "), form) {
				t.Errorf("the test has %s of %s:\n%s\n%s", form, value, probe.Test, probe.TestNotes)
			}
		}
	}
	keep(probe)
	// A cached result is not reused, and a call as another principal has that principal.
	if got, _ := a.result(t, toolCall("status", `{}`)); string(got.Value) != "200" {
		t.Fatalf("got %+v", got)
	}
	before := asked.Load()
	status := recorded(toolCall("status", `{}`))
	if asked.Load() != before+1 || !strings.Contains(status.Test, `"GET /status"`) || !strings.Contains(status.Test, `principal = { id = "local", kind = "local" }`) {
		t.Errorf("got %s", status.Test)
	}
	keep(status)
	as := toolCall("pay", `{}`)
	as.Principal = &identity.Principal{ID: "ada", Kind: identity.KindToken, Issuer: "https://idp.example.com", Groups: []string{"leads"}}
	as.Agent = &control.Agent{AgentID: "bot"}
	paid := recorded(as)
	for _, part := range []string{`id     = "ada"`, `kind   = "jwt"`, `issuer = "https://idp.example.com"`, `"leads"`, `agent = { agent_id = "bot" }`, `output = "paid"`} {
		if !strings.Contains(paid.Test, part) {
			t.Errorf("the test lacks %s:\n%s", part, paid.Test)
		}
	}
	keep(paid)
	denied := recorded(toolCall("add", `{"a":1001,"b":1}`))
	if !strings.Contains(denied.Test, `denied_by = "small"`) {
		t.Errorf("got %s", denied.Test)
	}
	keep(denied)
	if again := recorded(toolCall("add", `{"a":1001,"b":1}`)); !strings.Contains(again.Test, `test "recorded call of add 2"`) {
		t.Errorf("the files lack the first test, and the second has the same name: %s", again.Test)
	}
	for want, of := range map[string]control.TryCall{
		"larger than 1 MiB":       toolCall("download", `{}`),
		"shorter than four bytes": toolCall("short", `{"pin":"123"}`),
	} {
		if got := recorded(of); got.Test != "" || !strings.Contains(got.TestProblem, want) {
			t.Errorf("%s: got %+v, want %s", of.Address, got, want)
		}
	}
	for _, of := range []control.ItemName{{Kind: "prompt", Address: "greet"}, {Kind: "tool", Address: "none"}} {
		if err := a.ask(t, control.Try, control.TryCall{ItemName: of, Record: true}, &struct{}{}); err == nil || !strings.Contains(err.Error(), "only calls of tools that a file defines") {
			t.Errorf("%s: %v", of.Address, err)
		}
	}
	if got, _ := a.result(t, toolCall("add", `{"a":1,"b":1}`)); got.Test != "" || got.TestProblem != "" {
		t.Errorf("a call that is not recorded has %+v", got)
	}
	save(t, filepath.Join(a.dir, "tools.d", "recorded.hcl"), file.String())
	code, stdout, stderr := inProcess(t, a.dir, []string{"HOME=" + a.dir}, "test")
	if code != exitOK || !strings.Contains(stdout, "4 passed, 0 failed") {
		t.Errorf("mcpd test exited with %d\n%s%s\n%s", code, stdout, stderr, file.String())
	}
	if code, stdout, stderr := inProcess(t, a.dir, nil, "fmt", "--check"); strings.Contains(stdout+stderr, "recorded.hcl") {
		t.Errorf("mcpd fmt --check exited with %d\n%s%s", code, stdout, stderr)
	}
}

func TestComplete_control(t *testing.T) {
	t.Parallel()
	a := startControlled(t, controlAudit, func(dir string) {
		save(t, filepath.Join(dir, "tools.d", "plan.hcl"), `prompt "plan" {
  argument "date" {}
  argument "depth" { values = ["short", "thorough"] }
  message "user" { text = "Plan {{date}}" }
}
resource_template "day" {
  uri_template = "calendar://{date}"
  complete "date" { run = "return [value + '!'];" }
  text = "Nothing on {{date}}"
}
`)
	})
	prompt := control.ItemName{Kind: "prompt", Address: "plan"}
	var got control.CompleteResult
	if err := a.ask(t, control.Complete, control.CompleteQuery{ItemName: prompt, Argument: "depth", Value: "s", Arguments: map[string]string{"date": "Monday"}}, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(control.CompleteResult{Values: []string{"short"}}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	got = control.CompleteResult{}
	if err := a.ask(t, control.Complete, control.CompleteQuery{ItemName: control.ItemName{Kind: "template", Address: "calendar://{date}"}, Argument: "date", Value: "2026"}, &got); err != nil || !slices.Equal(got.Values, []string{"2026!"}) {
		t.Errorf("got %+v, %v", got, err)
	}
	var item control.ItemResult
	if err := a.ask(t, control.Item, prompt, &item); err != nil || len(item.Arguments) != 2 || item.Arguments[0].Completes || !item.Arguments[1].Completes {
		t.Errorf("got %+v, %v", item.Arguments, err)
	}
	for want, of := range map[string]control.CompleteQuery{
		"only arguments of prompts": {ItemName: control.ItemName{Kind: "tool", Address: "add"}, Argument: "a"},
		"TOOL_NOT_FOUND":            {ItemName: control.ItemName{Kind: "prompt", Address: "none"}, Argument: "a"},
		"INVALID_INPUT":             {ItemName: prompt, Argument: "none"},
	} {
		if err := a.ask(t, control.Complete, of, &got); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", of, err, want)
		}
	}
	if calls := a.records(t, `"plan"`, `"listener":"console"`); len(calls) == 0 {
		t.Error("the completion is not in the audit log")
	}
}
