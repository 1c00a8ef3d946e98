package engine_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
)

const blockTools = `
tool "one"  { run = "return { type: 'text', text: 'a' };" }
tool "list" { run = "return [{ type: 'text', text: 'a' }, content.text('b')];" }
tool "row"  { run = "return [{ type: 'text', text: 'a', author: 'b' }];" }
tool "record" {
  output "type" { type = string }
  output "text" { type = string }
  run = "return { type: 'text', text: 'a' };"
}
tool "rows" {
  output_schema = { type = "array", items = { type = "object" } }
  run = "return [{ type: 'text', text: 'a' }];"
}
tool "unfit" {
  output "total" { type = integer }
  run = "return [{ type: 'text', text: 'a' }];"
}
tool "built" {
  output "total" { type = integer }
  run = "return content.text('a');"
}
tool "calls" {
  allow {
    call { tools = ["one"] }
  }
  run = "return await tools.one();"
}
policy "no" {
  tools  = ["list"]
  on     = "result"
  deny   = "content.exists(b, b.text == 'secret')"
  reason = "never"
}
`

// Returned values are content if they are valid MCP blocks, in a tool without outputs.
func TestToolResult_plainBlocks(t *testing.T) {
	s := server(t, engine.Options{Files: engine.Files{Tools: files("t.hcl", blockTools)}})
	const a, b = `{"type":"text","text":"a"}`, `{"type":"text","text":"b"}`
	row := `[{"type":"text","text":"a","author":"b"}]`
	for _, test := range []struct{ tool, value, content, structured string }{
		{"one", "null", "[" + a + "]", ""},
		{"list", "null", "[" + a + "," + b + "]", ""},
		{"row", row, asText(row), ""},
		{"record", a, asText(a), a},
		{"rows", "[" + a + "]", asText("[" + a + "]"), "[" + a + "]"},
		{"calls", "null", "[" + a + "]", ""},
	} {
		got := s.Execute(t.Context(), call.Request{Name: test.tool, Arguments: json.RawMessage(`{}`), Caller: anonymous()})
		if got.Err != nil {
			t.Errorf("%s: %v", test.tool, got.Err)
			continue
		}
		want := []string{test.value, test.content, test.structured}
		if diff := cmp.Diff(want, []string{string(got.Value), string(got.Content), string(got.Structured)}); diff != "" {
			t.Errorf("%s (-want +got)\n%s", test.tool, diff)
		}
	}
}

// A tool with outputs returns an error with advice.
func TestToolResult_blocksInPlaceOfOutputs(t *testing.T) {
	s := server(t, engine.Options{Files: engine.Files{Tools: files("t.hcl", blockTools)}})
	for _, tool := range []string{"unfit", "built"} {
		got := s.Execute(t.Context(), call.Request{Name: tool, Arguments: json.RawMessage(`{}`), Caller: anonymous()})
		if got.Err == nil || got.Err.Code != call.ExecutionError || !strings.Contains(got.Err.Message, "content.structured(value, blocks)") {
			t.Errorf("%s: %v", tool, got.Err)
		}
	}
}

// asText returns content with one text block.
func asText(text string) string {
	quoted, _ := json.Marshal(text)
	return `[{"type":"text","text":` + string(quoted) + `}]`
}

// A tool in Go that returns call.Text has no output schema, and scripts get a string from it.
func TestGoTool_text(t *testing.T) {
	s := unloaded(t, engine.Options{Files: engine.Files{Tools: files("t.hcl", `tool "length" {
  allow {
    call { tools = ["text"] }
  }
  run = "return (await tools.text()).length;"
}`)}})
	text := func(context.Context, identity.Agent, struct{}) (call.Text, error) { return "a\n<b>", nil }
	if err := engine.AddTool(s, engine.ToolOptions{Name: "text"}, text); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	for tool, want := range map[string][2]string{
		"text":   {`"a\n\u003cb\u003e"`, `[{"type":"text","text":"a\n\u003cb\u003e"}]`},
		"length": {"5", asText("5")},
	} {
		r := s.Execute(t.Context(), call.Request{Name: tool, Arguments: json.RawMessage(`{}`)})
		if got := [2]string{string(r.Value), string(r.Content)}; r.Err != nil || got != want || r.Structured != nil {
			t.Errorf("%s: %q, structured %s, %v", tool, got, r.Structured, r.Err)
		}
	}
}
