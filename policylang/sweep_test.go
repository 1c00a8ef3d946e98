package policylang

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcpd/mcpd/diag"
)

// constructs builds one expression out of n of each thing that CEL can nest or
// repeat.
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

func TestEveryConstructOfAnySizeIsCompiledOrRefused(t *testing.T) {
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
