package catalog

import (
	"fmt"
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// folderDiagnostics returns the diagnostics of a folder block with these arguments.
func folderDiagnostics(t *testing.T, arguments string) (told []string) {
	t.Helper()
	tools := fstest.MapFS{
		"t.hcl":     {Mode: 0o644, Data: []byte("resource_folder \"docs\" {\n  uri_prefix = \"x://\"\n" + arguments + "}\n")},
		"docs/a.md": {Mode: 0o644, Data: []byte("# A")},
	}
	for _, p := range New(Options{Tools: tools}).Build(Change{All: true}, nil).Problems {
		told = append(told, fmt.Sprintf("%s %s %s", p.Severity, p.Range, p.Summary))
	}
	return told
}

func TestFolder_noMatch(t *testing.T) {
	for arguments, want := range map[string][]string{
		"  root = \"docs\"\n":                       nil,
		"  root = \"docs\"\n  glob = [\"*.txt\"]\n": {`warning t.hcl:3:10 no file of the folder "docs" is a resource`},
		"  root = \"docs\"\n  exclude = [\"**\"]\n": {`warning t.hcl:3:10 no file of the folder "docs" is a resource`},
		"  root = \"docs\"\n  max_file = \"1B\"\n":  {`warning t.hcl:3:10 no file of the folder "docs" is a resource`},
		"  root = \"gone\"\n":                       {`error t.hcl:3:10 the folder "gone" cannot be read: the directory does not exist`},
		"  root = \".\"\n":                          {`error t.hcl:3:10 the path is not a directory in the tools directory`},
		"":                                          {`error t.hcl:1:1 a resource_folder block needs the argument "root"`},
	} {
		if diff := cmp.Diff(want, folderDiagnostics(t, arguments)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", arguments, diff)
		}
	}
}

func TestFolder_duplicateURI(t *testing.T) {
	const file = `resource_folder "all" {
  root       = "all"
  uri_prefix = "x://"
}
resource_folder "some" {
  root       = "some"
  uri_prefix = "x://deep/"
}
resource "own" {
  uri  = "x://own.md"
  text = "this one is meant"
}`
	tools := fstest.MapFS{"t.hcl": {Mode: 0o644, Data: []byte(file)}}
	for _, name := range []string{"all/deep/a.md", "all/deep/b.md", "all/own.md", "some/a.md", "some/b.md"} {
		tools[name] = &fstest.MapFile{Mode: 0o644}
	}
	problems := New(Options{Tools: tools}).Build(Change{All: true}, nil).Problems
	const want = `files of the folders "all" and "some" have the same URI, "x://deep/a.md"`
	if len(problems) != 1 || problems[0].Summary != want || problems[0].Range.Start.Line != 7 {
		t.Errorf("found %v", problems)
	}
}

// changingFS is a directory that changes before its files are opened.
type changingFS struct {
	fstest.MapFS
	later fstest.MapFS
}

func (f changingFS) Open(name string) (fs.File, error) { return f.later.Open(name) }

func TestFolder_changedWhileReading(t *testing.T) {
	const file = `resource_folder "docs" {
  root       = "docs"
  uri_prefix = "x://"
  max_file   = "2B"
}`
	before, after := fstest.MapFS{"t.hcl": {Mode: 0o644, Data: []byte(file)}}, fstest.MapFS{}
	for _, name := range []string{"docs/goes.md", "docs/grows.md", "docs/stays.md"} {
		before[name] = &fstest.MapFile{Mode: 0o644, Data: []byte("1")}
		after[name] = &fstest.MapFile{Mode: 0o644, Data: []byte("2")}
	}
	after["t.hcl"], after["docs/grows.md"] = before["t.hcl"], &fstest.MapFile{Mode: 0o644, Data: []byte("333")}
	delete(after, "docs/goes.md")
	built := New(Options{Tools: changingFS{before, after}}).Build(Change{All: true}, nil)
	if len(built.Problems) > 0 {
		t.Errorf("found %v", built.Problems)
	}
	if entries := built.Base.Entries[Resources]; len(entries) != 1 || entries[0].Address != "x://stays.md" {
		t.Errorf("%d resources, the first of which is %v", len(entries), entries)
	}
}

func TestPolicies_itemAttributes(t *testing.T) {
	const file = `resource_template "note" {
  uri_template = "x://{id}"
  text         = "{{id}}"
}
policy "p" {
  resources = ["note"]
  deny      = "args.idd == '1'"
  reason    = "no"
}`
	problems := New(Options{Tools: fstest.MapFS{"t.hcl": {Mode: 0o644, Data: []byte(file)}}}).Build(Change{All: true}, nil).Problems
	if len(problems) != 1 || problems[0].Summary != `resource "note" has no argument "idd"` {
		t.Errorf("found %v", problems)
	}
}
