package hclfile

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/language/grant"
)

func TestWhatIsGrantedOfTheMachineIsDecoded(t *testing.T) {
	const text = `tool "t" {
  allow {
    fs "logs" { root = "../logs" }
    fs "out" {
      root      = "/srv/out/./x/"
      mode      = "rw"
      max_file  = "2MiB"
      max_total = "3MiB"
    }
    fs "ro" {
      root = "."
      mode = "ro"
    }
    env { names = ["LANG", "TZ"] }
  }
  run = "return fs.logs && fs.out && fs.ro && env.LANG;"
}
`
	for folder, at := range map[string]func(string) string{
		"":             func(path string) string { return path },
		"/etc/tools.d": func(path string) string { return filepath.Join("/etc/tools.d", path) },
	} {
		file, problems := Parse(Source{Path: "x.hcl", Folder: folder, Bytes: []byte(text)}, ToolsKind)
		defined, more := file.Decode(Scope{})
		if len(problems)+len(more) > 0 {
			t.Fatal(problems, more)
		}
		want := grant.Set{
			FS: []grant.FS{
				{Name: "logs", Root: at("../logs"), Relative: true}, {Name: "out", Root: "/srv/out/x", Write: true, MaxFile: 2 << 20, MaxTotal: 3 << 20}, {Name: "ro", Root: at("."), Relative: true},
			},
			Env: []string{"LANG", "TZ"},
		}
		if diff := cmp.Diff(want, defined.Tools[0].Grant); diff != "" {
			t.Errorf("in %q (-want +got)\n%s", folder, diff)
		}
		ranges := defined.Tools[0].GrantRanges
		for name, where := range map[string]string{"fs.logs": "x.hcl:3:5", "fs.out.root": "x.hcl:5:19", "env": "x.hcl:14:5", "env.TZ": "x.hcl:14:28"} {
			if got := ranges[name].String(); got != where {
				t.Errorf("%s stands at %s, want %s", name, got, where)
			}
		}
	}
}

func TestARootOfTheCeilingIsFoundFromTheOperatorsFile(t *testing.T) {
	file, problems := Parse(Source{Path: "mcpd.hcl", Folder: "/etc/mcpd", Bytes: []byte("ceiling {\n  fs_roots = [\"logs\", \"/srv/x/\"]\n  env = []\n}\n")}, ConfigKind)
	config, more := file.DecodeConfig(nil)
	if len(problems)+len(more) > 0 {
		t.Fatal(problems, more)
	}
	c := config.Ceiling
	if len(c.FSRoots) != 2 || c.FSRoots[0].Text != "/etc/mcpd/logs" || c.FSRoots[1].Text != "/srv/x" || c.Env == nil || c.HTTPHosts != nil {
		t.Errorf("got %+v", c)
	}
}

func TestBoundsOfFilesGoTogether(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct{ file, total, wantFile, wantTotal int64 }{
		{0, 0, mib, 10 * mib}, {12 * mib, 0, 12 * mib, 12 * mib}, {0, 100, 100, 100}, {5, 7, 5, 7},
	} {
		if file, total := (grant.FS{MaxFile: c.file, MaxTotal: c.total}).Bounds(); file != c.wantFile || total != c.wantTotal {
			t.Errorf("%d and %d: got %d and %d", c.file, c.total, file, total)
		}
	}
}
