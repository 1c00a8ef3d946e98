package policylang

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/mcpd/mcpd/internal/process/cputest"
	"github.com/mcpd/mcpd/internal/process/osproc"
)

// nestedSchema has lists in a list. Only the outer list is bounded.
const nestedSchema = `{"type":"object","additionalProperties":false,"required":["rows"],"properties":{
	"rows":{"type":"array","maxItems":5,"items":{"type":"object","additionalProperties":false,"required":["tags","allowed"],"properties":{
		"tags":{"type":"array","items":{"type":"integer"}},"allowed":{"type":"array","items":{"type":"integer"}}}}}}}`

// nestedRows returns data for nestedSchema without the values that expressions search for.
func nestedRows(n int) map[string]any {
	tags, allowed := make([]any, n), make([]any, n)
	for i := range n {
		tags[i], allowed[i] = int64(1), int64(2)
	}
	return map[string]any{"rows": []any{map[string]any{"tags": tags, "allowed": allowed}}}
}

func TestDecide_nestedListsStopWithContext(t *testing.T) {
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
			if spent > 2*checkInterval {
				t.Errorf("it took %d units", spent)
			}
		})
	}
}

// metering is Decide that also returns the units spent.
func metering(ctx context.Context, p *Policy, in Input) (Decision, int64) {
	r := p.env.start(ctx, in)
	defer p.env.stop(r)
	d := p.decide(r)
	return d, maxUnits - r.meter.remaining
}

// sizedSchema has no bounds.
const sizedSchema = `{"type":"object","additionalProperties":false,"required":["text","part","list","other","map","deep","deeper","any"],"properties":{
	"text":{"type":"string"},"part":{"type":"string"},
	"list":{"type":"array","items":{"type":"string"}},"other":{"type":"array","items":{"type":"string"}},
	"map":{"type":"object","additionalProperties":{"type":"string"}},
	"deep":{"type":"array","items":{"type":"array","items":{"type":"integer"}}},
	"deeper":{"type":"array","maxItems":9,"items":{"type":"array","items":{"type":"integer"}}},
	"short":{"type":"array","maxItems":100,"items":{"type":"string"}},"any":{}}}`

// sized returns data of n elements or bytes each. The elements differ where equal ones would be
// cheaper.
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

// sizedConstructs are expressions that each read data in a different way.
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
	"args.short.all(s, !args.map.all(k, k == ''))", // sorts the keys repeatedly and reads only one
	"cel.bind(twice, args.list + args.list, twice.exists(x, x == 'x'))",
}

// Each construct reads data of increasing sizes. Constructs that the estimate rejects are
// skipped.
func TestMeter_boundsEachConstruct(t *testing.T) {
	e := newEnv(t)
	tool := Tool{Name: "x", Schema: json.RawMessage(sizedSchema)}
	sizes := []int{100, 20_000}
	switch {
	case os.Getenv("MCPD_LONG") != "":
		sizes = []int{10, 100, 1_000, 10_000, 100_000}
	case testing.Short(), cputest.Race():
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
				began := osproc.CPUTime()
				metering(t.Context(), p, in)
				return osproc.CPUTime() - began
			}
			if !cputest.Within(interruptAfter+interruptAfter/2, turn) {
				t.Errorf("%d: %s takes %v of the processor", n, expr, turn())
			}
		}
	}
}

// Each construct reads as much data as a request can hold. Free constructs must be fast.
func TestDecide_largestData(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: one goroutine works here alone")
	}
	e := newEnv(t)
	args := sized(requestTokens)
	args["text"], args["part"] = strings.Repeat("a", requestBytes), strings.Repeat("a", requestBytes/2)+"b"
	alike := make([]any, 100)
	for i := range alike {
		alike[i] = strings.Repeat("a", requestBytes/len(alike)) + string(rune('a'+i%26))
	}
	args["short"] = alike
	const headers = 64 << 10
	in := Input{Args: args, Now: time.Unix(0, 0)}
	in.Caller.Principal.Scopes, in.Caller.Principal.ID = make([]string, headers/2), strings.Repeat("a", headers)
	free := 0
	for _, expr := range append([]string{
		"principal.scopes.exists(s, s == 'admin')", "'admin' in principal.scopes", "principal.id.lowerAscii() == 'x'",
		"args.text.contains('secret')", "args.text.startsWith(args.part)", "args.text == args.part + 'a'", "'x' in args.list", "args.text in args.list",
		"args.short.all(s, s != 'x' && size(args.list) > 1)", "sets.contains(args.short, args.short)", "args.short.exists(s, s in args.short)",
		"isIP(principal.id)", "principal.id.matches('^(a|b)+$')", "args.short.exists(a, args.short.exists(b, a == b + 'x'))",
		"principal.scopes == principal.scopes", "principal.id == args.text", "args.text in principal.scopes", "principal.id.startsWith(principal.id)",
		strings.Repeat("'x' in principal.scopes || args.any in principal.scopes || ", 40) + "'admin' in principal.scopes",
	}, sizedConstructs...) {
		p, _ := e.Compile(denying(expr), Tool{Name: "x", Schema: json.RawMessage(sizedSchema)})
		if p == nil {
			continue
		}
		bound := interruptAfter + interruptAfter/2
		if !charges(t, e, sizedSchema, expr) {
			free++
			bound = interruptAfter / 4
		}
		turn := func() time.Duration {
			began := osproc.CPUTime()
			p.Decide(t.Context(), in)
			return osproc.CPUTime() - began
		}
		if !cputest.Within(bound, turn) {
			t.Errorf("%s takes %v of the processor", expr, turn())
		}
	}
	if free < 5 {
		t.Errorf("only %d expressions are free", free)
	}
}

// Each construct reads a result far larger than its schema allows, because policies run before
// validation.
func TestDecide_largestResult(t *testing.T) {
	if testing.Short() || cputest.Race() {
		t.Skip("slow: judges large data")
	}
	e := newEnv(t)
	result := sized(requestTokens)
	result["text"], result["part"] = strings.Repeat("a", resultBytes/2), strings.Repeat("a", resultBytes/4)+"b"
	result["short"], result["deeper"] = result["list"], result["any"]
	for _, expr := range sizedConstructs {
		expr = strings.ReplaceAll(expr, "args.", "result.")
		p, _ := e.Compile(judging(expr), Tool{Name: "x", Schema: json.RawMessage(sizedSchema), Result: json.RawMessage(sizedSchema)})
		if p == nil {
			continue
		}
		turn := func() time.Duration {
			began := osproc.CPUTime()
			p.Decide(t.Context(), Input{Result: result, Now: time.Unix(0, 0)})
			return osproc.CPUTime() - began
		}
		if !cputest.Within(interruptAfter+interruptAfter/2, turn) {
			t.Errorf("%s takes %v of the processor", expr, turn())
		}
	}
}

// Each expression has the same result with and without a meter, with known and unknown
// arguments.
func TestMeter_sameResult(t *testing.T) {
	e := newEnv(t)
	s, err := e.scopeFor(schemas{args: sizedSchema})
	if err != nil {
		t.Fatal(err)
	}
	odd := []string{
		"args.any == [1]", "args.any != args.any", "dyn(args.text).contains(dyn(1))", "dyn(1).contains('x')", "dyn(args.list) + dyn(args.text) == 1",
		"dyn(args.text).getHours() == 1", "dyn(now).getHours() == 0", "args.text.matches(args.text + '(')", "args.text.matches(args.part)",
		"dyn(args.text) in dyn(args.text)", "args.map['nope'] == 'x'", "args.any[args.text] == 1", "args.any[?args.text].hasValue()",
		"args.list.exists(x, int(x) == 1) || args.text == 'aaa'", "args.text.substring(5000) == 'x'", "args.text.indexOf('a', 3) == 3",
		"math.greatest(args.any) == 1", "args.map.?nope.orValue('x') == args.text", "args.any[args.list[0] + 'b'].map(k, k) == []", "[args.map, args.map][args.list.size() - 1].exists(k, args.map[k] == k)", "{'a': args.list}[args.text].exists(x, x == 'x')", "args.list.map(x, {x: args.text}[x]).size() == 2", "type(args.any) == list", "string(args.any) == 'x'",
		"optional.of(args.text) == optional.of(args.part)", "{args.text: 1, args.part: 2}[args.text] == 1", "args.any != null",
	}
	for _, expr := range append(odd, sizedConstructs...) {
		compiled, issues := s.cel.Compile(expr)
		if issues.Err() != nil {
			t.Errorf("%s: %v", expr, issues.Err())
			continue
		}
		optimize := cel.EvalOptions(cel.OptOptimize)
		plain, err := s.cel.Program(compiled, optimize)
		if err != nil {
			t.Fatal(err)
		}
		metered, err := s.cel.Program(compiled, optimize, cel.CustomDecoratorV2(newPricer(compiled.NativeRep(), e.functions).decorate))
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{1, 7, 60} {
			r := e.start(t.Context(), Input{Args: sized(n), Now: time.Unix(0, 0)})
			r.meter.started = time.Now().Add(time.Hour) // only work counts, not the speed of this machine
			want, got := answerOf(plain, r), answerOf(metered, r)
			if want != got {
				t.Errorf("%d: %s is %s with a meter, and %s without", n, expr, got, want)
			}
			r.unknown = PartArgs
			if want, got := answerOf(plain, r), answerOf(metered, r); want != got {
				t.Errorf("%s with unknown arguments is %s with a meter, and %s without", expr, got, want)
			}
			e.stop(r)
		}
	}
}

// Expressions without charges: comparisons of constants, and single reads of the caller's data.
func TestPricer_charges(t *testing.T) {
	e := newEnv(t)
	for expr, want := range map[string]bool{
		"args.cents > 5 && tool.read_only":             false,
		"args.status in ['active', 'suspended']":       false,
		"has(args.note) && args.note == 'x'":           false,
		"'admin' in principal.scopes":                  false,
		"agent.metadata.team == principal.id":          false,
		"principal.id == args.status":                  false,
		"{'a': args.note} == {'a': 'b'}":               true,
		"args.note == args.status":                     true,
		"args.note.contains('secret')":                 true,
		"principal.id.lowerAscii() == 'ada'":           true,
		"principal.scopes.exists(s, s == 'admin')":     false,
		"principal.scopes.exists(s, s == args.status)": true,
		"principal.scopes.exists(s, s == 'admin') || principal.groups.exists(g, g == 'admin')": true,
		"principal.scopes.exists(s, principal.groups.exists(g, g == 'admin'))":                 true,
		"principal.scopes.exists(s, args.labels[args.note] == 'admin')":                        true,
		"args.tags.exists(t, t == 'admin')":                                                    true,
		"args.status in args.tags":                                                             true,
		"args.tags.exists(t, t in principal.scopes)":                                           true,
		"args.status.matches('^a')":                                                            true,
		"principal.id + principal.kind == 'ada oauth'":                                         true,
	} {
		if got := charges(t, e, refundSchema, expr); got != want {
			t.Errorf("%s: charged %v", expr, got)
		}
	}
}

// charges reports whether an expression has any charge.
func charges(t *testing.T, e *Env, schema, expr string) bool {
	t.Helper()
	s, err := e.scopeFor(schemas{args: schema})
	if err != nil {
		t.Fatal(err)
	}
	checked, issues := s.cel.Compile(expr)
	if issues.Err() != nil {
		t.Fatalf("%s: %v", expr, issues.Err())
	}
	return newPricer(checked.NativeRep(), e.functions).charges()
}

// answerOf returns a value or an error as policies describe it.
func answerOf(program cel.Program, r *evaluation) string {
	value, _, err := program.Eval(r)
	switch {
	case err != nil:
		return problemWords(err.Error(), "")
	case types.IsUnknown(value):
		return "unknown"
	}
	text, _ := json.Marshal(value.Value())
	return string(text)
}

// Each growing function has a price, so that new functions of CEL are not free.
func TestPriceOf_growingCalls(t *testing.T) {
	text, list := types.String(strings.Repeat("a", 1000)), newEnv(t).base.CELTypeAdapter().NativeToValue(make([]any, 1000))
	for name := range newEnv(t).base.Functions() {
		if price := priceOf(name, []ref.Val{text, text, text}, maxUnits); price < priceCall+1000/compareBytes {
			t.Errorf("%s with texts costs %d", name, price)
		}
		if price := priceOf(name, []ref.Val{list, list, list}, maxUnits); price < priceCall {
			t.Errorf("%s with lists costs %d", name, price)
		}
	}
}

// The searches are compared with a search at each position.
func TestSearch_matchesCEL(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	word := func(n int) string {
		var b strings.Builder
		for range random.IntN(n) {
			b.WriteRune([]rune("abä€😀")[random.IntN(5)])
		}
		return b.String()
	}
	for range 20_000 {
		text, part := []rune(word(12)), []rune(word(4))
		from := random.IntN(len(text) + 1)
		first, last := -1, -1
		for i := range len(text) + 1 {
			if i+len(part) > len(text) || string(text[i:i+len(part)]) != string(part) {
				continue
			}
			if i >= from && first < 0 {
				first = i
			}
			if i <= from {
				last = i
			}
		}
		if got := index(string(text), string(part), from); got != first {
			t.Fatalf("index(%q, %q, %d) is %d, not %d", string(text), string(part), from, got, first)
		}
		if got := lastIndex(string(text), string(part), from); got != last {
			t.Fatalf("lastIndex(%q, %q, %d) is %d, not %d", string(text), string(part), from, got, last)
		}
	}
}

// Each text is matched in one step and rune by rune.
func TestPattern_matchByRunes(t *testing.T) {
	var m meter
	for _, written := range []string{`^a+$`, `b$`, `\bword\b`, `(?s)a.*z`, `[^a]`, `\xff`, `é`, `^$`, `(?m)^x$`, `a{3,5}z|q`} {
		p, err := newPattern(written)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"", "aaaa", "aaab", "a word here", "a\nz", "é\xffé", "y\nx\ny", "aaaaz", "password"} {
			m.reset(t.Context())
			if got, want := p.compiled.MatchReader(&meteredReader{rest: text, meter: &m, each: 1}), p.match(text, &m); got != want {
				t.Errorf("%s on %q: %v by runes, %v at once", written, text, got, want)
			}
		}
	}
}

func TestPattern_repeatedParts(t *testing.T) {
	e := newEnv(t)
	in := refundInput()
	in.Caller.Principal.ID, in.Args["status"] = "aaaa", "^a{3,5}$"
	for _, expr := range []string{"principal.id.matches('^a{3,5}$')", "principal.id.matches(args.status)"} {
		if d := mustCompile(t, e, denying(expr)).Decide(t.Context(), in); d.Outcome != Deny || d.Err != nil {
			t.Errorf("%s: %+v", expr, d)
		}
	}
	in.Args["status"] = "((a{100}){10}bcdefghij){1000}"
	if d := mustCompile(t, e, denying("principal.id.matches(args.status)")).Decide(t.Context(), in); d.Err == nil {
		t.Errorf("huge computed pattern: %+v", d)
	}
	_, diags := e.Compile(denying("principal.id.matches('"+strings.Repeat("(abcdefghijk){1000}", 2)+"')"), refund())
	if !diags.HasErrors() || diags[0].Code != codeType {
		t.Errorf("huge literal pattern: %v", diags)
	}
}
