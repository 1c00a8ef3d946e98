package hclfile

import (
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
)

func TestPrompt_messageOrder(t *testing.T) {
	files := reading(map[string]string{"p/a.md": "as {{it}} is", "p/a.png": "\x89PNG", "p/a.wav": "RIFF", "p/a.csv": "a,b"})
	source := `
prompt "review" {
  title       = "Review"
  description = "Review an incident"
  labels      = { team = "ops" }
  timeout     = "2s"
  icon { src = "https://cdn.example/a.png" }
  argument "id" {
    title       = "Id"
    description = "Incident id"
    required    = true
    complete { run = "return [];" }
  }
  argument "how" { values = ["fast", "well"] }
  message "user" {
    annotations { audience = ["assistant"] }
    text = "Review {{id}} {{how}}"
  }
  message "assistant" { file = "a.md" }
  message "user" {
    image { file = "a.png" }
  }
  message "user" {
    audio {
      base64    = "UklGRg=="
      mime_type = "audio/wav"
    }
  }
  message "user" {
    resource {
      uri  = "incident://{{id}}"
      text = "Incident {{id}}"
    }
  }
  message "user" {
    resource {
      uri  = "incident://all"
      file = "a.csv"
    }
  }
  message "user" {
    link {
      uri         = "incident://{{id}}"
      name        = "{{id}}"
      title       = "Incident"
      description = "All of {{id}}"
      mime_type   = "text/markdown"
      size        = 7
    }
  }
}
prompt "computed" {
  run = "return [];"
}
`
	file, problems := Parse(Source{Path: "p/x.hcl", RelDir: "p", Bytes: []byte(source)}, ToolsKind)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	defs, problems := file.Decode(files)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	review, computed := defs.Prompts[0], defs.Prompts[1]
	if c := review.Arguments[0].Complete; c == nil || c.Run.Text.Body() != "return [];" {
		t.Fatalf("got completion %+v", c)
	}
	review.Arguments[0].Complete = nil
	seven := int64(7)
	id := definition.TemplatePart{Name: "id"}
	want := definition.Prompt{
		Name: "review", Title: "Review", Description: "Review an incident", Icons: []definition.Icon{{Src: "https://cdn.example/a.png"}},
		Call: definition.Call{Labels: map[string]string{"team": "ops"}, Bounds: definition.Bounds{Timeout: 2 * time.Second}, AskTimeout: definition.DefaultAskTimeout},
		Arguments: []definition.Argument{
			{Name: "id", Title: "Id", Description: "Incident id", Required: true},
			{Name: "how", Complete: &definition.Complete{Values: []string{"fast", "well"}}},
		},
		Messages: []definition.Message{
			{Role: definition.User, Text: definition.TextTemplate{{Text: "Review "}, id, {Text: " "}, {Name: "how"}}, Annotations: &definition.Annotations{Audience: []string{definition.Assistant}}},
			{Role: definition.Assistant, Text: definition.TextTemplate{{Text: "as {{it}} is"}}},
			{Role: definition.User, Media: &definition.Media{Kind: definition.Image, Content: definition.Content{Bytes: []byte("\x89PNG"), Binary: true, MIMEType: "image/png", Path: "p/a.png"}}},
			{Role: definition.User, Media: &definition.Media{Kind: definition.Audio, Content: definition.Content{Bytes: []byte("RIFF"), Binary: true, MIMEType: "audio/wav"}}},
			{Role: definition.User, Resource: &definition.Embedded{URI: definition.TextTemplate{{Text: "incident://"}, id}, MIMEType: "text/plain", Text: definition.TextTemplate{{Text: "Incident "}, id}}},
			{Role: definition.User, Resource: &definition.Embedded{URI: definition.TextTemplate{{Text: "incident://all"}}, MIMEType: "text/csv", Content: &definition.Content{Bytes: []byte("a,b"), MIMEType: "text/csv", Path: "p/a.csv"}}},
			{Role: definition.User, Link: &definition.Link{
				URI: definition.TextTemplate{{Text: "incident://"}, id}, Name: definition.TextTemplate{id}, Title: definition.TextTemplate{{Text: "Incident"}}, Description: definition.TextTemplate{{Text: "All of "}, id},
				MIMEType: "text/markdown", Size: &seven,
			}},
		},
	}
	if diff := cmp.Diff(want, review, cmpopts.IgnoreTypes(diag.Range{}, map[string]diag.Range{}, definition.Hash{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if computed.Run == nil || computed.Messages != nil || computed.Timeout != definition.DefaultTimeout || computed.Hash == review.Hash {
		t.Errorf("got %+v", computed)
	}
}

func TestPrompt_messageOrderInJSON(t *testing.T) {
	got := decodeTools(t, "x.hcl.json", `{"prompt": {"p": {
  "argument": {"uri": {"required": true, "complete": {"values": ["a"]}}},
  "message": [
    {"user": {"resource": {"uri": "{{uri}}", "mime_type": "text/plain", "text": "Embedded"}}},
    {"assistant": {"text": "Done"}},
    {"user": [{"text": "{{uri}}"}, {"image": {"base64": "AAAA", "mime_type": "image/png"}}]}
  ]}}}`, Scope{}).Prompts[0]
	if len(got.Messages) != 4 || len(got.Arguments) != 1 || got.Arguments[0].Complete.Values[0] != "a" {
		t.Fatalf("got %+v", got)
	}
	if r := got.Messages[0].Resource; r.URI.Render(map[string]string{"uri": "test://x"}) != "test://x" || r.Text.Render(nil) != "Embedded" {
		t.Errorf("got resource %+v", r)
	}
	if got.Messages[1].Role != definition.Assistant || got.Messages[2].Text[0].Name != "uri" || got.Messages[3].Media.Kind != definition.Image {
		t.Errorf("got %+v", got.Messages)
	}
}

func TestPrompt_conformanceFiles(t *testing.T) {
	want := map[string][2]int{"resources.hcl": {4, 0}, "prompts.hcl": {0, 5}}
	for name, count := range want {
		source, err := os.ReadFile("../../../testdata/conformance/tools.d/" + name)
		if err != nil {
			t.Fatal(err)
		}
		defs := decodeTools(t, name, string(source), Scope{})
		if len(defs.Resources)+len(defs.Templates) != count[0] || len(defs.Prompts) != count[1] {
			t.Errorf("%s defines %+v", name, defs)
		}
		if formatted, _ := Format(Source{Path: name, Bytes: source}); string(formatted) != string(source) {
			t.Errorf("%s is not in the layout of mcpd fmt:\n%s", name, cmp.Diff(string(source), string(formatted)))
		}
	}
}

func TestPrompt_maxSize(t *testing.T) {
	const source = `
prompt "p" {
  message "user" {
    image { file = "a.png" }
  }
  message "user" {
    resource {
      uri  = "x://y"
      file = "b.bin"
    }
  }
}`
	files := map[string]string{"p/a.png": string(make([]byte, definition.MaxRendered-5)), "p/b.bin": ""}
	parse := func() diag.List {
		f, problems := Parse(Source{Path: "p/x.hcl", RelDir: "p", Bytes: []byte(source)}, ToolsKind)
		if problems != nil {
			t.Fatal(problems)
		}
		_, problems = f.Decode(reading(files))
		return problems
	}
	if problems := parse(); problems != nil {
		t.Errorf("found %v", problems)
	}
	files["p/b.bin"] = "x"
	if problems := parse(); len(problems) != 1 || problems[0].Code != "too-large" || problems[0].Range.Start.Line != 6 {
		t.Errorf("found %v", problems)
	}
}
