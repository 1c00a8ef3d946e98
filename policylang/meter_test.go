package policylang

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mcpd/mcpd/internal/cputime"
	"github.com/mcpd/mcpd/internal/cputime/cputest"
)

// nestedSchema has lists in a list, of which the outer alone is bounded.
const nestedSchema = `{"type":"object","additionalProperties":false,"required":["rows"],"properties":{
	"rows":{"type":"array","maxItems":5,"items":{"type":"object","additionalProperties":false,"required":["tags","allowed"],"properties":{
		"tags":{"type":"array","items":{"type":"integer"}},"allowed":{"type":"array","items":{"type":"integer"}}}}}}}`

// nestedRows is data of that shape in which nothing that is looked for is there.
func nestedRows(n int) map[string]any {
	tags, allowed := make([]any, n), make([]any, n)
	for i := range n {
		tags[i], allowed[i] = int64(1), int64(2)
	}
	return map[string]any{"rows": []any{map[string]any{"tags": tags, "allowed": allowed}}}
}

func TestListsInListsHeedTheEndOfTheirCall(t *testing.T) {
	tool := Tool{Name: "x", Schema: json.RawMessage(nestedSchema), Result: json.RawMessage(nestedSchema)}
	for _, root := range []string{"args", "result"} {
		t.Run(root, func(t *testing.T) {
			src := denying(root + ".rows.exists(r, r.tags.exists(a, !r.allowed.exists(b, a == b)))")
			src.OnResult = root == "result"
			p, diags := newEnv(t).Compile(src, tool)
			if p == nil {
				t.Fatal(diags)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			data := nestedRows(2000)
			d, spent := metering(ctx, p, Input{Args: data, Result: data})
			if d.Outcome != Deny || d.Err == nil || !strings.Contains(d.Err.Error(), "longer than") {
				t.Errorf("got %+v", d)
			}
			if spent > 2*lookEvery {
				t.Errorf("it went on for %d units", spent)
			}
		})
	}
}

// metering is Decide that tells what was spent.
func metering(ctx context.Context, p *Policy, in Input) (Decision, int64) {
	r := p.env.start(ctx, in)
	defer p.env.stop(r)
	d := p.decide(r)
	return d, allowance - r.meter.left
}

// sizedSchema bounds nothing.
const sizedSchema = `{"type":"object","additionalProperties":false,"required":["text","part","list","other","map","deep","deeper","any"],"properties":{
	"text":{"type":"string"},"part":{"type":"string"},
	"list":{"type":"array","items":{"type":"string"}},"other":{"type":"array","items":{"type":"string"}},
	"map":{"type":"object","additionalProperties":{"type":"string"}},
	"deep":{"type":"array","items":{"type":"array","items":{"type":"integer"}}},
	"deeper":{"type":"array","maxItems":9,"items":{"type":"array","items":{"type":"integer"}}},
	"short":{"type":"array","maxItems":100,"items":{"type":"string"}},"any":{}}}`

// sized is data of n elements or bytes each, of which no two are alike where that
// costs the most.
func sized(n int) map[string]any {
	list, other, inner := make([]any, n), make([]any, n), make([]any, n)
	pairs := make(map[string]any, n)
	text := strings.Repeat("a", n)
	for i := range n {
		key := text[:min(n, 8)] + string(rune('b'+i%7)) + time.Duration(i).String()
		list[i], other[i], inner[i] = key, key+"!", int64(i)
		pairs[key] = key
	}
	short := list[:min(n, 100)]
	return map[string]any{
		"text": text, "part": strings.Repeat("a", n/2) + "b", "list": list, "other": other, "short": short, "map": pairs,
		"deep": []any{inner, inner}, "deeper": []any{inner, inner}, "any": []any{inner, inner, text},
	}
}

// sizedConstructs are expressions of which each reads data in another way.
var sizedConstructs = []string{
	"args.text.matches('(a|aa|a?)+b$')",
	"args.text.matches('(x+x+)+y')",
	"args.short.exists(s, s.matches('(a*)*b') || args.text.matches('(a|b|c|d)*e'))",
	"args.text.contains(args.part)",
	"args.text.indexOf(args.part) == 7",
	"args.text.lastIndexOf(args.part) == 7",
	"args.text.lowerAscii() == 'x'",
	"args.text.upperAscii().trim() == 'x'",
	"args.text.substring(1) == 'x'",
	"args.text.charAt(1) == 'x'",
	"args.text.replace('a', 'bb') == 'x'",
	"args.text.split('a').size() == 3",
	"args.text + args.text + args.text == 'x'",
	"args.text < args.part",
	"size(args.text) == 3",
	"int(args.text) == 3",
	"double(args.text) == 3.0",
	"timestamp(args.text) == now",
	"duration(args.text) == duration('1s')",
	"bytes(args.text) == b'x'",
	"isIP(args.text)",
	"args.map[args.text] == 'x'",
	"args.text in args.map",
	"args.list.join(', ') == 'x'",
	"args.list.exists(x, x == 'x')",
	"args.list.all(x, x != 'x' && x.size() > 1 && !x.contains('q'))",
	"args.list.exists_one(x, x.startsWith('q'))",
	"args.list.map(x, x + 'b').filter(x, x == 'y').size() == 3",
	"args.list.filter(x, x in args.short).size() == 3",
	"args.list.slice(0, 5).size() == 5",
	"args.short.exists(s, args.list.exists(x, x == s + 'b'))",
	"args.short.exists(s, args.map.exists(k, k == s + 'b'))",
	"args.short.exists(s, size(args.text) == size(s))",
	"args.short.exists(s, args.text + s == args.text)",
	"args.short.exists(s, {args.text: 1, s: 2} == {args.part: 1})",
	"args.short.exists(s, s in args.other)",
	"sets.contains(args.short, args.list)",
	"sets.intersects(args.short, args.other)",
	"sets.equivalent(args.short, args.short)",
	"args.list == args.list + ['b']",
	"args.list + args.list == args.list",
	"args.deep == args.any",
	"args.deep in [args.any, args.deep]",
	"args.any in args.deep",
	"args.deeper.exists(a, args.deeper.exists(b, a == b && !(a == b)))",
	"args.deeper.exists(a, a.exists(x, args.deeper.exists(b, x in b && x == -1)))",
	"args.deeper.exists(a, a.exists(x, a.exists(y, x == y + 1000000000)))",
	"args.any.exists(x, x == args.any)",
	"args.map == {'a': 'b'}",
	"args.map.exists(k, args.map[k] == 'x')",
	"args.map.all(k, k in args.map)",
	"cel.bind(twice, args.list + args.list, twice.exists(x, x == 'x'))",
}

// TestNoConstructGoesOnBeyondItsAllowance sweeps the sizes of what each construct
// reads. Those that the estimate refuses are no danger.
func TestNoConstructGoesOnBeyondItsAllowance(t *testing.T) {
	e := newEnv(t)
	tool := Tool{Name: "x", Schema: json.RawMessage(sizedSchema)}
	sizes := []int{100, 20_000}
	switch {
	case os.Getenv("MCPD_LONG") != "":
		sizes = []int{10, 100, 1_000, 10_000, 100_000}
	case testing.Short(), raceEnabled:
		sizes = []int{100}
	}
	for _, n := range sizes {
		in := Input{Args: sized(n), Now: time.Unix(0, 0)}
		for _, expr := range sizedConstructs {
			p, diags := e.Compile(denying(expr), tool)
			if p == nil {
				if diags[0].Code != codeCost {
					t.Fatalf("%s: %v", expr, diags)
				}
				continue
			}
			turn := func() time.Duration {
				began := cputime.Used()
				metering(t.Context(), p, in)
				return cputime.Used() - began
			}
			if !cputest.Within(interruptAfter+interruptAfter/2, turn) {
				t.Errorf("%d: %s takes %v of the processor", n, expr, turn())
			}
		}
	}
}

// TestWhatIsLightIsShortWithTheLargestData gives expressions that nothing interrupts
// all that a request can hold.
func TestWhatIsLightIsShortWithTheLargestData(t *testing.T) {
	e := newEnv(t)
	args := sized(requestTokens)
	args["text"], args["part"] = strings.Repeat("a", requestBytes), strings.Repeat("a", requestBytes/2)+"b"
	alike := make([]any, 100)
	for i := range alike {
		alike[i] = strings.Repeat("a", requestBytes/len(alike)) + string(rune('a'+i%26))
	}
	args["short"] = alike
	facts := make([]string, factItems)
	in := Input{Args: args, Now: time.Unix(0, 0)}
	in.Caller.Principal.Scopes, in.Caller.Principal.ID = facts, strings.Repeat("a", factBytes)
	light := 0
	for _, expr := range append([]string{
		"principal.scopes.exists(s, s == 'admin')", "'admin' in principal.scopes", "principal.id.lowerAscii() == 'x'",
		"args.text.contains('secret')", "args.text.startsWith(args.part)", "args.text == args.part + 'a'", "'x' in args.list", "args.text in args.list",
		"args.short.all(s, s != 'x' && size(args.list) > 1)", "sets.contains(args.short, args.short)", "args.short.exists(s, s in args.short)",
		"isIP(principal.id)", "principal.id.matches('^(a|b)+$')", "args.short.exists(a, args.short.exists(b, a == b + 'x'))",
	}, sizedConstructs...) {
		p, _ := e.Compile(denying(expr), Tool{Name: "x", Schema: json.RawMessage(sizedSchema)})
		if p == nil || p.verdict.heavy {
			continue
		}
		light++
		turn := func() time.Duration {
			began := cputime.Used()
			p.Decide(t.Context(), in)
			return cputime.Used() - began
		}
		if !cputest.Within(interruptAfter/4, turn) {
			t.Errorf("%s takes %v of the processor", expr, turn())
		}
	}
	if light < 10 {
		t.Errorf("only %d expressions are light", light)
	}
}
