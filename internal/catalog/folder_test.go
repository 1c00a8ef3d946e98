package catalog

import (
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// found returns what is wrong with a folder block of these arguments.
func found(t *testing.T, arguments string) (told []string) {
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

func TestAFolderThatOffersNothingGetsAWarning(t *testing.T) {
	for arguments, want := range map[string][]string{
		"  root = \"docs\"\n":                       nil,
		"  root = \"docs\"\n  glob = [\"*.txt\"]\n": {`warning t.hcl:3:10 no file of the folder "docs" is a resource`},
		"  root = \"docs\"\n  exclude = [\"**\"]\n": {`warning t.hcl:3:10 no file of the folder "docs" is a resource`},
		"  root = \"docs\"\n  max_file = \"1B\"\n":  {`warning t.hcl:3:10 no file of the folder "docs" is a resource`},
		"  root = \"gone\"\n":                       {`error t.hcl:3:10 the folder "gone" cannot be read: there is no such folder`},
		"  root = \".\"\n":                          {`error t.hcl:3:10 the path is no folder within the tools folder`},
		"":                                          {`error t.hcl:1:1 a resource_folder block needs the argument "root"`},
	} {
		if diff := cmp.Diff(want, found(t, arguments)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", arguments, diff)
		}
	}
}

func TestPoliciesSpeakOfWhatTheyAreOf(t *testing.T) {
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
