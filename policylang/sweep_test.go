package policylang

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/process/cputest"
)

// constructs builds an expression with n repetitions or levels of each construct of CEL.
var constructs = map[string]func(n int) string{
	"brackets":       func(n int) string { return strings.Repeat("(", n) + "true" + strings.Repeat(")", n) },
	"lists":          func(n int) string { return strings.Repeat("[", n) + "1" + strings.Repeat("]", n) + " == []" },
	"maps":           func(n int) string { return strings.Repeat("{'a':", n) + "1" + strings.Repeat("}", n) + " == {}" },
	"indexes":        func(n int) string { return "args.any" + strings.Repeat("[0", n) + strings.Repeat("]", n) + " == 1" },
	"index chain":    func(n int) string { return "args.any" + strings.Repeat("[0]", n) + " == 1" },
	"nots":           func(n int) string { return strings.Repeat("!", n) + "true" },
	"minuses":        func(n int) string { return strings.Repeat("-", n) + "1 == 1" },
	"spaced minuses": func(n int) string { return strings.Repeat("- ", n) + "args.amount == 1" },
	"sums":           func(n int) string { return strings.Repeat("1+", n) + "1 == 1" },
	"mixed sums":     func(n int) string { return strings.Repeat("1+", n) + "args.amount == 1" },
	"right mixed":    func(n int) string { return "args.amount" + strings.Repeat("*2", n) + " == 1" },
	"comparisons":    func(n int) string { return strings.Repeat("1 == ", n) + "1" },
	"ands":           func(n int) string { return strings.Repeat("true && ", n) + "true" },
	"ors":            func(n int) string { return strings.Repeat("args.amount == 1 || ", n) + "true" },
	"ternaries":      func(n int) string { return strings.Repeat("true ? true : ", n) + "true" },
	"ternary heads":  func(n int) string { return strings.Repeat("true ? ", n) + "true" + strings.Repeat(" : true", n) },
	"members":        func(n int) string { return "args.any" + strings.Repeat(".a", n) + " == 1" },
	"optional":       func(n int) string { return "args.any" + strings.Repeat(".?a", n) + ".hasValue()" },
	"methods":        func(n int) string { return "args.status" + strings.Repeat(".trim()", n) + " == ''" },
	"calls":          func(n int) string { return strings.Repeat("size(", n) + "''" + strings.Repeat(")", n) + " == 1" },
	"has":            func(n int) string { return strings.Repeat("has(", n) + "args.any.x" + strings.Repeat(")", n) },
	"exists":         func(n int) string { return strings.Repeat("[1].exists(x, ", n) + "true" + strings.Repeat(")", n) },
	"nested exists":  func(n int) string { return nested("args.tags.exists(", n) },
	"nested groups":  func(n int) string { return nested("principal.groups.all(", n) },
	"map chain":      func(n int) string { return "args.tags" + strings.Repeat(".map(t, t + t)", n) + ".size() > 0" },
	"filter chain":   func(n int) string { return "args.tags" + strings.Repeat(".filter(t, t != '')", n) + ".size() > 0" },
	"binds":          func(n int) string { return strings.Repeat("cel.bind(a, 'a', ", n) + "true" + strings.Repeat(")", n) },
	"bind doubling":  func(n int) string { return doubling(n) },
	"replace":        func(n int) string { return "args.note" + strings.Repeat(".replace('', args.note)", n) + " == ''" },
	"list elements":  func(n int) string { return "1 in [" + strings.Repeat("1,", n) + "1]" },
	"map entries":    func(n int) string { return "{" + strings.Repeat("'a':1,", n) + "'b':1} == {}" },
	"call arguments": func(n int) string { return "math.greatest(" + strings.Repeat("1,", n) + "1) == 1" },
	"long string":    func(n int) string { return "args.status == '" + strings.Repeat("a", n) + "'" },
	"open string":    func(n int) string { return "args.status == '" + strings.Repeat("a", n) },
	"escapes":        func(n int) string { return "args.status == '" + strings.Repeat(`\n`, n) + "'" },
	"long name":      func(n int) string { return "args." + strings.Repeat("a", n) + " == 1" },
	"long number":    func(n int) string { return "args.amount == " + strings.Repeat("1", n) },
	"long exponent":  func(n int) string { return "args.amount == 1e" + strings.Repeat("1", n) },
	"spaces":         func(n int) string { return strings.Repeat(" ", n) + "true" },
	"newlines":       func(n int) string { return strings.Repeat("\n", n) + "true" },
	"comments":       func(n int) string { return strings.Repeat("// c\n", n) + "true" },
	"regex nesting": func(n int) string {
		return "args.status.matches('" + strings.Repeat("(", n) + strings.Repeat(")", n) + "')"
	},
	"regex repeats":   func(n int) string { return "args.status.matches('(a{1,1000}){1," + fmt.Sprint(n) + "}')" },
	"regex stars":     func(n int) string { return "args.status.matches('" + strings.Repeat("a*", n) + "')" },
	"stray openers":   func(n int) string { return strings.Repeat("(", n) },
	"stray closers":   func(n int) string { return strings.Repeat(")", n) },
	"stray dots":      func(n int) string { return strings.Repeat(".", n) },
	"stray commas":    func(n int) string { return strings.Repeat(",", n) },
	"stray operators": func(n int) string { return strings.Repeat("< ", n) },
	"stray words":     func(n int) string { return strings.Repeat("in ", n) },
	"stray questions": func(n int) string { return strings.Repeat("? ", n) },
	"backticks":       func(n int) string { return "args.`" + strings.Repeat("a", n) + "` == 1" },
	"bytes":           func(n int) string { return strings.Repeat("\xff", n) },
	"accents":         func(n int) string { return "args.status == '" + strings.Repeat("é", n) + "' && args.x" },
	"unknown names":   func(n int) string { return strings.Repeat("nope == 1 || ", n) + "true" },
	"unknown args":    func(n int) string { return strings.Repeat("args.nope == 1 || ", n) + "true" },
}

func nested(macro string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%sx%d, ", macro, i)
	}
	return b.String() + "true" + strings.Repeat(")", n)
}

func doubling(n int) string {
	var b strings.Builder
	b.WriteString("cel.bind(a0, args.note, ")
	for i := range n {
		fmt.Fprintf(&b, "cel.bind(a%d, a%d + a%d, ", i+1, i, i)
	}
	fmt.Fprintf(&b, "a%d == ''", n)
	return b.String() + strings.Repeat(")", n+1)
}

func TestCompile_constructSizes(t *testing.T) {
	e, err := NewEnv(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	largest := 1_000_000
	if testing.Short() {
		largest = 10_000
	}
	for name, build := range constructs {
		t.Run(name, func(t *testing.T) {
			for n := 10; n <= largest; n *= 10 {
				body := build(n)
				text := diag.WholeFile("f.cel", body)
				t0 := time.Now()
				p, diags := e.Compile(Source{Name: "p", Deny: &text, Reason: "no"}, Tool{Name: "t", Schema: json.RawMessage(refundSchema)})
				if d := time.Since(t0); d > 10*time.Millisecond {
					t.Logf("%d: %v %v", n, d, diags)
				}
				if (p == nil) != diags.HasErrors() {
					t.Fatalf("%d times: policy %v beside %v", n, p, diags)
				}
				if p != nil {
					p.Decide(context.Background(), Input{})
					p.Partial(context.Background(), Input{})
				}
			}
		})
	}
}

// generator generates random well-typed expressions for the refund tool.
type generator struct{ *rand.Rand }

func (g generator) pick(choices ...string) string { return choices[g.IntN(len(choices))] }

func (g generator) boolean(depth int) string {
	if depth <= 0 {
		return g.pick(
			"true", "false", "args.any", "has(args.note)", "has(args.nope)", "has(args.filters.deep)", "has(principal.claims.tenant)",
			"has(principal.claims.nope)", "principal.claims.nope == 'x'", "principal.claims.flag", "tool.read_only", "tool.destructive",
			"agent.verified", "agent.model == null", "args.maybe == null", "vars.stage == 'prod'", "principal.claims.tenant", "args.any.x",
		)
	}
	a, b := g.boolean(depth-1), g.boolean(depth-1)
	switch g.IntN(14) {
	case 0, 1, 2:
		return fmt.Sprintf("(%s && %s)", a, b)
	case 3, 4, 5:
		return fmt.Sprintf("(%s || %s)", a, b)
	case 6:
		return "!" + a
	case 7:
		return fmt.Sprintf("(%s ? %s : %s)", g.boolean(depth-2), a, b)
	case 8:
		return fmt.Sprintf("(%s %s %s)", g.number(depth-1), g.pick("<", "<=", "==", "!=", ">"), g.number(depth-1))
	case 9:
		return fmt.Sprintf("(%s %s %s)", g.text(depth-1), g.pick("==", "!=", "<"), g.text(depth-1))
	case 10:
		x := fmt.Sprintf("x%d", depth)
		body := g.pick(fmt.Sprintf("%s == %s", x, g.text(depth-2)), g.boolean(depth-2))
		return fmt.Sprintf("%s.%s(%s, %s)", g.list(depth-1), g.pick("exists", "all", "exists_one"), x, body)
	case 11:
		return fmt.Sprintf("(%s in %s)", g.text(depth-1), g.list(depth-1))
	case 12:
		return fmt.Sprintf("%s.%s(%s)", g.text(depth-1), g.pick("startsWith", "contains", "endsWith"), g.text(0))
	default:
		return fmt.Sprintf("(size(%s) %s %d)", g.list(depth-1), g.pick("<", "==", ">="), g.IntN(4))
	}
}

func (g generator) number(depth int) string {
	if depth <= 0 {
		return g.pick("args.amount", "args.cents", "args.count", "args.quota", "1", "2.5", "0", "vars.retries", "vars.ceiling",
			"principal.claims.limit", "args.any", "call.depth", "args.filters.deep.x", "principal.claims.nope")
	}
	if g.IntN(4) == 0 {
		return fmt.Sprintf("(%s ? %s : %s)", g.boolean(depth-2), g.number(0), g.number(0))
	}
	return fmt.Sprintf("(%s %s %s)", g.number(depth-1), g.pick("+", "-", "*", "/"), g.number(depth-1))
}

func (g generator) text(depth int) string {
	if depth <= 0 {
		return g.pick("args.status", "args.note", "args.filters.status", "'active'", "'crm'", "''", "principal.id", "vars.stage", "tool.name", "args.labels.a")
	}
	switch g.IntN(4) {
	case 0:
		return fmt.Sprintf("(%s + %s)", g.text(0), g.text(0))
	case 1:
		return fmt.Sprintf("(%s ? %s : %s)", g.boolean(depth-2), g.text(0), g.text(0))
	case 2:
		return fmt.Sprintf("%s[%d]", g.list(depth-1), g.IntN(3))
	default:
		return g.text(0) + ".lowerAscii()"
	}
}

func (g generator) list(depth int) string {
	if depth <= 0 {
		return g.pick("args.tags", "principal.scopes", "principal.groups", "vars.hosts", "['active', 'crm']", "[args.status, 'x']")
	}
	switch g.IntN(3) {
	case 0:
		return fmt.Sprintf("(%s + %s)", g.list(0), g.list(0))
	case 1:
		return fmt.Sprintf("%s.filter(f%d, f%d != %s)", g.list(0), depth, depth, g.text(0))
	default:
		return fmt.Sprintf("%s.map(m%d, %s)", g.list(0), depth, g.text(depth-1))
	}
}

// args returns random arguments, as validated.
func (g generator) args() map[string]any {
	words := []string{"", "active", "suspended", "crm", "x", "prod"}
	word := func() any { return words[g.IntN(len(words))] }
	args := map[string]any{
		"amount": float64(g.IntN(5)) / 2, "cents": int64(g.IntN(4)), "count": int64(g.IntN(4)), "status": word(),
		"maybe": nil, "quota": nil, "tags": []any{}, "amounts": []any{}, "labels": map[string]any{}, "content-type": "text",
		"any":     []any{nil, true, false, 1.0, "x", map[string]any{"x": true}, []any{"a"}}[g.IntN(7)],
		"filters": map[string]any{"status": word()},
	}
	for range g.IntN(3) {
		args["tags"] = append(args["tags"].([]any), word())
		args["amounts"] = append(args["amounts"].([]any), float64(g.IntN(3)))
	}
	maybe := map[string]func(){
		"note": func() { args["note"] = word() }, "maybe": func() { args["maybe"] = word() }, "quota": func() { args["quota"] = 2.0 },
		"a":    func() { args["labels"] = map[string]any{"a": word()} },
		"deep": func() { args["filters"].(map[string]any)["deep"] = map[string]any{"x": int64(g.IntN(3))} },
	}
	for _, name := range strings.Fields("note maybe quota a deep") {
		if g.IntN(2) == 0 {
			maybe[name]()
		}
	}
	return args
}

// caller changes the parts of the input that are known before the arguments.
func (g generator) caller(in *Input) {
	in.Tool.ReadOnly, in.Tool.Destructive = g.IntN(2) == 0, g.IntN(2) == 0
	in.Caller.Agent.Verified = g.IntN(2) == 0
	in.Caller.Principal.Scopes = []string{"crm", "active", "admin"}[:g.IntN(4)]
	in.Caller.Principal.Claims = map[string]any{"limit": float64(g.IntN(3)), "tenant": "acme", "flag": g.IntN(2) == 0}
}

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

func benchPolicy(tb testing.TB, allow string) (*Policy, Input) {
	e, err := NewEnv(nil, nil)
	if err != nil {
		tb.Fatal(err)
	}
	txt := diag.WholeFile("f.cel", allow)
	p, ds := e.Compile(Source{Name: "p", Allow: &txt, Reason: "no"}, Tool{Name: "t", Schema: json.RawMessage(refundSchema)})
	if p == nil {
		tb.Fatal(ds)
	}
	return p, Input{
		Caller: identity.Caller{Principal: identity.Principal{ID: "p", Scopes: []string{"crm:read", "admin"}, Claims: map[string]any{}}},
		Args:   map[string]any{"cents": int64(700), "amount": 5.0, "status": "active", "tags": []any{"new", "vip", "internal"}}, Now: time.Unix(0, 0),
	}
}

func BenchmarkDecide(b *testing.B) {
	for _, s := range []string{"args.cents > 5 && principal.scopes.exists(s, s == 'admin')", "args.cents > 5", "'admin' in principal.scopes", "args.amount <= 5000 && args.status == 'active'", "args.status.matches('^a')",
		"args.status in ['active', 'x']", "args.tags.exists(t, t == 'none')", "args.tags.exists(t, t == principal.id)", "size(args.tags.filter(t, t == 'a')) == 0 || true", "now > timestamp('2020-01-01T00:00:00Z')"} {
		p, in := benchPolicy(b, s)
		b.Run(s, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p.Decide(context.Background(), in)
			}
		})
		b.Run("partial "+s, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p.Partial(context.Background(), in)
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	schema := func(i int) json.RawMessage {
		return json.RawMessage(fmt.Sprintf(`{"type":"object","additionalProperties":false,"properties":{"a%d":{"type":"string"},"b":{"type":"integer"},"c":{"type":"number"}}}`, i))
	}
	for _, s := range []string{"!tool.read_only && principal.scopes.exists(s, s == 'admin')", "!has(args.amount) || args.amount <= 5000 || principal.scopes.exists(s, s == 'admin')"} {
		b.Run(s, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				e, err := NewEnv(nil, nil)
				if err != nil {
					b.Fatal(err)
				}
				txt := diag.WholeFile("f.cel", s)
				src := Source{Name: "p", Allow: &txt, Reason: "no"}
				for i := range 1000 {
					if p, ds := e.Compile(src, Tool{Name: "t", Schema: schema(i)}); p == nil {
						b.Fatal(ds)
					}
				}
			}
		})
	}
	b.Run("NewEnv", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := NewEnv(nil, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// The hot path stays within its allocation budget: it does not copy the input.
func TestAllocations(t *testing.T) {
	if cputest.Race() {
		t.Skip("pools drop things under the race detector")
	}
	tests := []struct {
		expr            string
		decide, partial float64
	}{
		{"principal.id == 'ada'", 1, 1},
		{"'admin' in principal.scopes", 0, 0},
		{"tool.read_only || tool.idempotent", 0, 0},
		{"args.cents > 5", 1, 0},
		{"args.status == 'active'", 1, 0},
		{"args.amount <= 5000 && args.status in ['active', 'suspended']", 3, 3},
		{"args.cents > 5 && principal.scopes.exists(s, s == 'admin')", 4, 3},
		{"has(args.note) && args.note == 'x'", 0, 3},
		{"vars.stage == 'prod' && !tool.read_only", 1, 1},
		{"principal.claims.tenant == 'acme'", 1, 1},
		{"args.tags.exists(t, t == 'none')", 6, 0},
		{"args.tags.exists(t, t == principal.id)", 10, 0},
		{"agent.metadata.team == 'crm' && principal.id != ''", 3, 3},
	}
	e := newEnv(t)
	in := refundInput()
	for _, tt := range tests {
		t.Run(tt.expr, func(t *testing.T) {
			p := mustCompile(t, e, denying(tt.expr))
			if got := testing.AllocsPerRun(200, func() { p.Decide(t.Context(), in) }); got > tt.decide {
				t.Errorf("Decide allocates %v times, budget %v", got, tt.decide)
			}
			if got := testing.AllocsPerRun(200, func() { p.Partial(t.Context(), in) }); got > tt.partial {
				t.Errorf("Partial allocates %v times, budget %v", got, tt.partial)
			}
		})
	}
}
