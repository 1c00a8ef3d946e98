package catalog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/internal/execution/hooks"
	"github.com/mcpd/mcpd/internal/language/loader"
)

// alternatingLink is a link that alternates between two targets, while no tool file changes.
type alternatingLink struct {
	*testing.T
	top, link string
	builder   *Builder
}

// newAlternatingLink creates the targets "one" and "two", and tools where LINK is the path of the link.
func newAlternatingLink(t *testing.T, makePlace func(path string) error, tools string) *alternatingLink {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	l := &alternatingLink{T: t, top: top, link: filepath.Join(top, "link")}
	folder := filepath.Join(top, "tools.d")
	l.must(os.Mkdir(folder, 0o755))
	l.must(makePlace(l.place("one")))
	l.must(makePlace(l.place("two")))
	l.must(os.WriteFile(filepath.Join(folder, "t.hcl"), []byte(strings.ReplaceAll(tools, "LINK", filepath.ToSlash(l.link))), 0o644))
	l.builder = New(Options{Tools: loader.Dir(folder), Runner: hooks.New(hooks.Options{})})
	return l
}

func (l *alternatingLink) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

func (l *alternatingLink) place(name string) string { return filepath.Join(l.top, name) }

// build retargets the link, and returns the tool and the revision of the next build.
func (l *alternatingLink) build(to string) (tool *Item, revision string) {
	l.Helper()
	l.must(os.RemoveAll(l.link))
	if err := os.Symlink(to, l.link); err != nil {
		l.Skip("this system makes no links: ", err)
	}
	built := l.builder.Build(Change{All: true}, nil)
	if len(built.Problems) > 0 {
		l.Fatal(built.Problems)
	}
	return built.Base.Entries[Tools][0].Item, built.Base.Revision
}

// hook returns the only hook.
func (l *alternatingLink) hook() *Hook {
	l.Helper()
	for _, h := range l.builder.cache.hooks {
		return h.hook
	}
	l.Fatal("there is no hook")
	return nil
}

// check alternates the target, and verifies the resolved paths after each change.
func (l *alternatingLink) check(leads func(tool *Item) []string) {
	l.Helper()
	for _, to := range []string{"one", "two", "two", "one"} {
		tool, _ := l.build(to)
		for _, got := range leads(tool) {
			if got != l.place(to) {
				l.Errorf("a grant resolves to %s, want %s", got, l.place(to))
			}
		}
	}
	kept, before := l.build("one")
	if again, same := l.build("one"); again != kept || same != before {
		l.Errorf("without a change, the revision is %s, want %s; recompiled: %v", same, before, again != kept)
	}
	if _, after := l.build("two"); after == before {
		l.Errorf("the link has changed, and the revision is still %s", after)
	}
}

func TestLinks_root(t *testing.T) {
	makeFolder := func(path string) error { return os.Mkdir(path, 0o755) }
	l := newAlternatingLink(t, makeFolder, `tool "t" {
  allow {
    fs "logs" { root = "../link" }
  }
  run = "return fs.logs.list();"
}
hook "h" {
  on = ["end"]
  allow {
    fs "logs" { root = "LINK" }
  }
  run = "return fs.logs.list();"
}
`)
	l.check(func(tool *Item) []string {
		return []string{tool.Handler.(*scriptHandler).grants.Folders[0].ResolvedPath, l.hook().Grants.Folders[0].ResolvedPath}
	})
}

func TestLinks_program(t *testing.T) {
	makeProgram := func(path string) error { return os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755) }
	l := newAlternatingLink(t, makeProgram, `tool "t" {
  allow {
    exec "run" { path = "LINK" }
  }
  run = "return exec.run();"
}
hook "h" {
  on = ["end"]
  allow {
    exec "run" { path = "LINK" }
  }
  run = "return exec.run();"
}
`)
	l.check(func(tool *Item) []string {
		return []string{tool.Handler.(*scriptHandler).grants.Exec[0].ResolvedPath, l.hook().Grants.Exec[0].ResolvedPath}
	})
}

func TestLinks_database(t *testing.T) {
	makeDatabase := func(path string) error { return os.WriteFile(path, nil, 0o644) }
	l := newAlternatingLink(t, makeDatabase, `tool "t" {
  allow {
    sql "shop" {
      driver = "sqlite"
      dsn    = "LINK"
      statement "count" { query = "SELECT count(*) FROM orders" }
    }
  }
  run = "return (await sql.shop.query('count')).rows;"
}
hook "h" {
  on = ["end"]
  allow {
    sql "shop" {
      driver = "sqlite"
      dsn    = "LINK"
      statement "count" { query = "SELECT count(*) FROM orders" }
    }
  }
  run = "await sql.shop.query('count');"
}
`)
	l.check(func(tool *Item) []string {
		return []string{tool.Handler.(*scriptHandler).grants.Databases[0].ResolvedPath, l.hook().Grants.Databases[0].ResolvedPath}
	})
}
