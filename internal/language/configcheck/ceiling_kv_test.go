package configcheck_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/language/configcheck"
	"github.com/mcpd/mcpd/internal/language/hclfile"
)

const keeping = `
tool "own" {
  allow {
    kv "a" {}
    kv "b" { scope = "server" }
  }
  run = "return kv.a && kv.b;"
}
hook "count" {
  on = ["end"]
  allow {
    kv "b" { scope = "server" }
  }
  run = "kv.b;"
}
test "own" {
  tool = "own"
  mock "kv.a" "x" { json = 1 }
  mock "kv.c" "x" { json = 1 }
  expect { text = "x" }
}
`

func TestNoToolFileSharesMoreThanTheCeiling(t *testing.T) {
	files := []*hclfile.Definitions{tools(t, "a.hcl", keeping)}
	const unknown = `tool "own" is not granted kv.c, so nothing asks this mock`
	for _, c := range []struct {
		ceiling string
		want    []string
	}{
		{``, []string{unknown}},
		{`ceiling { kv = ["tool", "server"] }`, []string{unknown}},
		{`ceiling { kv = ["tool", "session"] }`, []string{
			`tool "own" keeps values in the scope "server", which the operator's ceiling does not allow`,
			`hook "count" keeps values in the scope "server", which the operator's ceiling does not allow`, unknown,
		}},
		{`ceiling { kv = [] }`, []string{
			`tool "own" keeps values in the scope "tool", which the operator's ceiling does not allow`,
			`tool "own" keeps values in the scope "server", which the operator's ceiling does not allow`,
			`hook "count" keeps values in the scope "server", which the operator's ceiling does not allow`, unknown,
		}},
	} {
		var got []string
		for _, p := range configcheck.Check(config(t, c.ceiling+"\n"), files, configcheck.Elsewhere{}).Sort() {
			got = append(got, p.Summary)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", c.ceiling, diff)
		}
	}
}
