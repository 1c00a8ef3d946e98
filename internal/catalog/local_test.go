package catalog

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mcpd/mcpd/internal/source"
)

// TestARootThatIsALinkIsFoundAnewByEachBuild has two folders take turns behind a
// link, while no file of the tools changes.
func TestARootThatIsALinkIsFoundAnewByEachBuild(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(top, "logs")
	for _, name := range []string{"tools.d", "one", "two"} {
		must(os.Mkdir(filepath.Join(top, name), 0o755))
	}
	const text = "tool \"t\" {\n  allow {\n    fs \"logs\" { root = \"../logs\" }\n  }\n  run = \"return fs.logs.list();\"\n}\n"
	must(os.WriteFile(filepath.Join(top, "tools.d", "t.hcl"), []byte(text), 0o644))
	builder := New(Options{Tools: source.Dir(filepath.Join(top, "tools.d"))})
	build := func(to string) (root, revision string, item *Item) {
		t.Helper()
		must(os.RemoveAll(link))
		must(os.Symlink(to, link))
		built := builder.Build(Change{All: true}, nil)
		if len(built.Problems) > 0 {
			t.Fatal(built.Problems)
		}
		item = built.Catalog.Entries[Tools][0].Item
		return item.Body.(*script).files[0].Real, built.Catalog.Revision, item
	}
	root, revision, item := build("one")
	if again, same, kept := build("one"); root != filepath.Join(top, "one") || again != root || same != revision || kept != item {
		t.Errorf("nothing has changed: the root is %s and %s, the revision %s and %s", root, again, revision, same)
	}
	if other, changed, _ := build("two"); other != filepath.Join(top, "two") || changed == revision {
		t.Errorf("the link has turned: the root is %s, the revision %s was %s", other, changed, revision)
	}
}
