package hclfile

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/uritemplate"
)

func TestATemplateHasItsVariablesInTheOrderOfItsURIs(t *testing.T) {
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
			t.Fatalf("%s: the completion of id is %+v", path, id)
		}
		got.Params[0].Complete = nil
		want := definition.Template{
			Name: "order", Title: "Order", Description: "An order", MIMEType: "text/plain; charset=utf-8",
			Params:      []definition.Param{{Name: "id"}, {Name: "order", Description: "Number", Pattern: "^[0-9]+$"}, {Name: "page", Complete: &definition.Complete{Values: []string{"1", "2"}}}},
			Annotations: &definition.Annotations{Priority: &one}, Icons: []definition.Icon{{Src: "https://cdn.example/a.png"}},
			Call: definition.Call{Labels: map[string]string{"team": "crm"}, Bounds: definition.Bounds{Timeout: 2 * time.Second}, AskTimeout: definition.DefaultAskTimeout},
			Text: definition.Phrase{{Name: "order"}, {Text: " of "}, {Name: "id"}, {Text: "{{"}, {Name: "page"}},
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreTypes(diag.Range{}, map[string]diag.Range{}, definition.Hash{}, &uritemplate.Template{})); diff != "" {
			t.Errorf("%s (-want +got)\n%s", path, diff)
		}
		if got.URITemplate.String() != "crm://customers/{id}/orders/{order}{?page}" || got.URIRange.Start.Line == 0 {
			t.Errorf("%s: the template is %v at %v", path, got.URITemplate, got.URIRange)
		}
		if text := got.Text.Fill(map[string]string{"id": "{{page}}", "page": "2"}); text != " of {{page}}{{2" {
			t.Errorf("%s: filled in, the text is %q", path, text)
		}
	}
}

func TestTheTypeOfATemplateWithABodyIsWhatTheBodySays(t *testing.T) {
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
