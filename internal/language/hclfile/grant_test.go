package hclfile

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/grant"
)

func TestGrant_ask(t *testing.T) {
	tools := decodeTools(t, "x.hcl", `
tool "asks" {
  ask_timeout = "2m"
  task        = "required"
  task_ttl    = "3h"
  ask_first   = true
  allow {
    ask {
      elicit     = true
      sample     = true
      roots      = false
      max_rounds = 3
      max_tokens = 500
    }
  }
  run = "return 1"
}
tool "may_be_a_task" {
  task = "optional"
  run  = "return 1"
}
tool "plain" { run = "return 1" }
`, Scope{}).Tools
	asks, optional, plain := tools[0], tools[1], tools[2]
	want := grant.Set{Ask: &grant.Ask{Elicit: true, Sample: true, MaxRounds: 3, MaxTokens: 500}}
	if diff := cmp.Diff(want, asks.Grant); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if asks.AskTimeout != 2*time.Minute || asks.Task != definition.TaskRequired || asks.TaskTTL != 3*time.Hour || !asks.AskFirst ||
		asks.GrantRanges["ask"].Start.Line != 8 || asks.GrantRanges["ask.sample"].Start.Line != 10 {
		t.Errorf("got %+v", asks)
	}
	if optional.Task != definition.TaskOptional || optional.TaskTTL != definition.DefaultTaskTTL || plain.Task != "" || plain.TaskTTL != 0 || plain.AskTimeout != definition.DefaultAskTimeout {
		t.Errorf("got %+v and %+v", optional, plain)
	}
	if want.Hash() == (grant.Set{}).Hash() || want.Hash() == (grant.Set{Ask: &grant.Ask{Elicit: true}}).Hash() {
		t.Error("different grants have the same hash")
	}
	if names := want.Ask.Names(); !slices.Equal(names, []string{"elicit", "sample"}) {
		t.Errorf("got %v", names)
	}
}

func TestGrant_hostResources(t *testing.T) {
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
		file, problems := Parse(Source{Path: "x.hcl", AbsDir: folder, Bytes: []byte(text)}, ToolsKind)
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
				t.Errorf("%s has range %s, want %s", name, got, where)
			}
		}
	}
}

func TestCeiling_relativeRoot(t *testing.T) {
	file, problems := Parse(Source{Path: "mcpd.hcl", AbsDir: "/etc/mcpd", Bytes: []byte("ceiling {\n  fs_roots = [\"logs\", \"/srv/x/\"]\n  env = []\n}\n")}, ConfigKind)
	config, more := file.DecodeConfig(nil)
	if len(problems)+len(more) > 0 {
		t.Fatal(problems, more)
	}
	c := config.Ceiling
	if len(c.FSRoots) != 2 || c.FSRoots[0].Text != "/etc/mcpd/logs" || c.FSRoots[1].Text != "/srv/x" || c.Env == nil || c.HTTPHosts != nil {
		t.Errorf("got %+v", c)
	}
}

func TestGrant_fileLimits(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct{ file, total, wantFile, wantTotal int64 }{
		{0, 0, mib, 10 * mib}, {12 * mib, 0, 12 * mib, 12 * mib}, {0, 100, 100, 100}, {5, 7, 5, 7},
	} {
		if file, total := (grant.FS{MaxFile: c.file, MaxTotal: c.total}).Limits(); file != c.wantFile || total != c.wantTotal {
			t.Errorf("%d and %d: got %d and %d", c.file, c.total, file, total)
		}
	}
}

func TestGrant_kv(t *testing.T) {
	defs := decodeTools(t, "x.hcl", `tool "t" {
  allow {
    kv "all" {
      scope     = "server"
      ttl       = "8760h"
      max_keys  = 5
      max_value = "1KiB"
      max_total = "256MiB"
    }
    kv "own" {}
    kv "mine" { scope = "session" }
  }
  run = "return 1;"
}
test "t" {
  tool = "t"
  mock "kv.own" "a b/\u0000" { json = { n = 1 } }
  expect { text = "1" }
}
`, Scope{})
	want := []grant.KV{
		{Name: "all", Scope: grant.ScopeServer, TTL: 8760 * time.Hour, MaxKeys: 5, MaxValue: 1 << 10, MaxTotal: 256 << 20},
		{Name: "own", Scope: grant.ScopeTool, MaxKeys: 1000, MaxValue: 64 << 10, MaxTotal: 10 << 20},
		{Name: "mine", Scope: grant.ScopeSession, TTL: 24 * time.Hour, MaxKeys: 1000, MaxValue: 64 << 10, MaxTotal: 10 << 20},
	}
	if diff := cmp.Diff(want, defs.Tools[0].Grant.KV); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	mock := defs.Tests[0].Mocks[0]
	if mock.Object != "kv.own" || mock.Request != "a b/\x00" || string(mock.Body) != `{"n":1}` {
		t.Errorf("got mock %+v", mock)
	}
	ranges := defs.Tools[0].GrantRanges
	if ranges["kv.all.scope"].Start.Line != 4 || ranges["kv.own.scope"].Start.Line != 10 {
		t.Errorf("the scopes have the ranges %v and %v", ranges["kv.all.scope"], ranges["kv.own.scope"])
	}
}
