package hclfile

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
)

func TestAnAuditIsDecodedWhole(t *testing.T) {
	c, problems := decodeConfig(t, `
audit {
  path     = "audit/mcpd.jsonl"
  mode     = "strict"
  max_size = "1GiB"
  keep     = 3
  max_age  = "90d"
  capture  = ["refund_*", "gh/issue"]
}`, nil)
	want := &definition.Audit{
		Path: "audit/mcpd.jsonl", Mode: definition.AuditStrict, MaxSize: 1 << 30, Keep: 3, MaxAge: 90 * 24 * time.Hour,
		Capture: []definition.Name{{Text: "refund_*"}, {Text: "gh/issue"}},
	}
	if diff := cmp.Diff(want, c.Audit, cmpopts.IgnoreTypes(diag.Range{})); diff != "" || len(problems) > 0 {
		t.Errorf("(-want +got)\n%s%v", diff, problems)
	}
}

func TestWithoutABlockNothingIsWrittenDown(t *testing.T) {
	if c, problems := decodeConfig(t, `server { name = "x" }`, nil); c.Audit != nil || len(problems) > 0 {
		t.Errorf("%+v %v", c.Audit, problems)
	}
}
