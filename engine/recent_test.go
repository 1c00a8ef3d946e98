package engine_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
)

func TestRecent_calls(t *testing.T) {
	s := server(t, engine.Options{Files: engine.Files{Tools: files("t.hcl", `
tool "good" {
  input "word" { type = string }
  run = "return input.word;"
}
tool "outer" {
  allow {
    call { tools = ["good"] }
  }
  run = "return await tools.good({ word: 'the-value' });"
}
policy "shut" {
  tools  = ["good"]
  deny   = "args.word == 'shut'"
  reason = "closed"
}
resource_template "notes" {
  uri_template = "note://{id}"
  run = "return params.id;"
}
test "an unrecorded test" {
  tool  = "good"
  input = { word = "test" }
  expect { output = "test" }
}
`)}})
	caller := identity.Caller{
		Principal: identity.Principal{ID: "ada", Kind: identity.KindToken, Issuer: "https://id.example.com"}, Agent: identity.Agent{AgentID: "bot", RequestID: "r-1"},
		Source: identity.Source{Listener: "stdio"},
	}
	execute := func(k call.Kind, name, arguments string) {
		s.Execute(t.Context(), call.Request{Kind: k, Name: name, Arguments: json.RawMessage(arguments), Caller: caller})
	}
	execute(call.Tools, "good", `{"word":"before"}`)
	if got := s.Inside().Recent().Last(10); len(got) > 0 {
		t.Fatalf("calls are recorded before anything watches: %v", got)
	}
	s.Inside().Recent().Start()
	execute(call.Tools, "outer", `{}`)
	execute(call.Tools, "good", `{"word":"shut"}`)
	execute(call.Tools, "missing", `{"word":"the-value"}`)
	execute(call.Resources, "note://the-value", ``)
	execute(call.Resources, "other://the-value", ``)
	if _, err := s.RunTests(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	got := s.Inside().Recent().Last(10)
	var lines []string
	for _, c := range got {
		lines = append(lines, strings.Join([]string{c.Kind, c.Name, c.Via, c.Outcome, c.DeniedBy}, " "))
		if c.Principal != "ada" || c.Issuer == "" || c.AuthKind != "jwt" || c.Agent != "bot" || c.RequestID != "r-1" || c.Listener != "stdio" || c.CallID == "" || c.Revision == "" || c.Time.IsZero() {
			t.Errorf("a field is missing: %+v", c)
		}
	}
	want := []string{
		"tool good tool ok ", "tool outer client ok ", "tool good client POLICY_DENIED shut", "tool missing client TOOL_NOT_FOUND ",
		"resource notes client ok ", "resource  client TOOL_NOT_FOUND ",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Error(diff)
	}
	if got[0].ParentID != got[1].CallID || got[0].Depth != 1 {
		t.Errorf("the nested call is %+v", got[0])
	}
	if text := fmt.Sprintf("%+v", got); strings.Contains(text, "the-value") {
		t.Error("a call has an argument")
	}
}

// Only tests with another block, item or policy run again.
func TestRunTestsSince_changes(t *testing.T) {
	const (
		tools = `
tool "%[1]s" {
  input "n" { type = number }
  run = "return input.n + %[2]d;"
}
test "of %[1]s" {
  tool  = "%[1]s"
  input = { n = 1 }
  expect { output = 2 }
}
`
		policy = `
policy "p" {
  tools  = ["b"]
  deny   = "args.n > %d"
  reason = "too many"
}
`
	)
	disk := fstest.MapFS{}
	write := func(name, format string, args ...any) {
		disk[name] = &fstest.MapFile{Data: fmt.Appendf(nil, format, args...)}
	}
	write("a.hcl", tools, "a", 1)
	write("b.hcl", tools, "b", 1)
	write("p.hcl", policy, 10)
	s := server(t, engine.Options{Files: engine.Files{Tools: disk}})
	var last *engine.Snapshot
	run := func(also string) string {
		t.Helper()
		if _, err := s.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		tested := s.Snapshot()
		results, err := s.Inside().RunTestsSince(t.Context(), last, func(name string) bool { return name == also })
		if err != nil {
			t.Fatal(err)
		}
		last = tested
		var names []string
		for _, r := range results {
			names = append(names, fmt.Sprintf("%s %t", r.Name, r.Passed()))
		}
		return strings.Join(names, ", ")
	}
	for _, step := range []struct {
		name   string
		change func()
		also   string
		want   string
	}{
		{"first", func() {}, "", "of a true, of b true"},
		{"unchanged", func() {}, "", ""},
		{"failed before", func() {}, "of a", "of a true"},
		{"tool", func() { write("a.hcl", tools, "a", 2) }, "", "of a false"},
		{"policy", func() { write("p.hcl", policy, 0) }, "", "of b false"},
	} {
		step.change()
		if got := run(step.also); got != step.want {
			t.Errorf("%s: ran %q, want %q", step.name, got, step.want)
		}
	}
}
