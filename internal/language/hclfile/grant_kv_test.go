package hclfile

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/language/grant"
)

func TestAKVGrantSaysWhatIsKept(t *testing.T) {
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
		t.Errorf("the mock is %+v", mock)
	}
	ranges := defs.Tools[0].GrantRanges
	if ranges["kv.all.scope"].Start.Line != 4 || ranges["kv.own.scope"].Start.Line != 10 {
		t.Errorf("the scopes stand at %v and %v", ranges["kv.all.scope"], ranges["kv.own.scope"])
	}
}
