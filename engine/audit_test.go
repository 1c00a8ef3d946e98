package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/ops/audit"
)

// line is an audit record.
type line struct {
	Kind      string          `json:"kind"`
	Name      string          `json:"name"`
	Tool      string          `json:"gen_ai.tool.name"`
	Alias     string          `json:"alias"`
	Via       string          `json:"via"`
	Call      string          `json:"call_id"`
	Parent    string          `json:"parent_id"`
	Outcome   string          `json:"outcome"`
	DeniedBy  string          `json:"denied_by"`
	Arguments json.RawMessage `json:"arguments"`
	Captured  json.RawMessage `json:"gen_ai.tool.call.arguments"`
	Depth     int             `json:"depth"`
	Declined  bool            `json:"declined"`
	Limited   bool            `json:"limited"`
}

const ledgered = `
tool "pay" {
  input "amount" { type = number }
  input "card" {
    type      = string
    sensitive = true
    required  = false
  }
  run = "if (input.amount > 100) throw new Error('too much'); return input.amount"
}
tool "twice" {
  allow {
    call { tools = ["pay"] }
  }
  run = "return await tools.pay({ amount: 1 })"
}
policy "no_negatives" {
  tools  = ["pay"]
  deny   = "args.amount < 0.0"
  reason = "Nothing to pay"
}
`

// auditedServer returns a server with an audit log in its own directory.
func auditedServer(t *testing.T, block string) (*engine.Server, string) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	return server(t, engine.Options{Files: engine.Files{Tools: files("pay.hcl", ledgered), Config: files("mcpd.hcl", auditBlock(path, block))}}), path
}

// auditBlock returns an audit block with a path and more lines.
func auditBlock(path, more string) string {
	return fmt.Sprintf("audit {\n  path = %q\n%s}\n", path, more)
}

// linesOf returns the lines of a valid log.
func linesOf(t *testing.T, path string) (lines []line, text string) {
	t.Helper()
	report, err := audit.Verify(path)
	if err != nil || len(report.Findings) > 0 {
		t.Fatalf("the log: %v, %+v", err, report)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range bytes.Split(bytes.TrimSpace(raw), []byte("\n")) {
		var one line
		if err := json.Unmarshal(l, &one); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, one)
	}
	return lines, string(raw)
}

// outcomesOf closes a server and returns its outcome records.
func outcomesOf(t *testing.T, s *engine.Server, path string) []line {
	t.Helper()
	if err := s.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	lines, _ := linesOf(t, path)
	return slices.DeleteFunc(lines, func(l line) bool { return l.Kind != "outcome" })
}

// Nested calls are recorded, too, and arguments only by their shape.
func TestAudit_recordsEveryCall(t *testing.T) {
	s, path := auditedServer(t, "")
	for _, r := range []call.Request{
		toolCall("pay", `{"amount":7,"card":"VISA-1111"}`), toolCall("pay", `{"amount":-7}`), toolCall("pay", `{"amount":700}`), toolCall("pay", `{"amount":"seven"}`),
		toolCall("pya", `{}`), toolCall("twice", `{}`),
	} {
		s.Execute(t.Context(), r)
	}
	if err := s.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	lines, text := linesOf(t, path)
	var got []string
	for _, l := range lines {
		if l.Kind == "outcome" {
			got = append(got, strings.TrimSpace(l.Outcome+" "+l.DeniedBy))
		}
	}
	if want := "ok,POLICY_DENIED no_negatives,EXECUTION_ERROR,INVALID_INPUT,TOOL_NOT_FOUND,ok,ok"; strings.Join(got, ",") != want {
		t.Errorf("got %v, want %s", got, want)
	}
	if inner, outer := lines[len(lines)-4], lines[len(lines)-3]; inner.Parent != outer.Call || inner.Parent == "" {
		t.Errorf("the nested call %+v does not belong to %+v", inner, outer)
	}
	// Digests are random, so they cannot contain these texts by chance.
	if strings.Contains(text, "VISA") || strings.Contains(text, "-1111") || strings.Contains(text, "seven") {
		t.Errorf("the log contains arguments: %s", text)
	}
	if first, last := lines[0], lines[len(lines)-1]; first.Kind != "event" || last.Kind != "event" {
		t.Errorf("the first record is %+v, the last %+v", first, last)
	}
}

// The record names the limit.
func TestAudit_recordsLimit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	s := server(t, engine.Options{
		Files: engine.Files{
			Config: files("mcpd.hcl", auditBlock(path, "")),
			Tools:  files("t.hcl", "tool \"once\" { run = \"return 1\" }\nlimit \"hourly\" { rate = \"1/h\" }\n"),
		},
	})
	for range 2 {
		s.Execute(t.Context(), toolCall("once", `{}`))
	}
	var got []string
	for _, l := range outcomesOf(t, s, path) {
		got = append(got, fmt.Sprint(l.Outcome, " ", l.DeniedBy, " ", l.Limited))
	}
	if want := "ok  false,POLICY_DENIED hourly true"; strings.Join(got, ",") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

// Sensitive arguments are not captured.
func TestAudit_capturesArguments(t *testing.T) {
	s, path := auditedServer(t, "  capture = [\"p*\"]\n")
	s.Execute(t.Context(), toolCall("pay", `{"amount":7654321,"card":"VISA-1111"}`))
	if err := s.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, text := linesOf(t, path); !strings.Contains(text, "7654321") || strings.Contains(text, "VISA") || strings.Contains(text, "-1111") {
		t.Errorf("the log is %s", text)
	}
}

// A call that cannot be audited does nothing.
func TestAudit_strictIntent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	config := files("mcpd.hcl", auditBlock(path, "  mode = \"strict\"\n"))
	s := unloaded(t, engine.Options{Files: engine.Files{Tools: files("a.hcl", "tool \"file\" {\n  run = \"return 1\"\n}\n"), Config: config}})
	var seen []byte
	goTool(t, s, "act", func(context.Context) (string, error) {
		var err error
		seen, err = os.ReadFile(path)
		return "done", err
	})
	if _, err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantOutcome(t, s.Execute(t.Context(), toolCall("act", `{}`)), `"done"`)
	if !bytes.Contains(seen, []byte(`"kind":"intent"`)) || bytes.Contains(seen, []byte(`"kind":"outcome"`)) {
		t.Errorf("during the call, the log was %s", seen)
	}
	if err := s.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	lines, _ := linesOf(t, path)
	intents := 0
	for _, l := range lines {
		if l.Kind == "intent" {
			intents++
		}
	}
	if intents != 1 {
		t.Errorf("there are %d intents", intents)
	}
}

// A server does not start without its audit log.
func TestAudit_openFails(t *testing.T) {
	folder := t.TempDir()
	o := engine.Options{Files: engine.Files{Tools: files("pay.hcl", ledgered), Config: files("mcpd.hcl", auditBlock(folder, ""))}}
	s := unloaded(t, o)
	if report, err := s.Load(t.Context()); err == nil || !strings.Contains(report.Problems.Error(), "calls cannot be audited") {
		t.Errorf("got %v", err)
	}
	o.Mode = engine.ReadOnly
	if _, err := unloaded(t, o).Load(t.Context()); err != nil {
		t.Errorf("with mode ReadOnly: %v", err)
	}
}

// readable is a template with reads that are denied, hidden, failed and answered.
const readable = `
resource_template "note" {
  uri_template = "note://{owner}{?of}"
  run = "if (params.of?.endsWith('-fails')) throw new Error('there is none'); return 'a note'"
}
policy "hidden" {
  resources = ["note"]
  deny      = "args.owner == 'CANARY-hidden'"
  reason    = "no"
  disclose  = "hide"
}
policy "closed" {
  resources = ["note"]
  deny      = "args.owner == 'CANARY-closed'"
  reason    = "not of this owner"
}
`

// Values in the URI of a template are recorded by their shape, unless they are captured, whatever
// the outcome is. An unknown URI may contain such values, too. The server's log has none of them.
func TestAudit_uriVariables(t *testing.T) {
	uris := []string{
		"note://CANARY-1", "note://CANARY-2?of=CANARY-3", "note://CANARY-2?of=CANARY-fails", "note://CANARY-hidden", "note://CANARY-closed", "note://CANARY/beyond", "CANARY://x",
	}
	for block, want := range map[string]struct {
		values []string
		shown  int
	}{
		"  mode = \"strict\"\n":         {nil, 0},
		"  capture = [\"note\"]\n":      {[]string{`{"owner":"CANARY-1"}`, `{"of":"CANARY-3","owner":"CANARY-2"}`}, 7},
		"  capture = [\"elsewhere\"]\n": {nil, 0},
	} {
		path := filepath.Join(t.TempDir(), "audit.jsonl")
		var said logBuffer
		s := server(t, engine.Options{Files: engine.Files{Tools: files("note.hcl", readable), Config: files("mcpd.hcl", auditBlock(path, block))}, Logger: said.logger()})
		for _, uri := range uris {
			s.Execute(t.Context(), call.Request{Kind: call.Resources, Name: uri})
		}
		if err := s.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		if log := said.String(); strings.Contains(log, "CANARY") || !strings.Contains(log, "call failed") {
			t.Errorf("%sthe log of the server says %s", block, log)
		}
		lines, text := linesOf(t, path)
		if shown := strings.Count(text, "CANARY"); shown != want.shown {
			t.Errorf("%sthe log shows %d values: %s", block, shown, text)
		}
		for _, values := range want.values {
			if !strings.Contains(text, `"gen_ai.tool.call.arguments":`+values) {
				t.Errorf("%sthe log lacks %s: %s", block, values, text)
			}
		}
		outcomes := 0
		for _, l := range lines {
			if l.Kind == "outcome" && l.Arguments != nil {
				outcomes++
			}
		}
		if of := strings.Count(text, `"mcp.resource.uri":"note://{owner}{?of}"`); outcomes != len(uris) || of < 5 {
			t.Errorf("%s%d reads have arguments, and %d lines the template: %s", block, outcomes, of, text)
		}
	}
}
