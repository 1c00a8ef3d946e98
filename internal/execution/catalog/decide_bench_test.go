package catalog

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/policylang"
)

// manyPolicies returns a directory of tools and policies that cover one tool each.
func manyPolicies(tools, policies int) fstest.MapFS {
	var text strings.Builder
	for i := range tools {
		fmt.Fprintf(&text, "tool \"t%d\" {\n  input \"amount\" { type = integer }\n  input \"kind\" { type = string }\n  run = \"return 1\"\n}\n", i)
	}
	verdicts := []string{
		`args.amount > 5000`, `args.kind in ['gold', 'silver']`, `!principal.scopes.exists(s, s == 'crm:read')`,
		`args.kind.startsWith('internal')`, `tool.read_only && 'admin' in principal.groups`,
	}
	for i := range policies {
		fmt.Fprintf(&text, "policy \"p%d\" {\n  tools  = [\"t%d\"]\n  deny   = \"%s\"\n  reason = \"no\"\n}\n", i, i%tools, verdicts[i/tools%len(verdicts)])
	}
	return fstest.MapFS{"t.hcl": {Mode: 0o644, Data: []byte(text.String())}}
}

// decideAll evaluates the policies of an item like a call: without arguments, then those that read
// them.
func decideAll(tb testing.TB, e *Entry, facts, whole policylang.Input) {
	if denier, _, _ := e.DecideStatic(tb.Context(), facts, nil); denier != nil {
		tb.Fatalf("%s denies", denier.Name)
	}
	for i := range e.Rules {
		if rule := e.Rules[i].Compiled; rule.UsesArgs() && rule.Decide(tb.Context(), whole).Outcome != policylang.Allow {
			tb.Fatalf("%s denies", e.Rules[i].Name)
		}
	}
}

func manyRules(tb testing.TB) (e *Entry, facts, whole policylang.Input) {
	built := New(Options{Tools: manyPolicies(100, 1000)}).Build(Change{All: true}, nil)
	if len(built.Problems) > 0 {
		tb.Fatal(built.Problems)
	}
	e = built.Base.Entry(Tools, "t42")
	caller := identity.Caller{Principal: identity.Principal{ID: "ada", Scopes: []string{"crm:read"}}}
	facts = policylang.Input{Caller: caller, Tool: e.Facts, Now: time.Unix(0, 0)}
	whole = facts
	whole.Args = map[string]any{"amount": int64(700), "kind": "bronze"}
	return e, facts, whole
}

// The cost of a decision must not depend on the policies of other tools.
func TestPolicies_perTool(t *testing.T) {
	e, facts, whole := manyRules(t)
	if len(e.Rules) != 10 {
		t.Fatalf("%d of 1000 policies are evaluated", len(e.Rules))
	}
	if got := testing.AllocsPerRun(100, func() { decideAll(t, e, facts, whole) }); got > 30 {
		t.Errorf("deciding allocates %v times", got)
	}
}

// 1000 policies cover 100 tools. Only the long run checks times.
func TestPolicies_thousandAllocations(t *testing.T) {
	if os.Getenv("MCPD_LONG") == "" {
		t.Skip("SKIPPED: set MCPD_LONG")
	}
	e, facts, whole := manyRules(t)
	const calls = 1000
	fastest := time.Hour // of the rounds, as others may be delayed by the machine
	for range 50 {
		began := time.Now()
		for range calls {
			decideAll(t, e, facts, whole)
		}
		fastest = min(fastest, time.Since(began)/calls)
	}
	if t.Logf("a decision takes %v", fastest); fastest > 10*time.Microsecond {
		t.Errorf("a decision takes %v", fastest)
	}
}

func BenchmarkDecide_thousandPolicies(b *testing.B) {
	e, facts, whole := manyRules(b)
	b.ReportAllocs()
	for b.Loop() {
		decideAll(b, e, facts, whole)
	}
}
