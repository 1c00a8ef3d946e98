package deployment

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/federation/lockfile"
)

func TestUpstreamsThatTheLockDoesNotKnowAreToldUnlessNothingIsPinned(t *testing.T) {
	side := said(t, `
upstream "first" {
  url = "https://a.example.com/mcp"
}
upstream "strict" {
  url = "https://b.example.com/mcp"
  pin = "strict"
}
upstream "off" {
  url = "https://c.example.com/mcp"
  pin = "off"
}
upstream "resources" {
  url   = "https://d.example.com/mcp"
  offer = ["resources"]
}
upstream "known" {
  url = "https://e.example.com/mcp"
}
`, nil)
	lock := new(lockfile.Lock).Pin("known")
	got := map[int]string{}
	for _, w := range Unaccepted(side, lock) {
		if w.Severity != diag.Warning {
			t.Errorf("%v keeps from deploying", w)
		}
		got[w.Range.Start.Line] = w.Detail
	}
	const detail = "run mcpd lock accept where it can be reached, commit mcpd.lock, and run mcpd compose again: "
	want := map[int]string{2: detail + "until then each start trusts what it lists first", 5: detail + "until then it has no tools"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
