package hclfile

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mcpd/mcpd/diag"
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
	want := []Folder{
		{
			Name: "docs", Description: "Handbook", Root: "team/docs", Glob: []string{"**/*.md", "img/?.png"}, Exclude: []string{"drafts/**"},
			URIPrefix: "file:///workspace/", MIMETypes: map[string]string{".md": "text/x-markdown"}, MaxFile: 2 << 20,
			Labels: map[string]string{"team": "ops"}, Annotations: &Annotations{Audience: []string{User}},
		},
		{Name: "all", Root: "team", Glob: []string{"**"}, URIPrefix: "all:", MaxFile: 1 << 20},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreTypes(diag.Range{}, Hash{})); diff != "" {
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

func TestTheURIOfAFileLeadsBackToIt(t *testing.T) {
	f := Folder{URIPrefix: "docs://h/", Glob: []string{"**"}}
	for name, uri := range map[string]string{
		"a.md": "docs://h/a.md", "x/ä b+%.md": "docs://h/x/%C3%A4%20b%2B%25.md", "q?#.md": "docs://h/q%3F%23.md",
	} {
		if got := f.URI(name); got != uri {
			t.Errorf("the URI of %s is %s", name, got)
		}
		if got, ok := f.File(uri); got != name || !ok {
			t.Errorf("%s leads to %q", uri, got)
		}
	}
	for _, uri := range []string{"docs://h/../a.md", "docs://h/%2e%2e/a.md", "docs://h/", "docs://h//a.md", "docs://h/a%2", "docs://i/a.md", "docs://h/./a.md", "docs://h/%2Fetc/passwd", "docs://h/a%00b"} {
		if name, ok := f.File(uri); ok {
			t.Errorf("%s leads to %q", uri, name)
		}
	}
}

func TestPatternsOfPathsAreMatchedInTheWorkTheySay(t *testing.T) {
	asked := 0
	stars, name := strings.Repeat("*a", 200)+"b", strings.Repeat("a", 400)
	if matchRun(len(stars), len(name), func(i int) bool { return stars[i] == '*' }, func(i, j int) bool { asked++; return stars[i] == name[j] }) {
		t.Error("matched")
	}
	if asked > len(stars)*len(name) {
		t.Errorf("asked %d times", asked)
	}
	for pattern, names := range map[string][]string{
		"**":      {"a", "a/b", "a/b/c"},
		"a/**":    {"a/b", "a/b/c", "a"},
		"**/a/**": {"a", "x/a", "x/a/y/z"},
		"*é?":     {"éx", "aéx"},
	} {
		for _, name := range names {
			if !matchGlob(pattern, name) {
				t.Errorf("%s does not match %s", pattern, name)
			}
		}
	}
	for pattern, name := range map[string]string{"*": "a/b", "a/*/b": "a/b", "**/a": "a/b", "?": "", "a*": "b"} {
		if matchGlob(pattern, name) {
			t.Errorf("%s matches %s", pattern, name)
		}
	}
}
