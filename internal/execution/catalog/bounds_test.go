package catalog

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/execution/hooks"
	"github.com/mcpd/mcpd/policylang"
)

// silent sets no bounds, and written sets all.
const (
	silent = `
tool "t" { run = "return 1" }
resource "r" {
  uri = "x://r"
  run = "return 'r'"
}
resource_template "v" {
  uri_template = "x://v/{n}"
  run          = "return 'v'"
}
prompt "p" {
  run = "return 'p'"
}
hook "h" {
  on  = ["end"]
  run = "log.info('h')"
}
`
	written = `
tool "t" {
  limits {
    timeout     = "700ms"
    memory      = "48MiB"
    output      = "1KiB"
    concurrency = 3
  }
  run = "return 1"
}
hook "h" {
  on      = ["end"]
  timeout = "700ms"
  run     = "log.info('h')"
}
`
	operatorsHook = "hook \"first\" {\n  on  = [\"end\"]\n  run = \"log.info('first')\"\n}\n"
)

// boundsOf returns the bounds of each item, by name.
func boundsOf(t *testing.T, b *Builder) map[string]string {
	t.Helper()
	built := b.Build(Change{All: true}, nil)
	if built.Problems.HasErrors() {
		t.Fatal(built.Problems)
	}
	found := map[string]string{}
	show := func(timeout time.Duration, memory int64, output, concurrency int) string {
		return fmt.Sprintf("%v, %d MiB, %d KiB, %d at once", timeout, memory>>20, output>>10, concurrency)
	}
	for _, entries := range built.Base.Entries {
		for _, e := range entries {
			found[e.Name] = show(e.Timeout, e.Bounds.Memory, e.Bounds.Output, e.Concurrency)
			if own := len(e.Limits); own != min(e.Concurrency, 1) || own == 1 && e.Limits[0].Concurrency != e.Concurrency {
				t.Errorf("%s has the limits %v for %d at once", e.Name, e.Limits, e.Concurrency)
			}
		}
	}
	for _, h := range built.Base.Hooks {
		found[h.Name] = show(h.Timeout, h.Limits.Memory, h.Limits.Output, 0)
	}
	return found
}

// The smaller of default and ceiling applies, unless a definition sets its own. Hooks in mcpd.hcl
// are bounded by the limits block only.
func TestBounds_defaults(t *testing.T) {
	same := func(bounds, hook, first string) map[string]string {
		return map[string]string{"t": bounds, "r": bounds, "v": bounds, "p": bounds, "h": hook, "first": first}
	}
	const unbounded, hook = "1s, 0 MiB, 0 KiB, 0 at once", "5s, 0 MiB, 0 KiB, 0 at once"
	for _, test := range []struct {
		name, config, tools string
		want                map[string]string
	}{
		{"no ceiling", "", silent, same(unbounded, hook, hook)},
		{"an empty ceiling", "ceiling { }\n", silent, same(unbounded, hook, hook)},
		{
			"a ceiling below the defaults", "ceiling {\n  timeout = \"900ms\"\n  memory = \"64MiB\"\n  output = \"8KiB\"\n  concurrency = 8\n}\n", silent,
			same("900ms, 64 MiB, 8 KiB, 8 at once", "900ms, 64 MiB, 8 KiB, 0 at once", hook),
		},
		{
			"a ceiling above the defaults", "ceiling {\n  timeout = \"1m\"\n  memory = \"1GiB\"\n  output = \"16MiB\"\n  concurrency = 800\n}\n", silent,
			same("1s, 256 MiB, 4096 KiB, 800 at once", "5s, 256 MiB, 4096 KiB, 0 at once", hook),
		},
		{
			"limits below a ceiling", "limits { memory = \"64MiB\" }\nceiling { memory = \"128MiB\" }\n", silent,
			same("1s, 64 MiB, 0 KiB, 0 at once", "5s, 64 MiB, 0 KiB, 0 at once", "5s, 64 MiB, 0 KiB, 0 at once"),
		},
		{
			"limits above a ceiling", "limits { memory = \"1GiB\" }\nceiling { memory = \"512MiB\" }\n", silent,
			same("1s, 512 MiB, 0 KiB, 0 at once", "5s, 512 MiB, 0 KiB, 0 at once", "5s, 1024 MiB, 0 KiB, 0 at once"),
		},
		{
			"what is written", "limits { memory = \"1GiB\" }\nceiling { \n  timeout = \"1s\"\n  memory = \"512MiB\"\n  concurrency = 5\n}\n", written,
			map[string]string{"t": "700ms, 48 MiB, 1 KiB, 3 at once", "h": "700ms, 512 MiB, 0 KiB, 0 at once", "first": "5s, 1024 MiB, 0 KiB, 0 at once"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := New(Options{Tools: files(map[string]string{"t.hcl": test.tools}), Config: files(map[string]string{"mcpd.hcl": test.config + operatorsHook}), ConfigPath: "mcpd.hcl", Runner: hooks.New(hooks.Options{})})
			if diff := cmp.Diff(test.want, boundsOf(t, b)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestBounds_changedCeiling(t *testing.T) {
	config := files(map[string]string{"mcpd.hcl": operatorsHook})
	b := New(Options{Tools: files(map[string]string{"t.hcl": silent}), Config: config, ConfigPath: "mcpd.hcl", Runner: hooks.New(hooks.Options{})})
	shown := func() [32]byte { return b.base.Entry(Tools, "t").ListHash }
	boundsOf(t, b)
	before := shown()
	config["mcpd.hcl"] = files(map[string]string{"": "ceiling { timeout = \"300ms\" }\n" + operatorsHook})[""]
	got := boundsOf(t, b)
	if got["t"] != "300ms, 0 MiB, 0 KiB, 0 at once" || got["h"] != "300ms, 0 MiB, 0 KiB, 0 at once" || shown() == before {
		t.Errorf("got %v", got)
	}
	compiled := b.base.Entry(Tools, "t").Item
	boundsOf(t, b)
	if b.base.Entry(Tools, "t").Item != compiled {
		t.Error("an unchanged ceiling recompiles a tool")
	}
}

func TestRememberRemoved_bounded(t *testing.T) {
	var text strings.Builder
	for i := range 1500 {
		fmt.Fprintf(&text, "resource \"r%d\" {\n  uri  = \"x:%[1]d\"\n  text = \"\"\n}\n", i)
	}
	build := func(text string) *Catalog {
		built := New(Options{Tools: fstest.MapFS{"r.hcl": {Mode: 0o644, Data: []byte(text)}}}).Build(Change{All: true}, nil)
		if built.Problems.HasErrors() {
			t.Fatal(built.Problems)
		}
		return built.Base.Catalog
	}
	before, after := build(text.String()), build("")
	after.RememberRemoved(before)
	known := 0
	for i := range 1500 {
		if _, ok := after.Removed(t.Context(), Resources, fmt.Sprintf("x:%d", i), policylang.Input{}); ok {
			known++
		}
	}
	if known != maxRemoved {
		t.Errorf("%d items are remembered", known)
	}
}
