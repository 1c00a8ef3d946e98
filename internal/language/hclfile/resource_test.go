package hclfile

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/uritemplate"
)

// reading returns a scope that reads files from a map.
func reading(files map[string]string) Scope {
	return Scope{ReadFile: func(name string) ([]byte, error) {
		if content, ok := files[name]; ok {
			return []byte(content), nil
		}
		return nil, errors.New("there is no such file")
	}}
}

func TestResource_contents(t *testing.T) {
	defs := decodeTools(t, "ops/x.hcl", `
resource "runbook" {
  uri         = "runbook://restart"
  title       = "Restart"
  description = "How to restart"
  mime_type   = "text/markdown; charset=utf-8"
  labels      = { team = "ops" }
  annotations {
    audience = ["assistant", "user"]
    priority = 0.5
  }
  text = "# Restart"
}
resource "live" {
  uri         = "runbook://live"
  timeout     = "3s"
  ask_timeout = "1m"
  size        = 9
  allow {
    http "crm" { hosts = ["crm.example:443"] }
  }
  run = "return 1;"
}
`, Scope{})
	runbook, live := defs.Resources[0], defs.Resources[1]
	half, nine := 0.5, int64(9)
	want := definition.Resource{
		Name: "runbook", URI: "runbook://restart", Title: "Restart", Description: "How to restart",
		MIMEType: "text/markdown; charset=utf-8", Size: &nine,
		Annotations: &definition.Annotations{Audience: []string{definition.Assistant, definition.User}, Priority: &half},
		Call:        definition.Call{Labels: map[string]string{"team": "ops"}, Bounds: definition.Bounds{Timeout: time.Second}, AskTimeout: 5 * time.Minute},
		Content:     &definition.Content{Bytes: []byte("# Restart"), MIMEType: "text/markdown; charset=utf-8"},
	}
	if diff := cmp.Diff(want, runbook, cmpopts.IgnoreTypes(diag.Range{}, definition.Hash{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if runbook.URIRange.Start.Line != 3 || runbook.NameRange.Start.Line != 2 || runbook.Hash == live.Hash {
		t.Errorf("got ranges %v and %v", runbook.URIRange, runbook.NameRange)
	}
	if live.Content != nil || live.Run.Text.Body() != "return 1;" || live.MIMEType != "" || *live.Size != 9 ||
		live.Timeout != 3*time.Second || live.AskTimeout != time.Minute || len(live.Grant.HTTP) != 1 || live.GrantRanges["http.crm"].Start.Line != 20 {
		t.Errorf("got %+v", live)
	}
}

func TestResource_contentType(t *testing.T) {
	const png = "\x89PNG\r\n\x1a\n"
	files := map[string]string{"d/a.md": "# é", "d/b.PNG": png, "d/c": "plain", "d/d.bin": "\x00", "d/e.json": "\xff", "d/f.svg": "<svg/>", "d/g.png": ""}
	for written, want := range map[string]definition.Content{
		`file = "a.md"`:   {Bytes: []byte("# é"), MIMEType: "text/markdown", Path: "d/a.md"},
		`file = "b.PNG"`:  {Bytes: []byte(png), Binary: true, MIMEType: "image/png", Path: "d/b.PNG"},
		`file = "c"`:      {Bytes: []byte("plain"), MIMEType: "text/plain", Path: "d/c"},
		`file = "d.bin"`:  {Bytes: []byte("\x00"), Binary: true, MIMEType: "application/octet-stream", Path: "d/d.bin"},
		`file = "e.json"`: {Bytes: []byte("\xff"), Binary: true, MIMEType: "application/json", Path: "d/e.json"},
		`file = "f.svg"`:  {Bytes: []byte("<svg/>"), MIMEType: "image/svg+xml", Path: "d/f.svg"},
		`file = "g.png"`:  {Bytes: []byte(""), Binary: true, MIMEType: "image/png", Path: "d/g.png"},
		"file      = \"c\"\n  mime_type = \"text/x-log\"":       {Bytes: []byte("plain"), MIMEType: "text/x-log", Path: "d/c"},
		`base64 = "cGxh aW4="`:                                  {Bytes: []byte("plain"), Binary: true, MIMEType: "application/octet-stream"},
		"base64    = \"cGxhaW4=\"\n  mime_type = \"image/png\"": {Bytes: []byte("plain"), Binary: true, MIMEType: "image/png"},
		`text = "plain"`:                                        {Bytes: []byte("plain"), MIMEType: "text/plain"},
		`text = file("a.md")`:                                   {Bytes: []byte("# é"), MIMEType: "text/plain"},
	} {
		file, problems := Parse(Source{Path: "d/x.hcl", RelDir: "d", Bytes: []byte("resource \"r\" {\n  uri = \"x:r\"\n  " + written + "\n}\n")}, ToolsKind)
		if file == nil {
			t.Fatal(written, problems)
		}
		defs, problems := file.Decode(reading(files))
		if len(problems) > 0 {
			t.Errorf("%s: %v", written, problems)
			continue
		}
		if diff := cmp.Diff(&want, defs.Resources[0].Content); diff != "" {
			t.Errorf("%s (-want +got)\n%s", written, diff)
		}
	}
}

func TestResource_hashOfFile(t *testing.T) {
	hash := func(content string) definition.Hash {
		return decodeTools(t, "x.hcl", "resource \"r\" {\n  uri = \"x:r\"\n  file = \"a.md\"\n}\n", reading(map[string]string{"a.md": content})).Resources[0].Hash
	}
	if first, again := hash("a"), hash("a"); first != again || first == hash("b") {
		t.Error("the hash does not depend on the content of the file")
	}
}

func TestTemplate_variables(t *testing.T) {
	for path, source := range map[string]string{
		"x.hcl": `
resource_template "order" {
  uri_template = "crm://customers/{id}/orders/{order}{?page}"
  title        = "Order"
  description  = "An order"
  mime_type    = "text/plain; charset=utf-8"
  labels       = { team = "crm" }
  timeout      = "2s"
  annotations { priority = 1 }
  icon { src = "https://cdn.example/a.png" }
  complete "page" { values = ["1", "2"] }
  complete "id" { run = "return [value];" }
  param "order" {
    description = "Number"
    pattern     = "^[0-9]+$"
  }
  text = "{{order}} of {{ id }}{{{{{{page}}"
}
`,
		"x.hcl.json": `{"resource_template": {"order": {
  "uri_template": "crm://customers/{id}/orders/{order}{?page}", "title": "Order", "description": "An order",
  "mime_type": "text/plain; charset=utf-8", "labels": {"team": "crm"}, "timeout": "2s",
  "annotations": {"priority": 1}, "icon": {"src": "https://cdn.example/a.png"},
  "complete": {"page": {"values": ["1", "2"]}, "id": {"run": "return [value];"}},
  "param": {"order": {"description": "Number", "pattern": "^[0-9]+$"}},
  "text": "{{order}} of {{ id }}{{{{{{page}}"}}}`,
	} {
		got := decodeTools(t, path, source, Scope{}).Templates[0]
		one := 1.0
		if id := got.Params[0].Complete; id == nil || id.Run.Text.Body() != "return [value];" || id.Values != nil {
			t.Fatalf("%s: got completion %+v", path, id)
		}
		got.Params[0].Complete = nil
		want := definition.Template{
			Name: "order", Title: "Order", Description: "An order", MIMEType: "text/plain; charset=utf-8",
			Params:      []definition.Param{{Name: "id"}, {Name: "order", Description: "Number", Pattern: "^[0-9]+$"}, {Name: "page", Complete: &definition.Complete{Values: []string{"1", "2"}}}},
			Annotations: &definition.Annotations{Priority: &one}, Icons: []definition.Icon{{Src: "https://cdn.example/a.png"}},
			Call: definition.Call{Labels: map[string]string{"team": "crm"}, Bounds: definition.Bounds{Timeout: 2 * time.Second}, AskTimeout: definition.DefaultAskTimeout},
			Text: definition.TextTemplate{{Name: "order"}, {Text: " of "}, {Name: "id"}, {Text: "{{"}, {Name: "page"}},
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreTypes(diag.Range{}, map[string]diag.Range{}, definition.Hash{}, &uritemplate.Template{})); diff != "" {
			t.Errorf("%s (-want +got)\n%s", path, diff)
		}
		if got.URITemplate.String() != "crm://customers/{id}/orders/{order}{?page}" || got.URIRange.Start.Line == 0 {
			t.Errorf("%s: got template %v at %v", path, got.URITemplate, got.URIRange)
		}
		if text := got.Text.Render(map[string]string{"id": "{{page}}", "page": "2"}); text != " of {{page}}{{2" {
			t.Errorf("%s: rendered text: %q", path, text)
		}
	}
}

func TestTemplate_typeFromScript(t *testing.T) {
	got := decodeTools(t, "x.hcl", `
resource_template "run" {
  uri_template = "crm://run/{id}"
  run          = "return 1;"
}
resource_template "text" {
  uri_template = "crm://text/{id}"
  text         = ""
}
`, Scope{}).Templates
	if got[0].MIMEType != "" || got[0].Run == nil || got[0].Text != nil || got[1].MIMEType != "text/plain" || got[1].Text == nil {
		t.Errorf("got %+v", got)
	}
}

func TestFolder_includes(t *testing.T) {
	file, problems := Parse(Source{Path: "team/x.hcl", RelDir: "team", Bytes: []byte(`
resource_folder "docs" {
  root        = "docs"
  glob        = ["**/*.md", "img/?.png"]
  exclude     = ["drafts/**"]
  uri_prefix  = "file:///workspace/"
  mime_types  = { ".MD" = "text/x-markdown" }
  max_file    = "2MiB"
  description = "Handbook"
  labels      = { team = "ops" }
  annotations { audience = ["user"] }
}
resource_folder "all" {
  root       = "."
  uri_prefix = "all:"
}
`)}, ToolsKind)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	defs, problems := file.Decode(Scope{})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	got := defs.Folders
	want := []definition.Folder{
		{
			Name: "docs", Description: "Handbook", Root: "team/docs", Glob: []string{"**/*.md", "img/?.png"}, Exclude: []string{"drafts/**"},
			URIPrefix: "file:///workspace/", MIMETypes: map[string]string{".md": "text/x-markdown"}, MaxFile: 2 << 20,
			Labels: map[string]string{"team": "ops"}, Annotations: &definition.Annotations{Audience: []string{definition.User}},
		},
		{Name: "all", Root: "team", Glob: []string{"**"}, URIPrefix: "all:", MaxFile: 1 << 20},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreTypes(diag.Range{}, definition.Hash{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	docs, all := got[0], got[1]
	for name, offered := range map[string]bool{
		"a.md": true, "x/y/a.md": true, "img/a.png": true,
		"a.txt": false, "drafts/a.md": false, "drafts/x/a.md": false, "img/ab.png": false, "x/img/a.png": false, "a.hcl": false,
	} {
		if docs.Includes(name) != offered {
			t.Errorf("%s: included is %v", name, !offered)
		}
	}
	if !all.Includes("x/y.bin") || all.Includes("x.hcl") || all.Includes("y/x.hcl.json") {
		t.Error("want all files except tool files")
	}
	if c := docs.Content("a.Md", []byte("x")); c.MIMEType != "text/x-markdown" || c.Binary || c.Path != "team/docs/a.Md" {
		t.Errorf("got content %+v", c)
	}
}

func TestIcons_order(t *testing.T) {
	want := []definition.Icon{
		{Src: "https://cdn.example/a.png", MIMEType: "image/png", Sizes: []string{"48x48", "any"}, Theme: definition.DarkTheme},
		{Src: "data:image/gif;base64,R0lGODlhAQABAAAAACw="},
	}
	for path, source := range map[string]string{
		"x.hcl": `
tool "t" {
  icon {
    src       = "https://cdn.example/a.png"
    mime_type = "image/png"
    sizes     = ["48x48", "any"]
    theme     = "dark"
  }
  icon { src = "data:image/gif;base64,R0lGODlhAQABAAAAACw=" }
  run = "return 1"
}`,
		"x.hcl.json": `{"tool": {"t": {"run": "return 1", "icon": [
  {"src": "https://cdn.example/a.png", "mime_type": "image/png", "sizes": ["48x48", "any"], "theme": "dark"},
  {"src": "data:image/gif;base64,R0lGODlhAQABAAAAACw="}]}}}`,
	} {
		got := decodeTools(t, path, source, Scope{}).Tools[0].Icons
		if diff := cmp.Diff(want, got, cmpopts.IgnoreTypes(diag.Range{})); diff != "" {
			t.Errorf("%s (-want +got)\n%s", path, diff)
		}
	}
}
