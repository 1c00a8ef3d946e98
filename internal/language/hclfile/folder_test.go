package hclfile

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
)

func TestAFolderSaysWhichFilesItOffers(t *testing.T) {
	file, problems := Parse(Source{Path: "team/x.hcl", Dir: "team", Bytes: []byte(`
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
		if docs.Offers(name) != offered {
			t.Errorf("%s: offered is %v", name, !offered)
		}
	}
	if !all.Offers("x/y.bin") || all.Offers("x.hcl") || all.Offers("y/x.hcl.json") {
		t.Error("all files are offered, and no tool files")
	}
	if c := docs.Content("a.Md", []byte("x")); c.MIMEType != "text/x-markdown" || c.Binary || c.Path != "team/docs/a.Md" {
		t.Errorf("the content is %+v", c)
	}
}
