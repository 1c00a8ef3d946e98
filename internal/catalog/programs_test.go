package catalog

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mcpd/mcpd/internal/hooks"
	"github.com/mcpd/mcpd/internal/source"
)

// TestAProgramThatIsALinkIsFoundAnewByEachBuild has two programs take turns behind
// a link, while no file of the tools changes.
func TestAProgramThatIsALinkIsFoundAnewByEachBuild(t *testing.T) {
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
	link := filepath.Join(top, "run")
	must(os.Mkdir(filepath.Join(top, "tools.d"), 0o755))
	for _, name := range []string{"one", "two"} {
		must(os.WriteFile(filepath.Join(top, name), []byte("#!/bin/sh\n"), 0o755))
	}
	text := "tool \"t\" {\n  allow {\n    exec \"run\" { path = \"" + filepath.ToSlash(link) + "\" }\n  }\n  run = \"return exec.run();\"\n}\n" +
		"hook \"h\" {\n  on = [\"end\"]\n  allow {\n    exec \"run\" { path = \"" + filepath.ToSlash(link) + "\" }\n  }\n  run = \"return exec.run();\"\n}\n"
	must(os.WriteFile(filepath.Join(top, "tools.d", "t.hcl"), []byte(text), 0o644))
	builder := New(Options{Tools: source.Dir(filepath.Join(top, "tools.d")), Runner: hooks.New(hooks.Options{})})
	build := func(to string) (inTool, inHook, revision string) {
		t.Helper()
		must(os.RemoveAll(link))
		if err := os.Symlink(to, link); err != nil {
			t.Skip("this system makes no links: ", err)
		}
		built := builder.Build(Change{All: true}, nil)
		if len(built.Problems) > 0 {
			t.Fatal(built.Problems)
		}
		item := built.Catalog.Entries[Tools][0].Item
		return item.Body.(*script).exec[0].Real, builder.cache.hookOf(t).Exec[0].Real, built.Catalog.Revision
	}
	for _, to := range []string{"one", "two", "two", "one"} {
		inTool, inHook, _ := build(to)
		if want := filepath.Join(top, to); inTool != want || inHook != want {
			t.Errorf("the tool runs %s, and the hook %s, want %s", inTool, inHook, want)
		}
	}
	_, _, before := build("one")
	if _, _, same := build("one"); same != before {
		t.Errorf("nothing has changed, and the revision %s was %s", same, before)
	}
	if _, _, after := build("two"); after == before {
		t.Errorf("the link has turned, and the revision is %s yet", after)
	}
}

// hookOf returns the only hook.
func (c *cache) hookOf(t *testing.T) *Hook {
	t.Helper()
	for _, h := range c.hooks {
		return h.hook
	}
	t.Fatal("there is no hook")
	return nil
}
