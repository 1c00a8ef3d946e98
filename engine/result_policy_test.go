package engine_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
)

// lookup returns its argument, so that a policy can evaluate it.
const lookup = `
tool "lookup" {
  input "level" { type = integer }
  output "level" { type = integer }
  output "note" {
    type     = string
    required = false
  }
  run = "return { level: input.level }"
}
tool "say" {
  input "text" { type = string }
  run = "return input.text"
}
tool "draw" {
  run = "return content.text('secret plan')"
}
resource "page" {
  uri       = "docs://page"
  mime_type = "text/plain"
  text      = "secret page"
}
prompt "ask" {
  message "user" { text = "secret question" }
}
policy "levels" {
  on     = "result"
  tools  = ["lookup"]
  deny   = "result.level > 3 && !principal.scopes.exists(s, s == 'admin')"
  reason = <<CEL
    "Level " + string(result.level) + " is for admins"
  CEL
}
policy "words" {
  on     = "result"
  tools  = ["say", "draw"]
  deny   = "string(result).contains('secret')"
  reason = "Not for you"
}
policy "shapes" {
  on        = "result"
  resources = ["page"]
  prompts   = ["ask"]
  when      = "tool.kind != 'tool'"
  deny      = "tool.kind == 'resource' ? result.contents[0].text.contains('secret') : result.messages[0].content.text.contains('secret')"
  reason    = "Not for you"
}
`

func resultPolicyServer(t *testing.T, text string) (*engine.Server, fstest.MapFS) {
	tools := files("lookup.hcl", text)
	return server(t, engine.Options{Files: engine.Files{Tools: tools}}), tools
}

func toolCall(name, arguments string) call.Request {
	r := deployCall("", nil)
	r.Name, r.Arguments = name, json.RawMessage(arguments)
	return r
}

// All kinds of results are evaluated after the call.
func TestResultPolicy_denies(t *testing.T) {
	s, _ := resultPolicyServer(t, strings.Replace(lookup, "string(result).contains", "tool.name == 'draw' ? result[0].text.contains('secret') : result.contains", 1))
	admin := toolCall("lookup", `{"level":4}`)
	admin.Caller.Principal.Scopes = []string{"admin"}
	page, question := toolCall("docs://page", ""), toolCall("ask", "")
	page.Kind, question.Kind = call.Resources, call.Prompts
	page.Arguments, question.Arguments = nil, nil
	for _, test := range []struct {
		request call.Request
		want    string
	}{
		{toolCall("lookup", `{"level":3}`), `{"level":3}`},
		{toolCall("lookup", `{"level":4}`), "POLICY_DENIED: Level 4 is for admins"},
		{admin, `{"level":4}`},
		{toolCall("say", `{"text":"hello"}`), `"hello"`},
		{toolCall("say", `{"text":"a secret"}`), "POLICY_DENIED: Not for you"},
		{toolCall("draw", `{}`), "POLICY_DENIED: Not for you"},
		{page, "POLICY_DENIED: Not for you"},
		{question, "POLICY_DENIED: Not for you"},
	} {
		wantOutcome(t, s.Execute(t.Context(), test.request), test.want)
	}
	if seen := s.Visible(t.Context(), call.Tools, admin.Caller); len(seen.Tools) != 3 {
		t.Errorf("%d tools are visible, as results are unknown", len(seen.Tools))
	}
}

// The types are checked while loading.
func TestResultPolicy_schema(t *testing.T) {
	for change, want := range map[string]string{
		"result.levle > 3":   `the result of tool "lookup" has no "levle"`,
		"result.level > '3'": "cannot compare an integer with a string",
		"result.note == 'x'": "result.note is optional, and without it this denies the call",
		"has(result.nope)":   "",
		"args.level > 3":     "",
		"args.levle > 3":     `tool "lookup" has no argument "levle"`,
	} {
		s := unloaded(t, engine.Options{Files: engine.Files{Tools: files("lookup.hcl", strings.Replace(lookup, "result.level > 3 && !principal.scopes.exists(s, s == 'admin')", change, 1))}})
		report, _ := s.Load(t.Context())
		got := report.Problems.Error()
		if !strings.Contains(got, want) || want == "" && report.Problems.HasErrors() {
			t.Errorf("%s: got %s", change, got)
		}
	}
}

// Errors deny.
func TestResultPolicy_unreadable(t *testing.T) {
	s, _ := resultPolicyServer(t, strings.Replace(lookup, "result.level > 3", "result.level / 0 > 3", 1))
	wantOutcome(t, s.Execute(t.Context(), toolCall("lookup", `{"level":1}`)), "POLICY_DENIED: denied by policy")
}

// The variable result exists in result policies only.
func TestResultPolicy_resultVariable(t *testing.T) {
	s := unloaded(t, engine.Options{Files: engine.Files{Tools: files("lookup.hcl", strings.Replace(lookup, `  on     = "result"
  tools  = ["lookup"]`, `  tools  = ["lookup"]`, 1))}})
	if report, _ := s.Load(t.Context()); !strings.Contains(report.Problems.Error(), `a policy with on = "result" judges what a call returns`) {
		t.Errorf("got %v", report.Problems)
	}
}

// A result with result policies is not public.
func TestResultPolicy_folder(t *testing.T) {
	tools := files("docs.hcl", `
resource_folder "docs" {
  root       = "docs"
  uri_prefix = "docs://"
}
policy "words" {
  on     = "result"
  deny   = "result.contents[0].text.contains('secret')"
  reason = "Not for you"
}
`, "docs/a.md", "a secret", "docs/b.md", "another secret", "docs/c.md", "open")
	s := server(t, engine.Options{Files: engine.Files{Tools: tools}})
	for name, want := range map[string]bool{"a.md": false, "b.md": false, "c.md": true} {
		r := toolCall("docs://"+name, "")
		r.Kind, r.Arguments = call.Resources, nil
		if got := s.Execute(t.Context(), r); (got.Err == nil) != want || got.Public {
			t.Errorf("%s: %s, public: %v", name, outcomeText(got), got.Public)
		}
	}
}

// No part of a result reaches the client without a policy that can read it.
func TestResultPolicy_content(t *testing.T) {
	const both = `
tool "both" {
  input "part" { type = string }
  run = "return content.structured({ note: input.part === 'value' ? 'secret' : 'fine' }, [content.text(input.part === 'content' ? 'secret' : 'fine')])"
}
policy "words" {
  on     = "result"
  deny   = "%s"
  reason = "Not for you"
}
`
	for rule, want := range map[string]map[string]string{
		"result.note.contains('secret')": {"value": "POLICY_DENIED: denied by policy", "content": "POLICY_DENIED: denied by policy", "none": "POLICY_DENIED: denied by policy"},
		"result.note.contains('secret') || content.exists(b, b.text.contains('secret'))": {
			"value": "POLICY_DENIED: Not for you", "content": "POLICY_DENIED: Not for you", "none": `{"note":"fine"}`,
		},
	} {
		s, _ := resultPolicyServer(t, fmt.Sprintf(both, rule))
		for part, want := range want {
			wantOutcome(t, s.Execute(t.Context(), toolCall("both", `{"part":"`+part+`"}`)), want)
		}
	}
}
