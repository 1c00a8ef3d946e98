package policylang

import (
	"math/rand/v2"
	"testing"

	"github.com/mcpd/mcpd/diag"
)

func FuzzCompile(f *testing.F) {
	for _, expr := range []string{
		"args.amount <= 5000", "has(args.nope) && args.nope > 3", "args.amuont == 1", "principal.scopes.exists(s, s == 'é')",
		"args.amount * 100 == 5000", "(", "'", "`", "a.?b[?c]", "{'a': 1}.a", "cel.bind(x, args.tags, x.size() > 1)",
		"args.status.matches('(a')", "now.getHours('x') == 1", "// c\nargs.cents == 1", "r'''\n''' == b\"\"", "[1, 2.5, 'a'].map(x, x)",
	} {
		f.Add(expr)
	}
	e := newEnv(f)
	f.Fuzz(func(t *testing.T, expr string) {
		const before = "policy \"é\" {\n  deny = \""
		file := before + expr + "\"\n}\n"
		text := diag.NewText("f.hcl", expr, diag.Advance(diag.Pos{Line: 1, Column: 1}, before))
		p, diags := e.Compile(Source{Name: "p", Deny: &text, ReasonExpr: &text}, smallRefund())
		if (p == nil) != diags.HasErrors() {
			t.Fatalf("policy %v beside %v", p, diags)
		}
		for _, d := range diags {
			r := d.Range
			if r.File != "f.hcl" || r.Start.Byte < len(before) || r.End.Byte > len(before)+len(expr) || r.Start.Byte > r.End.Byte {
				t.Fatalf("%v covers bytes %d to %d of a text of %d", d, r.Start.Byte-len(before), r.End.Byte-len(before), len(expr))
			}
			if want := diag.Advance(diag.Pos{Line: 1, Column: 1}, file[:r.Start.Byte]); r.Start != want {
				t.Fatalf("%v: byte %d is at %v", d, r.Start.Byte, want)
			}
			if d.Code == "" || d.Summary == "" {
				t.Fatalf("an empty diagnostic: %+v", d)
			}
		}
		if p != nil {
			p.Decide(t.Context(), refundInput())
		}
	})
}

func FuzzDecide(f *testing.F) {
	f.Add(uint64(1), uint64(2), 3)
	f.Add(uint64(7), uint64(7), 4)
	e := newEnv(f)
	f.Fuzz(func(t *testing.T, a, b uint64, depth int) {
		g := generator{rand.New(rand.NewPCG(a, b))}
		src := denying(g.boolean(min(max(depth, 1), 4)))
		if a%2 == 0 {
			src.When = inFile(g.boolean(2))
		}
		p, _ := e.Compile(src, smallRefund())
		if p == nil {
			return
		}
		in := refundInput()
		g.caller(&in)
		checkPartial(t, p, src, in, g)
	})
}
