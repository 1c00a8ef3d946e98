package hclfile

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
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

func TestAResourceSaysWhatItHolds(t *testing.T) {
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
		t.Errorf("the places are %v and %v", runbook.URIRange, runbook.NameRange)
	}
	if live.Content != nil || live.Run.Text.Body() != "return 1;" || live.MIMEType != "" || *live.Size != 9 ||
		live.Timeout != 3*time.Second || live.AskTimeout != time.Minute || len(live.Grant.HTTP) != 1 || live.GrantRanges["http.crm"].Start.Line != 20 {
		t.Errorf("got %+v", live)
	}
}

func TestTheTypeOfContentFollowsFromItsFile(t *testing.T) {
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
		file, problems := Parse(Source{Path: "d/x.hcl", Dir: "d", Bytes: []byte("resource \"r\" {\n  uri = \"x:r\"\n  " + written + "\n}\n")}, ToolsKind)
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

func TestTheHashOfAResourceFollowsItsFile(t *testing.T) {
	hash := func(content string) definition.Hash {
		return decodeTools(t, "x.hcl", "resource \"r\" {\n  uri = \"x:r\"\n  file = \"a.md\"\n}\n", reading(map[string]string{"a.md": content})).Resources[0].Hash
	}
	if first, again := hash("a"), hash("a"); first != again || first == hash("b") {
		t.Error("the hash does not follow the content of the file")
	}
}
