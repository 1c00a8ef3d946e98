package policylang

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/cel-go/cel"

	"github.com/mcpd/mcpd/diag"
)

func TestCost_ordinaryPolicies(t *testing.T) {
	e := newEnv(t)
	for _, expr := range []string{
		"has(args.note) && args.note.contains('secret')",
		"has(args.note) && args.note.matches('^[a-z]+@example[.]com$')",
		"has(args.note) && args.note.lowerAscii().startsWith('http')",
		"has(args.note) && args.note.trim().replace(' ', '').size() > 100",
		"has(args.note) && args.note == principal.id",
		"args.tags.exists(t, t.startsWith('internal') || t in ['a', 'b'])",
		"args.tags.all(t, t in principal.scopes)",
		"principal.scopes.exists(s, principal.groups.exists(g, g == s))",
		"args.tags.join(', ').contains('x')",
		"sets.intersects(args.tags, principal.groups)",
		"args.labels.exists(k, args.labels[k] == 'x')",
		"principal.claims.roles.filter(r, r != 'x').size() > 0",
		"string(args.cents) + ' ' + principal.id == 'x'",
	} {
		if p, diags := e.Compile(denying(expr), refund()); p == nil {
			t.Errorf("%s: %v", expr, diags)
		}
	}
}

func TestCost_needsSchemaBound(t *testing.T) {
	e := newEnv(t)
	for _, expr := range []string{
		"args.tags.all(a, args.tags.all(b, a != b))",
		"has(args.note) && args.note.replace('', args.note).size() > 3",
		"has(args.note) && args.status.matches(args.note)",
		"has(args.note) && matches(args.status, args.note)",
		"has(args.note) && args.note.split('/').exists(p, p == '..')",
		"has(args.note) && args.tags.join(args.note).size() > 3",
		"has(args.note) && args.tags.map(t, t + args.note).map(t, t + t).exists(t, t.contains('x'))",
	} {
		p, diags := e.Compile(denying(expr), refund())
		if p != nil || diags[0].Code != codeCost {
			t.Errorf("%s is not rejected for its cost: %v", expr, diags)
		}
		if p, diags := e.Compile(denying(expr), smallRefund()); p == nil {
			t.Errorf("%s is rejected with bounds: %v", expr, diags)
		}
	}
}

func TestTypeWords(t *testing.T) {
	tests := map[string]string{
		"list(int)": "a list of integers", "map(string, list(string))": "a map", "map(string, string)": "a map of strings",
		"wrapper(string)": "a string or null", "map": "a map", "list": "a list", "@object7": "an object", "": "an object",
		"optional_type(int)": "an optional value", "net.IP": "an IP address", "google.protobuf.Timestamp": "a timestamp",
		"map(": "a map", ")": "an object", "wrapper": "an object or null",
	}
	for in, want := range tests {
		if got := typeWords(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	if got := typeWords(strings.Repeat("wrapper(", 5) + "int" + strings.Repeat(")", 5)); !strings.HasPrefix(got, "an integer or null") {
		t.Errorf("got %q", got)
	}
}

// cardSchema has optional members. MAX is replaced by the bound of each.
const cardSchema = `{"type":"object","additionalProperties":false,"properties":{
	"s":{"type":"string"MAX},"card":{"type":"string"MAX},
	"tags":{"type":"array"ITEMS,"items":{"type":"string"MAX}},
	"map":{"type":"object","additionalProperties":{"type":"string"MAX}},
	"inner":{"type":"object","additionalProperties":false,"properties":{"s":{"type":"string"MAX}}}}}`

func card(bounded bool) Tool {
	text, items := "", ""
	if bounded {
		text, items = `,"maxLength":10`, `,"maxItems":10`
	}
	return Tool{Name: "card", Schema: json.RawMessage(strings.NewReplacer("MAX", text, "ITEMS", items).Replace(cardSchema))}
}

// asPolicy returns a policy with the expression as condition, or as reason if it is a text.
func asPolicy(expr string) Source {
	if reason, ok := strings.CutPrefix(expr, "reason: "); ok {
		src := denying("args.?s.hasValue()")
		text := diag.NewText("policies.hcl", reason, diag.Pos{Line: 4, Column: 12, Byte: 90})
		src.ReasonExpr = &text
		return src
	}
	return denying(expr)
}

// Each expression with optional values costs as much as the same expression with has().
func TestCost_optionalValues(t *testing.T) {
	tests := map[string]string{
		`reason: "a " + args.?card.orValue("none")`:                        `reason: "a " + (has(args.card) ? args.card : "none")`,
		"args.?s.orValue('none').lowerAscii() == 'y'":                      "(has(args.s) ? args.s : 'none').lowerAscii() == 'y'",
		"args.?s.optMap(v, v.contains('x')).orValue(false)":                "has(args.s) ? args.s.contains('x') : false",
		"'x' + args.?s.or(optional.of('b')).value() == 'y'":                "'x' + (has(args.s) ? args.s : 'b') == 'y'",
		"principal.claims.?team.orValue('none').contains('ops')":           "has(principal.claims.team) && string(principal.claims.team).contains('ops')",
		"string(principal.claims.?team.orValue('none')).matches('^ops')":   "has(principal.claims.team) && string(principal.claims.team).matches('^ops')",
		"principal.claims.?team.orValue('none').matches('^ops')":           "(has(principal.claims.team) ? principal.claims.team : 'none').matches('^ops')",
		"args.?inner.s.orValue('').lowerAscii() == 'y'":                    "has(args.inner) && has(args.inner.s) && args.inner.s.lowerAscii() == 'y'",
		"args.?inner.?s.orValue('').trim() == 'y'":                         "has(args.inner) && has(args.inner.s) && args.inner.s.trim() == 'y'",
		"args.?map[?'k'].orValue('').contains('x')":                        "has(args.map) && 'k' in args.map && args.map['k'].contains('x')",
		"args.?map['k'].orValue('').contains('x')":                         "has(args.map) && 'k' in args.map && args.map['k'].contains('x')",
		"args.?tags[?0].orValue('').contains('x')":                         "has(args.tags) && size(args.tags) > 0 && args.tags[0].contains('x')",
		"args.?tags.orValue([]).exists(t, t.contains('x'))":                "has(args.tags) && args.tags.exists(t, t.contains('x'))",
		"args.?tags.orValue([])[?0].orValue('').matches('x+')":             "has(args.tags) && args.tags[0].matches('x+')",
		"args.?tags.optFlatMap(t, t.first()).orValue('').contains('x')":    "has(args.tags) && args.tags[0].contains('x')",
		"args.?tags.optFlatMap(t, t.last()).orValue('').matches('x+')":     "has(args.tags) && args.tags[0].matches('x+')",
		"args.?tags.optMap(t, t.join(',')).orValue('').contains('x')":      "has(args.tags) && args.tags.join(',').contains('x')",
		"args.?inner.optFlatMap(i, i.?s).orValue('').lowerAscii() == 'y'":  "has(args.inner) && has(args.inner.s) && args.inner.s.lowerAscii() == 'y'",
		"optional.ofNonZeroValue(args.s).orValue('b').lowerAscii() == 'y'": "args.s.lowerAscii() == 'y'",
		"cel.bind(o, args.?s, o.orValue('').trim() == o.orValue('y'))":     "cel.bind(o, has(args.s) ? args.s : '', o.trim() == o)",
		"[args.?s, args.?card].unwrapOpt().exists(s, s.contains('x'))":     "[args.s, args.card].exists(s, s.contains('x'))",
		"[?args.?s, 'b'].exists(s, s.contains('x'))":                       "[args.s, 'b'].exists(s, s.contains('x'))",
		"args.?s.or(optional.none()).orValue('').trim() == 'x'":            "(has(args.s) ? args.s : '').trim() == 'x'",
		"args.?s.orValue('') in args.?tags.orValue([])":                    "has(args.s) && has(args.tags) && args.s in args.tags",
	}
	unbounded := map[string]string{
		"args.?card.orValue('').matches(args.?s.orValue('none'))":              "has(args.s) && args.card.matches(args.s)",
		"args.?s.orValue('').split('/').exists(p, p == '..')":                  "has(args.s) && args.s.split('/').exists(p, p == '..')",
		"args.?s.orValue('').replace('', args.?s.orValue('')).size() > 3":      "has(args.s) && args.s.replace('', args.s).size() > 3",
		"args.?s.optMap(v, v.replace('', v)).orValue('').size() > 3":           "has(args.s) && args.s.replace('', args.s).size() > 3",
		"args.?tags.orValue([]).all(a, args.?tags.orValue([]).all(b, a != b))": "has(args.tags) && args.tags.all(a, args.tags.all(b, a != b))",
	}
	for _, call := range []string{"sets.contains(%s, %[1]s)", "sets.intersects(%s, %[1]s)", "sets.equivalent(%s, %[1]s)"} {
		unbounded[fmt.Sprintf(call, "args.?tags.orValue([])")] = "has(args.tags) && " + fmt.Sprintf(call, "args.tags")
	}
	e := newEnv(t)
	loads := func(expr string, bounded bool) bool {
		p, diags := e.Compile(asPolicy(expr), card(bounded))
		if p == nil && diags[0].Code != codeCost {
			t.Errorf("%s is not rejected for its cost: %v", expr, diags)
		}
		return p != nil
	}
	for expr, asked := range tests {
		for _, form := range []string{expr, asked} {
			if !loads(form, true) || !loads(form, false) {
				t.Errorf("%s is rejected", form)
			}
		}
	}
	for expr, asked := range unbounded {
		for _, form := range []string{expr, asked} {
			if !loads(form, true) || loads(form, false) {
				t.Errorf("%s is rejected with bounds or compiles without them", form)
			}
		}
	}
}

// The estimate is compared with the cost that CEL counts during evaluation.
func TestCost_estimateIsUpperBound(t *testing.T) {
	e := newEnv(t)
	s, err := e.scopeFor(schemas{args: string(card(true).Schema)})
	if err != nil {
		t.Fatal(err)
	}
	g := optionalGenerator{rand.New(rand.NewPCG(3, 4))}
	compiled, tried := 0, 1000
	switch {
	case os.Getenv("MCPD_LONG") != "":
		tried = 10_000
	case testing.Short():
		tried = 500
	}
	for range tried {
		expr := g.boolean(4)
		checked, issues := s.cel.Compile(expr)
		if issues.Err() != nil {
			t.Fatalf("%s: %v", expr, issues.Err())
		}
		most, err := costOf(s.cel, checked, estimator{s})
		if err != nil || most > maxCost {
			continue
		}
		compiled++
		program, err := s.cel.Program(checked, cel.CostTracking(nil))
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			r := e.start(t.Context(), Input{Args: g.args(), Now: time.Unix(0, 0)})
			_, details, _ := program.Eval(r)
			if cost := details.ActualCost(); cost != nil && *cost > most {
				t.Errorf("%s costs %d, more than the estimate %d", expr, *cost, most)
			}
			e.stop(r)
		}
	}
	if compiled < tried/2 {
		t.Errorf("only %d of %d expressions are accepted", compiled, tried)
	}
}

// optionalGenerator generates random expressions with optional values, for the tool of card.
type optionalGenerator struct{ *rand.Rand }

func (g optionalGenerator) pick(choices ...string) string { return choices[g.IntN(len(choices))] }

func (g optionalGenerator) boolean(depth int) string {
	if depth <= 0 {
		return g.pick("true", "has(args.s)", "args.?card.hasValue()", "args.?inner.s.hasValue()", "args.?s == args.?card")
	}
	switch g.IntN(6) {
	case 0:
		return fmt.Sprintf("(%s %s %s)", g.boolean(depth-1), g.pick("&&", "||"), g.boolean(depth-1))
	case 1:
		return fmt.Sprintf("%s.contains(%s)", g.text(depth-1), g.text(depth-2))
	case 2:
		return fmt.Sprintf("(%s == %s)", g.pick(g.text(depth-1), g.list(depth-1)), "dyn("+g.text(depth-1)+")")
	case 3:
		return fmt.Sprintf("%s.%s(x%d, x%[3]d.contains(%s) || %s)", g.list(depth-1), g.pick("exists", "all"), depth, g.text(depth-2), g.boolean(depth-2))
	case 4:
		return fmt.Sprintf("%s.optMap(b%d, b%[2]d.matches('a+') || %s).orValue(%s)", g.optional(depth-1), depth, g.boolean(depth-2), g.boolean(depth-2))
	}
	return fmt.Sprintf("(%s == %s)", g.optional(depth-1), g.optional(depth-1))
}

func (g optionalGenerator) optional(depth int) string {
	if depth <= 0 {
		return g.pick("args.?s", "args.?card", "args.?inner.s", "args.?inner.?s", "args.?map[?'a']", "args.?map.a", "args.?tags[?1]", "optional.of('x')")
	}
	switch g.IntN(5) {
	case 0:
		return fmt.Sprintf("%s.or(%s)", g.optional(depth-1), g.optional(depth-1))
	case 1:
		return fmt.Sprintf("optional.%s(%s)", g.pick("of", "ofNonZeroValue"), g.text(depth-1))
	case 2:
		return fmt.Sprintf("%s.optMap(m%d, m%[2]d + %s)", g.optional(depth-1), depth, g.text(depth-1))
	case 3:
		return fmt.Sprintf("%s.%s()", g.list(depth-1), g.pick("first", "last"))
	}
	return fmt.Sprintf("args.?tags.optFlatMap(f%d, f%[1]d[?%d]).or(%s)", depth, g.IntN(3), g.optional(depth-1))
}

func (g optionalGenerator) text(depth int) string {
	if depth <= 0 {
		return g.pick("'x'", "args.s", "args.card", "args.inner.s", "args.?s.orValue('none')")
	}
	switch g.IntN(3) {
	case 0:
		return fmt.Sprintf("%s.orValue(%s)", g.optional(depth-1), g.text(depth-1))
	case 1:
		return g.optional(depth-1) + ".value()"
	}
	return fmt.Sprintf("(%s + %s)", g.text(depth-1), g.text(depth-1))
}

func (g optionalGenerator) list(depth int) string {
	if depth <= 0 {
		return g.pick("args.?tags.orValue([])", "args.tags", "args.?tags.value()")
	}
	switch g.IntN(3) {
	case 0:
		return fmt.Sprintf("[%s, ?%s]", g.text(depth-1), g.optional(depth-1))
	case 1:
		return fmt.Sprintf("%s.map(l%d, %s.orValue(l%[2]d))", g.list(depth-1), depth, g.optional(depth-1))
	}
	return fmt.Sprintf("[%s, %s].unwrapOpt()", g.optional(depth-1), g.optional(depth-1))
}

// args are arguments of the maximum size, or absent.
func (g optionalGenerator) args() map[string]any {
	text := strings.Repeat("a", 10)
	args := map[string]any{}
	for name, value := range map[string]any{
		"s": text, "card": text, "tags": slices.Repeat([]any{text}, 10), "map": map[string]any{"a": text}, "inner": map[string]any{"s": text},
	} {
		if g.IntN(4) > 0 {
			args[name] = value
		}
	}
	return args
}

func TestOptional_integerDefaultForNumber(t *testing.T) {
	p := mustCompile(t, newEnv(t), denying("args.?quota.orValue(7) == 7.0 && args.?filters.?deep.optMap(d, 2.5).orValue(args.cents) == 700.0"))
	in := refundInput()
	delete(in.Args, "quota")
	if d := p.Decide(t.Context(), in); d.Outcome != Deny || d.Err != nil {
		t.Errorf("got %+v", d)
	}
}
