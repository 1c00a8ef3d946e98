package engine_test

import (
	"context"
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

// library has one item of each kind, and a policy and a hook for each.
const library = `
resource "motd" {
  uri  = "note://motd"
  text = "Hello"
}

resource "computed" {
  uri = "note://computed"
  run = <<JS
    return { uri, agent: agent.agent_id, params };
  JS
}

resource "broken" {
  uri = "note://broken"
  run = <<JS
    throw new ToolError("no paper");
  JS
}

resource "odd" {
  uri = "note://odd"
  run = "return content.link({ uri: 'note://motd', name: 'motd' });"
}

resource_template "note" {
  uri_template = "note://n/{id}"
  param "id" { pattern = "^[0-9]+$" }
  complete "id" { values = ["17", "18", "29"] }
  run = <<JS
    return "note " + params.id;
  JS
}

resource_template "other" {
  uri_template = "note://{+path}"
  text         = "other {{path}}"
}

resource_folder "docs" {
  root       = "docs"
  uri_prefix = "docs://h/"
}

prompt "plan" {
  description = "Plans"
  argument "day" {
    required = true
    complete {
      run = "return ['monday', 'sunday'].filter((d) => d.startsWith(value)).map((d) => d + (params.hour ?? ''));"
    }
  }
  argument "hour" {}
  message "user" { text = "Plan {{day}}{{hour}}" }
}

policy "secret_notes" {
  resources = ["note"]
  deny      = "args.id == '13'"
  reason    = "that note is secret"
}

policy "no_sundays" {
  prompts = ["plan"]
  deny    = "args.day == 'sunday'"
  reason  = "sunday is free"
}

policy "closed" {
  resources = ["docs", "computed"]
  deny      = "tool.kind == 'resource' && agent.agent_id == 'stranger'"
  reason    = "not for strangers"
}
`

func libraryServer(t *testing.T, events *[]string) *engine.Server {
	return server(t, engine.Options{
		Files: engine.Files{Tools: files("library.hcl", library, "docs/a.md", "# A", "docs/deep/b.bin", "\xff\x00")},
		Hooks: []engine.Hook{func(_ context.Context, e call.Event) {
			*events = append(*events, fmt.Sprintf("%s %s %s %s %s", e.Phase, e.Kind, e.Tool, e.URI, e.Arguments))
		}},
	})
}

func TestExecute_allKinds(t *testing.T) {
	var events []string
	s := libraryServer(t, &events)
	for _, c := range []struct {
		request call.Request
		agent   string
		reply   string
		err     string
		hook    string
	}{
		{call.Request{Kind: call.Resources, Name: "note://motd"}, "", `{"contents":[{"uri":"note://motd","mimeType":"text/plain","text":"Hello"}]}`, "", `resource motd note://motd {}`},
		{call.Request{Kind: call.Resources, Name: "note://computed"}, "bot", `{"contents":[{"uri":"note://computed","mimeType":"application/json","text":"{\"uri\":\"note://computed\",\"agent\":\"bot\",\"params\":{}}"}]}`, "", `resource computed note://computed {}`},
		{call.Request{Kind: call.Resources, Name: "note://computed"}, "stranger", "", "POLICY_DENIED not for strangers", `resource computed note://computed {}`},
		{call.Request{Kind: call.Resources, Name: "note://broken"}, "", "", "EXECUTION_ERROR no paper", `resource broken note://broken {}`},
		{call.Request{Kind: call.Resources, Name: "note://odd"}, "", "", "EXECUTION_ERROR block 1: a resource cannot hold a link; return its content", `resource odd note://odd {}`},
		{call.Request{Kind: call.Resources, Name: "note://n/17"}, "", `{"contents":[{"uri":"note://n/17","mimeType":"text/plain","text":"note 17"}]}`, "", `resource note note://n/17 {"id":"17"}`},
		{call.Request{Kind: call.Resources, Name: "note://n/13"}, "", "", "POLICY_DENIED that note is secret", `resource note note://n/13 {"id":"13"}`},
		{call.Request{Kind: call.Resources, Name: "note://n/x"}, "", `{"contents":[{"uri":"note://n/x","mimeType":"text/plain","text":"other n/x"}]}`, "", `resource other note://n/x {"path":"n/x"}`},
		{call.Request{Kind: call.Resources, Name: "docs://h/a.md"}, "", `{"contents":[{"uri":"docs://h/a.md","mimeType":"text/markdown","text":"# A"}]}`, "", `resource docs docs://h/a.md {}`},
		{call.Request{Kind: call.Resources, Name: "docs://h/deep/b.bin"}, "", `{"contents":[{"uri":"docs://h/deep/b.bin","mimeType":"application/octet-stream","blob":"/wA="}]}`, "", `resource docs docs://h/deep/b.bin {}`},
		{call.Request{Kind: call.Resources, Name: "docs://h/a.md"}, "stranger", "", "POLICY_DENIED not for strangers", `resource docs docs://h/a.md {}`},
		{call.Request{Kind: call.Resources, Name: "docs://h/aa.md"}, "", "", `TOOL_NOT_FOUND no resource named "docs://h/aa.md"; did you mean "docs://h/a.md"?`, `resource docs://h/aa.md docs://h/aa.md `},
		{call.Request{Kind: call.Resources, Name: "motd"}, "", "", `TOOL_NOT_FOUND no resource named "motd"; did you mean "note://motd"?`, `resource motd motd `},
		{call.Request{Kind: call.Prompts, Name: "plan", Arguments: json.RawMessage(`{"day":"monday"}`)}, "", `{"description":"Plans","messages":[{"role":"user","content":{"type":"text","text":"Plan monday"}}]}`, "", `prompt plan  {"day":"monday"}`},
		{call.Request{Kind: call.Prompts, Name: "plan", Arguments: json.RawMessage(`{"day":"sunday"}`)}, "", "", "POLICY_DENIED sunday is free", `prompt plan  {"day":"sunday"}`},
		{call.Request{Kind: call.Prompts, Name: "plan", Arguments: json.RawMessage(`{"hour":"9"}`)}, "", "", "INVALID_INPUT the arguments do not fit the prompt's input schema: /day is required", `prompt plan  {"hour":"9"}`},
		{call.Request{Kind: call.Prompts, Name: "pla"}, "", "", `TOOL_NOT_FOUND no prompt named "pla"; did you mean "plan"?`, `prompt pla  `},
		{call.Request{Kind: call.Prompts, Name: "plan", Argument: "day", Arguments: json.RawMessage(`{"value":"m","params":{"hour":"9","x":"y"}}`)}, "", `{"completion":{"values":["monday9"],"total":1,"hasMore":false}}`, "", `completion plan  {"value":"m","params":{"hour":"9","x":"y"}}`},
		{call.Request{Kind: call.Prompts, Name: "plan", Argument: "day", Arguments: json.RawMessage(`{"value":"sunday","params":{}}`)}, "", "", "POLICY_DENIED sunday is free", `completion plan  {"value":"sunday","params":{}}`},
		{call.Request{Kind: call.Prompts, Name: "plan", Argument: "hour", Arguments: json.RawMessage(`{"value":"1","params":{"day":"monday"}}`)}, "", `{"completion":{"values":[],"total":0,"hasMore":false}}`, "", `completion plan  {"value":"1","params":{"day":"monday"}}`},
		{call.Request{Kind: call.Prompts, Name: "plan", Argument: "dy"}, "", "", `INVALID_INPUT the prompt has no argument "dy"`, `completion plan  `},
		{call.Request{Kind: call.Prompts, Name: "plan", Argument: "day", Arguments: json.RawMessage(`{"value":1}`)}, "", "", "INVALID_INPUT a completion takes a value and params, all of them strings", `completion plan  {"value":1}`},
		{call.Request{Kind: call.Templates, Name: "note://n/{id}", Argument: "id", Arguments: json.RawMessage(`{"value":"1","params":{}}`)}, "", `{"completion":{"values":["17","18"],"total":2,"hasMore":false}}`, "", `completion note  {"value":"1","params":{}}`},
		{call.Request{Kind: call.Templates, Name: "note://n/{id}"}, "", "", `INVALID_INPUT the resource has no argument ""`, `resource note  `},
	} {
		events = nil
		c.request.Caller = identity.Caller{Principal: identity.Anonymous(), Agent: identity.Agent{AgentID: c.agent}}
		result := s.Execute(t.Context(), c.request)
		got := ""
		if result.Err != nil {
			got = string(result.Err.Code) + " " + result.Err.Message
		}
		if got != c.err || string(result.Reply) != c.reply {
			t.Errorf("%s %s: %s\n%s\nwant %s\n%s", c.request.Name, c.request.Argument, got, result.Reply, c.err, c.reply)
		}
		terminal := "end "
		if c.err != "" {
			terminal = "error "
		}
		if diff := cmp.Diff([]string{"start " + c.hook, terminal + c.hook}, events); diff != "" {
			t.Errorf("%s %s: the events (-want +got)\n%s", c.request.Name, c.request.Argument, diff)
		}
	}
}

func addresses(v engine.Visible) (list []string) {
	for _, o := range v.Offers {
		list = append(list, o.Metadata().Address)
	}
	return list
}

func TestVisible_policies(t *testing.T) {
	var events []string
	s := libraryServer(t, &events)
	caller := func(agent string) identity.Caller {
		return identity.Caller{Principal: identity.Anonymous(), Agent: identity.Agent{AgentID: agent}}
	}
	for _, c := range []struct {
		kind  call.Kind
		agent string
		want  []string
	}{
		{call.Resources, "", []string{"docs://h/a.md", "docs://h/deep/b.bin", "note://broken", "note://computed", "note://motd", "note://odd"}},
		{call.Resources, "stranger", []string{"note://broken", "note://motd", "note://odd"}},
		{call.Templates, "stranger", []string{"note://n/{id}", "note://{+path}"}},
		{call.Prompts, "stranger", []string{"plan"}},
	} {
		visible := s.Visible(t.Context(), c.kind, caller(c.agent))
		if diff := cmp.Diff(c.want, addresses(visible)); diff != "" || !visible.Private {
			t.Errorf("%s, seen by %q (private is %v): (-want +got)\n%s", c.kind, c.agent, visible.Private, diff)
		}
	}
	for uri, served := range map[string]bool{"docs://h/a.md": false, "note://motd": true, "note://n/1": true, "gone://x": false} {
		if s.CanRead(t.Context(), caller("stranger"), uri) != served {
			t.Errorf("an anonymous caller can read %s: %v", uri, !served)
		}
	}
}

func TestReload_changedResources(t *testing.T) {
	tools := files("library.hcl", library, "docs/a.md", "# A", "docs/b.md", "# B")
	s := server(t, engine.Options{Files: engine.Files{Tools: tools}})
	var changed []string
	defer s.Watch(func(uris []string) { changed = uris })()
	hash := func(k call.Kind) string { return s.Visible(t.Context(), k, identity.Caller{}).Hash }
	for _, c := range []struct {
		what, path, text string
		want             []string
		lists            bool
	}{
		{"a file of a folder", "docs/a.md", "# a", []string{"docs://h/a.md"}, false},
		{"a longer one", "docs/a.md", "# A and more", []string{"docs://h/a.md"}, true},
		{"a new one", "docs/c.md", "# C", []string{"docs://h/c.md"}, true},
		{"a comment above everything", "library.hcl", "# moved\n" + library, nil, false},
	} {
		resources, prompts := hash(call.Resources), hash(call.Prompts)
		changed = []string{"not told"}
		tools[c.path] = &fstest.MapFile{Data: []byte(c.text), Mode: 0o644}
		if _, err := s.Reload(t.Context(), engine.Change{Paths: []string{c.path}}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, changed); diff != "" {
			t.Errorf("%s: changed (-want +got)\n%s", c.what, diff)
		}
		if (hash(call.Resources) != resources) != c.lists || hash(call.Prompts) != prompts {
			t.Errorf("%s: the list of resources changed: %v", c.what, !c.lists)
		}
	}
	delete(tools, "docs/b.md")
	if _, err := s.Reload(t.Context(), engine.Change{Paths: []string{"docs/b.md"}}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"docs://h/b.md"}, changed); diff != "" {
		t.Errorf("a removed resource: changed (-want +got)\n%s", diff)
	}
}

func TestLog_omitsURIVariables(t *testing.T) {
	log := &logBuffer{}
	s := server(t, engine.Options{Logger: log.logger(), Files: engine.Files{Tools: files("t.hcl", `
resource_template "patient" {
  uri_template = "patient://{name}"
  run          = "throw new Error('no such patient')"
}
`)}})
	r := s.Execute(t.Context(), call.Request{Kind: call.Resources, Name: "patient://hunter2"})
	if r.Err == nil || r.Err.Code != call.ExecutionError {
		t.Fatalf("got %+v", r)
	}
	if got := log.String(); strings.Contains(got, "hunter2") || !strings.Contains(got, "resource=patient://{name}") {
		t.Errorf("the log says\n%s", got)
	}
}

func TestRead_suggestsTemplate(t *testing.T) {
	s := server(t, engine.Options{Files: engine.Files{Tools: files("crm.hcl", `
resource_template "secret" {
  uri_template = "crm://{+any}"
  param "any" { pattern = "^never$" }
  text = "x"
}
resource_template "customer" {
  uri_template = "crm://customers/{id}"
  param "id" { pattern = "^C-[0-9]+$" }
  text = "x"
}
policy "hidden" {
  resources = ["secret"]
  deny      = "true"
  reason    = "no"
}
`)}})
	for uri, want := range map[string]string{
		"crm://customers/1":    `no resource named "crm://customers/1"; did you mean "crm://customers/{id}"?`,
		"crm://customers/1/2":  `no resource named "crm://customers/1/2"`,
		"docs://customers/C-1": `no resource named "docs://customers/C-1"`,
	} {
		r := s.Execute(t.Context(), call.Request{Kind: call.Resources, Name: uri})
		if r.Err == nil || r.Err.Code != call.ToolNotFound || r.Err.Message != want {
			t.Errorf("%s: got %v, want %s", uri, r.Err, want)
		}
	}
}

func TestCanRead_readableResources(t *testing.T) {
	s := server(t, engine.Options{Files: engine.Files{Tools: files("t.hcl", `
resource_template "t" {
  uri_template = "x:{id}"
  text = "x"
}
resource "literal" {
  uri  = format("y:%04094d", 1)
  text = "x"
}
resource_folder "f" {
  root       = "f"
  uri_prefix = "z:"
}
`, "f/"+strings.Repeat("a", 4094), "fits", "f/"+strings.Repeat("b", 4095), "is too long")}})
	for uri, there := range map[string]bool{
		"x:" + strings.Repeat("a", 4094): true, "x:" + strings.Repeat("a", 4095): false,
		"y:" + strings.Repeat("0", 4093) + "1": true,
		"z:" + strings.Repeat("a", 4094):       true, "z:" + strings.Repeat("b", 4095): false,
	} {
		read := s.Execute(t.Context(), call.Request{Kind: call.Resources, Name: uri}).Err == nil
		serves := s.CanRead(t.Context(), identity.Caller{}, uri)
		if read != there || serves != there {
			t.Errorf("%.3s with %d bytes: read %v, CanRead %v", uri, len(uri), read, serves)
		}
	}
}
