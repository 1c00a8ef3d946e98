package catalog

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/schema"
)

func TestBuilder_sharedSchemas(t *testing.T) {
	const file = `
tool "a" {
  input "n" { type = integer }
  output "n" { type = integer }
  run = "return input;"
}
tool "b" {
  input "n" { type = integer }
  output "n" { type = integer }
  run = "return input;"
}
tool "c" {
  input "n" { type = string }
  run = "return input;"
}
`
	c := New(Options{Tools: fstest.MapFS{"t.hcl": {Mode: 0o644, Data: []byte(file)}}}).Build(Change{All: true}, nil).Base.Catalog
	input := func(name string) *schema.Schema { return c.Entry(Tools, name).Input }
	if input("a") != input("b") || c.Entry(Tools, "a").Output != c.Entry(Tools, "b").Output {
		t.Error("equal schemas are compiled twice")
	}
	if input("a") == input("c") || input("a") == c.Entry(Tools, "a").Output {
		t.Error("different schemas are shared")
	}
}

// A build checks only new tools, and reports an unlistable tool each time.
func TestBuilder_listableTools(t *testing.T) {
	tool := func(text string) *fstest.MapFile {
		return &fstest.MapFile{Mode: 0o644, Data: []byte("tool \"" + text + "\" {\n  run = \"return 1;\"\n}\n")}
	}
	var checked atomic.Int64
	files := fstest.MapFS{"a.hcl": tool("a"), "b.hcl": tool("b"), "c.hcl": tool("c")}
	b := New(Options{Tools: files, Checks: Checks{Item: func(i *Item) error {
		checked.Add(1)
		if i.Name == "bad" {
			return errors.New("it is bad")
		}
		return nil
	}}})
	build := func(want int64, codes ...string) {
		t.Helper()
		checked.Store(0)
		problems := b.Build(Change{Paths: []string{"c.hcl"}}, nil).Problems
		if n := checked.Load(); n != want {
			t.Errorf("%d tools are checked, want %d", n, want)
		}
		if len(problems) != len(codes) || len(codes) > 0 && problems[0].Code != codes[0] {
			t.Errorf("got %v, want %q", problems, codes)
		}
	}
	b.Build(Change{All: true}, nil)
	build(0)
	files["c.hcl"] = tool("d")
	build(1)
	files["c.hcl"] = tool("bad")
	build(1, "unlistable-tool")
	build(1, "unlistable-tool")
	files["c.hcl"] = tool("e")
	build(1)
}

func TestLogPanics(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	LogPanics(logger, diag.List{{Summary: "other"}, {Summary: "a panic", Range: diag.Range{File: "x.hcl"}, Stack: "goroutine 1"}})
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, `msg="recover panic in file" at=x.hcl stack="goroutine 1"`) {
		t.Errorf("logged %s", got)
	}
}
