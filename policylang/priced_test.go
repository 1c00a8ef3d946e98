package policylang

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// TestMeteringChangesNoAnswer evaluates each expression metered and not, with
// arguments and without.
func TestMeteringChangesNoAnswer(t *testing.T) {
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
			r.meter.began = time.Now().Add(time.Hour) // however slow the machine is today, only work counts
			want, got := answerOf(plain, r), answerOf(metered, r)
			if want != got {
				t.Errorf("%d: %s is %s metered, and %s", n, expr, got, want)
			}
			r.unknown = PartArgs
			if want, got := answerOf(plain, r), answerOf(metered, r); want != got {
				t.Errorf("%s of unknown arguments is %s metered, and %s", expr, got, want)
			}
			e.stop(r)
		}
	}
}

// TestPricer_charges lists what evaluates without a meter: what compares constants, or
// once what a request says of its caller.
func TestPricer_charges(t *testing.T) {
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
		"principal.scopes.exists(s, s == 'admin')":     true,
		"args.status in args.tags":                     true,
		"args.tags.exists(t, t in principal.scopes)":   true,
		"args.status.matches('^a')":                    true,
		"principal.id + principal.kind == 'ada oauth'": true,
	} {
		if got := charges(t, refundSchema, expr); got != want {
			t.Errorf("%s: charged %v", expr, got)
		}
	}
}

// charges reports whether anything in an expression is paid for.
func charges(t *testing.T, schema, expr string) bool {
	t.Helper()
	e := newEnv(t)
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

// answerOf puts a value or an error in the words that policies have for it.
func answerOf(program cel.Program, r *run) string {
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

// TestEveryCallThatGrowsHasAPrice keeps new functions of CEL from being free.
func TestEveryCallThatGrowsHasAPrice(t *testing.T) {
	text, list := types.String(strings.Repeat("a", 1000)), newEnv(t).base.CELTypeAdapter().NativeToValue(make([]any, 1000))
	for name := range newEnv(t).base.Functions() {
		if price := priceOf(name, []ref.Val{text, text, text}, allowance); price < priceCall+1000/compareBytes {
			t.Errorf("%s of texts costs %d", name, price)
		}
		if price := priceOf(name, []ref.Val{list, list, list}, allowance); price < priceCall {
			t.Errorf("%s of lists costs %d", name, price)
		}
	}
}

// TestSearchesFindWhatCELsFind compares with a search of each place by itself.
func TestSearchesFindWhatCELsFind(t *testing.T) {
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

// TestLongTextsAreMatchedLikeShortOnes feeds texts to the matcher both ways.
func TestLongTextsAreMatchedLikeShortOnes(t *testing.T) {
	var m meter
	for _, written := range []string{`^a+$`, `b$`, `\bword\b`, `(?s)a.*z`, `[^a]`, `\xff`, `é`, `^$`, `(?m)^x$`, `a{3,5}z|q`} {
		p, err := newPattern(written)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"", "aaaa", "aaab", "a word here", "a\nz", "é\xffé", "y\nx\ny", "aaaaz", "password"} {
			m.fill(t.Context())
			if got, want := p.compiled.MatchReader(&slowReader{rest: text, meter: &m, each: 1}), p.match(text, &m); got != want {
				t.Errorf("%s on %q: %v by runes, %v at once", written, text, got, want)
			}
		}
	}
}

func TestRegularExpressionsMayRepeatTheirParts(t *testing.T) {
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
		t.Errorf("a pattern that is far too large: %+v", d)
	}
	_, diags := e.Compile(denying("principal.id.matches('"+strings.Repeat("(abcdefghijk){1000}", 2)+"')"), refund())
	if !diags.HasErrors() || diags[0].Code != codeType {
		t.Errorf("a pattern that is far too large, written out: %v", diags)
	}
}
