package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/ops/control"
)

const keysConfig = controlAudit + `auth "api_key" "keys" {
  file = "./keys.json"
}
`

// newKeys returns a function that adds keys with the arguments of mcpd key new to *keys.
func newKeys(t *testing.T, keys *[]string, named ...[]string) func(dir string) {
	return func(dir string) {
		for _, args := range named {
			code, stdout, stderr := inProcess(t, dir, nil, append([]string{"key", "new", "--file", filepath.Join(dir, "keys.json")}, args...)...)
			if code != 0 {
				t.Fatal(stderr)
			}
			*keys = append(*keys, strings.TrimSpace(stdout))
		}
	}
}

// statusWith returns the status of a request with a key.
func (a *controlledServer) statusWith(t *testing.T, key string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, a.url+"/mcp", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+key)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	response, err := a.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	return response.StatusCode
}

func TestControl_keys(t *testing.T) {
	t.Parallel()
	var secrets []string
	a := startControlled(t, keysConfig, newKeys(t, &secrets, []string{"desk", "--principal", "ada", "--expires", "90d", "--groups", "leads"}, []string{"ci", "--scopes", "crm:read", "--agent", "bot"}))
	var got []control.Key
	a.must(t, control.Keys, nil, &got)
	want := []control.Key{
		{KeyName: control.KeyName{Auth: "keys"}, Name: "desk", Principal: "ada", Groups: []string{"leads"}, State: "active"},
		{KeyName: control.KeyName{Auth: "keys"}, Name: "ci", Principal: "ci", Scopes: []string{"crm:read"}, Agent: "bot", State: "active"},
	}
	for i := range got {
		want[i].ID, want[i].Created = got[i].ID, got[i].Created
	}
	want[0].Expires = got[0].Expires
	if diff := cmp.Diff(want, got); diff != "" || got[0].Expires == nil || got[0].ID == "" || got[0].Created.IsZero() {
		t.Fatalf("(-want +got)\n%s", diff)
	}
	var revoked control.Key
	a.must(t, control.RevokeKey, got[0].KeyName, &revoked)
	if revoked.State != "revoked" || revoked.ID != got[0].ID {
		t.Errorf("got %+v", revoked)
	}
	a.must(t, control.Keys, nil, &got)
	if got[0].State != "revoked" || got[1].State != "active" {
		t.Errorf("got %+v", got)
	}
	// The server reads the file again when a key is used, at most twice a second.
	for deadline := time.Now().Add(patience); a.statusWith(t, secrets[0]) != http.StatusUnauthorized; time.Sleep(pollPause) {
		if time.Now().After(deadline) {
			t.Fatal("the revoked key is accepted")
		}
	}
	if events := a.records(t, "console.key_revoked", got[0].ID, `"operator_kind":"local"`); len(events) != 1 {
		t.Errorf("got %v", events)
	}
	if events := a.records(t, "key.revoked", got[0].ID); len(events) != 1 {
		t.Errorf("got %v", events)
	}
	for want, key := range map[string]control.KeyName{
		`no auth block of the kind api_key has the name "other"`: {Auth: "other", ID: got[1].ID},
		`the file of auth "keys" has no key with that id`:        {Auth: "keys", ID: strings.Repeat("../", 1000)},
		`no auth block of the kind api_key has the name ""`:      {},
	} {
		if err := a.ask(t, control.RevokeKey, key, &control.Key{}); err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 500 {
			t.Errorf("got error %v, want %s", err, want)
		}
	}
}

const pinsConfig = controlAudit + `upstream "up" {
  command = ["%[1]s", "serve", "--stdio", "--tools", "%[2]s/up", "--config", "%[2]s/up.hcl", "--state", "memory", "--control", "off"]
}
`

// A changed tool of an upstream server is accepted as it was shown, and served at once.
func TestControl_pins(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "up"), 0o755); err != nil {
		t.Fatal(err)
	}
	tool := func(description string) {
		save(t, filepath.Join(dir, "up", "t.hcl"), fmt.Sprintf("tool \"count\" {\n  description = %q\n  run = \"return 1;\"\n}\n", description))
	}
	tool("Counts.")
	save(t, filepath.Join(dir, "up.hcl"), "server {\n  name = \"up\"\n}\n")
	a := startControlled(t, fmt.Sprintf(pinsConfig, buildDaemon(t), dir))
	var pins []control.Pin
	a.must(t, control.Pins, nil, &pins)
	if len(pins) > 0 {
		t.Fatalf("pinned at first use, got %+v", pins)
	}
	// changed waits until a change is noticed, and returns it.
	changed := func(text string) control.Pin {
		for deadline := time.Now().Add(patience); ; time.Sleep(pollPause) {
			a.must(t, control.Pins, nil, &pins)
			if len(pins) == 1 && strings.Contains(pins[0].Change, text) {
				return pins[0]
			}
			if time.Now().After(deadline) {
				t.Fatalf("no pin has %q: %+v", text, pins)
			}
		}
	}
	tool("Counts sheep.")
	first := changed("sheep")
	if first.Upstream != "up" || first.Tool != "count" || first.Kind != "changed" || len(first.Digest) != 64 || !strings.Contains(first.Change, "-  \"description\": \"Counts.\"") {
		t.Errorf("got %+v\n%s", first, first.Change)
	}
	tool("Counts stolen sheep.")
	second := changed("stolen")
	for _, pin := range []control.PinName{first.PinName, {Upstream: "up", Tool: "count"}, {Upstream: "other", Tool: "count", Digest: second.Digest}, {Upstream: "up", Tool: "own", Digest: second.Digest}} {
		if err := a.ask(t, control.Accept, pin, &struct{}{}); err == nil || !strings.Contains(err.Error(), "has changed since, or is accepted; list the pins again") {
			t.Errorf("%+v: got error %v", pin, err)
		}
	}
	if got, _ := a.result(t, toolCall("up_count", `{}`)); got.Code == "" {
		t.Errorf("the quarantined tool returned %s", got.Value)
	}
	a.must(t, control.Accept, second.PinName, &struct{}{})
	if got, _ := a.result(t, toolCall("up_count", `{}`)); string(got.Value) != `"1"` {
		t.Errorf("got %+v", got)
	}
	a.must(t, control.Pins, nil, &pins)
	if events := a.records(t, "upstream.accepted", "count"); len(pins) > 0 || len(events) != 1 {
		t.Errorf("got %+v, %v", pins, events)
	}
	if err := a.ask(t, control.Accept, second.PinName, &struct{}{}); err == nil {
		t.Error("the change was accepted twice")
	}
}

func TestControl_tasks(t *testing.T) {
	t.Parallel()
	a := startControlled(t, controlAudit)
	live, tasks := a.calls(t, control.CallQuery{}), []control.Task{}
	a.must(t, control.Tasks, nil, &tasks)
	if tasks == nil || len(tasks) > 0 {
		t.Errorf("got %v", tasks)
	}
	status, body, err := a.modern("tools/call", `{"name":"hang","arguments":{}}`)
	if err != nil || !strings.Contains(string(body), `"taskId"`) {
		t.Fatal(status, string(body), err)
	}
	a.must(t, control.Tasks, nil, &tasks)
	if len(tasks) != 1 || tasks[0].Tool != "hang" || tasks[0].Status != "working" || tasks[0].Principal != "anonymous" || tasks[0].Created.IsZero() {
		t.Fatalf("got %+v", tasks)
	}
	for _, name := range []control.TaskName{{Principal: "ada", AuthKind: "key", ID: tasks[0].ID}, {Principal: "anonymous", AuthKind: "anonymous", ID: "x"}, {}} {
		if err := a.ask(t, control.CancelTask, name, &struct{}{}); err == nil || !strings.Contains(err.Error(), "task") {
			t.Errorf("%+v: got error %v", name, err)
		}
	}
	a.must(t, control.CancelTask, tasks[0].TaskName, &struct{}{})
	a.must(t, control.Tasks, nil, &tasks)
	if len(tasks) != 1 || tasks[0].Status != "cancelled" {
		t.Errorf("got %+v", tasks)
	}
	if ended := nextCall(t, live); ended.Name != "hang" || len(a.records(t, ended.CallID, `"cancelled_by":"client"`)) != 1 {
		t.Errorf("the call ended as %+v", ended)
	}
	if events := a.records(t, "console.task_cancelled", `"tool":"hang"`, `"operator_kind":"local"`); len(events) != 1 {
		t.Errorf("got %v", events)
	}
}

// Reloads and dropped tokens have events that name the operator.
func TestControl_changesNameOperator(t *testing.T) {
	t.Parallel()
	a := startControlled(t, controlAudit)
	a.must(t, control.Reload, nil, &controlAnswer{})
	if err := control.Do(t.Context(), a.socket, control.Request{Action: control.DropTokens, TokenFilter: control.TokenFilter{Secret: "crm"}}, &controlAnswer{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"console.reloaded", "console.tokens_dropped"} {
		if events := a.records(t, name, `"operator":"`, `"operator_kind":"local"`, `"operator_issuer":`); len(events) != 1 {
			t.Errorf("%s: got %v", name, events)
		}
	}
}
