package catalog

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mcpd/mcpd/internal/execution/hooks"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/loader"
)

// Each directory "1" and "2" holds a whole version of the files, whose description and program must
// match. A link is moved from 1 to 2 after the tool files were read and before the programs are.
func TestBuild_swapDuringLoad(t *testing.T) {
	config := func(of string) string { return "variable \"of\" {\n  type    = string\n  default = \"" + of + "\"\n}" }
	for name, c := range map[string]struct {
		versions string            // the directory of the versions
		links    map[string]string // by path
		swap     string            // the moved link
		config   string            // the directory of mcpd.hcl, whose versions also hold tools.d; "" for one version
	}{
		"mounted volume":     {"tools.d/..", map[string]string{"tools.d/a.hcl": "..data/a.hcl", "tools.d/a.js": "..data/a.js"}, "tools.d/..data", ""},
		"volume below":       {"tools.d/vol/..", map[string]string{"tools.d/vol/a.hcl": "..data/a.hcl", "tools.d/vol/a.js": "..data/a.js"}, "tools.d/vol/..data", ""},
		"linked directory":   {"tools.d/.v", nil, "tools.d/now", ""},
		"tools directory":    {"v", nil, "tools.d", ""},
		"volume of mcpd.hcl": {"etc/..", map[string]string{"etc/mcpd.hcl": "..data/mcpd.hcl", "tools.d": "etc/..data/tools.d"}, "etc/..data", "etc"},
	} {
		t.Run(name, func(t *testing.T) {
			top := t.TempDir()
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			write := func(name, text string) {
				must(os.MkdirAll(filepath.Dir(filepath.Join(top, name)), 0o755))
				must(os.WriteFile(filepath.Join(top, name), []byte(text), 0o644))
			}
			link := func(to, name string) {
				if err := os.Symlink(filepath.FromSlash(to), filepath.Join(top, name)); err != nil {
					t.Skip("this system makes no links: ", err)
				}
			}
			for _, version := range []string{"1", "2"} {
				files := c.versions + version
				if c.config != "" {
					write(files+"/mcpd.hcl", config(version))
					files += "/tools.d"
				}
				write(files+"/a.hcl", "tool \"a\" {\n  description = \"version "+version+" ${var.of}\"\n  run = file(\"a.js\")\n}")
				write(files+"/a.js", "return "+version)
			}
			of := "2"
			if c.config == "" {
				of = "both"
				write("mcpd.hcl", config(of))
			}
			base := filepath.Base(c.versions)
			link(base+"1", c.swap)
			for name, to := range c.links {
				link(to, name)
			}
			loads := 0
			b := New(Options{
				Tools: loader.Dir(filepath.Join(top, "tools.d")), ToolsPath: "tools.d", Runner: hooks.New(hooks.Options{}),
				Config: loader.Dir(filepath.Join(top, c.config)), ConfigPath: "mcpd.hcl",
				Accepted: func([]definition.Upstream, LockFile) Accepted {
					if loads++; loads == 1 {
						link(base+"2", c.swap+"_tmp")
						must(os.Rename(filepath.Join(top, c.swap+"_tmp"), filepath.Join(top, c.swap)))
					}
					return Accepted{}
				},
			})
			built := b.Build(Change{All: true}, nil)
			if built.Problems.HasErrors() {
				t.Fatal(built.Problems)
			}
			tool := built.Base.Entries[Tools][0].Item
			if want := "version 2 " + of; *tool.Description != want {
				t.Errorf("description %q, want %q", *tool.Description, want)
			}
			program, ok := built.Sources.content(tool.Where.File[:len(tool.Where.File)-len("hcl")] + "js")
			if !ok || string(program) != "return 2" {
				t.Errorf("program %q %v", program, ok)
			}
			if loads != 2 {
				t.Errorf("%d loads, want 2", loads)
			}
			if b.Build(Change{All: true}, nil); loads != 3 {
				t.Errorf("%d loads after a load without swap, want 3", loads)
			}
		})
	}
}

// Something that replaces a directory during each load does not keep mcpd from serving.
func TestBuild_swapDuringEachLoad(t *testing.T) {
	top, loads := t.TempDir(), 0
	for _, version := range []string{"1", "2"} {
		if err := os.Mkdir(filepath.Join(top, version), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	swap := func() {
		loads++
		at := filepath.Join(top, "tools.d")
		if err := os.RemoveAll(at); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink([]string{"1", "2"}[loads%2], at); err != nil {
			t.Skip("this system makes no links: ", err)
		}
	}
	swap()
	b := New(Options{
		Tools: loader.Dir(filepath.Join(top, "tools.d")), Runner: hooks.New(hooks.Options{}),
		Accepted: func([]definition.Upstream, LockFile) Accepted {
			swap()
			return Accepted{}
		},
	})
	if built := b.Build(Change{All: true}, nil); built.Problems.HasErrors() {
		t.Fatal(built.Problems)
	}
	if loads != 2+maxRereads {
		t.Errorf("%d loads, want %d", loads-1, 1+maxRereads)
	}
}
