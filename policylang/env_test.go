package policylang

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/identity"
)

func TestNewEnv_variablesMustBeObjects(t *testing.T) {
	for name, tt := range map[string]struct{ schema, vars string }{
		"a schema that is no JSON":   {"{", "{}"},
		"a schema that is a list":    {"[]", "{}"},
		"variables that are no JSON": {`{"type":"object"}`, "{"},
		"variables in a list":        {`{"type":"object"}`, "[]"},
		"more than one value":        {`{"type":"object"}`, "{} {}"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := NewEnv(json.RawMessage(tt.schema), json.RawMessage(tt.vars)); err == nil {
				t.Error("accepted")
			}
		})
	}
}

func TestNewEnv_withoutVariables(t *testing.T) {
	e, err := NewEnv(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if p, _ := e.Compile(denying("vars.stage == 'prod'"), refund()); p != nil {
		t.Error("an undeclared variable was accepted")
	}
}

func TestCompile_sharesToolIndependentPolicy(t *testing.T) {
	e := newEnv(t)
	src := denying("!tool.read_only && principal.id != 'ada'")
	first := mustCompile(t, e, src)
	other := refund()
	other.Name, other.Schema = "other", json.RawMessage(`{"type":"object"}`)
	second, _ := e.Compile(src, other)
	if first != second {
		t.Error("the policy was compiled again for another tool")
	}
	moved := src
	moved.Deny = inFile("!tool.read_only && principal.id != 'bob'")
	if third := mustCompile(t, e, moved); third == first {
		t.Error("another policy got the same program")
	}
	flipped := allowing(src.Deny.Body())
	if fourth := mustCompile(t, e, flipped); fourth == first {
		t.Error("an allow got the program of a deny")
	}
}

func TestCompile_repeatsWarningsOfSharedPolicy(t *testing.T) {
	e := newEnv(t)
	for range 2 {
		p, diags := e.Compile(denying("false"), refund())
		if p == nil || len(diags) != 1 {
			t.Fatalf("got %v", diags)
		}
		diags[0].Summary = "changed by the caller"
	}
}

func TestEnv_boundsMemory(t *testing.T) {
	e := newEnv(t)
	for i := range maxRemembered + 10 {
		e.scopes[schemas{args: fmt.Sprint(i)}] = e.plain
		e.universal[sourceKey{name: fmt.Sprint(i)}] = universal{}
	}
	mustCompile(t, e, denying("args.amount > 3"))
	mustCompile(t, e, denying("principal.id == 'x'"))
	if len(e.scopes) != 1 || len(e.universal) != 1 {
		t.Errorf("%d schemas and %d policies are remembered", len(e.scopes), len(e.universal))
	}
}

func TestCompile_needsOneVerdict(t *testing.T) {
	e := newEnv(t)
	both := denying("args.amount > 3")
	both.Allow = inFile("args.amount > 3")
	for name, src := range map[string]Source{"neither": policySource(), "both": both} {
		if p, diags := e.Compile(src, refund()); p != nil || !diags.HasErrors() {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestCompile_invalidSchema(t *testing.T) {
	tool := refund()
	tool.Schema = json.RawMessage("{")
	p, diags := newEnv(t).Compile(denying("args.amount > 3"), tool)
	if p != nil || len(diags) != 1 || diags[0].Code != codeSchema || diags[0].Range != tool.Range {
		t.Errorf("got %v", diags)
	}
}

func TestCompile_argumentSchemas(t *testing.T) {
	tests := []struct {
		name, schema string
		right, wrong []string
	}{
		{"no schema says nothing", ``, []string{"args.x == 1", "args.x.y == 'a'"}, nil},
		{"an empty schema says nothing", `{}`, []string{"args.x == 1"}, nil},
		{"no arguments", `{"type":"object","additionalProperties":false}`, []string{"has(args.x)"}, []string{"args.x == 1"}},
		{"const is a string", `{"properties":{"x":{"const":"a"}},"required":["x"]}`, []string{"args.x == 'a'"}, []string{"args.x == 1"}},
		{"enum alone", `{"properties":{"x":{"enum":["a","b"]}}}`, []string{"args.x == 'a'"}, []string{"args.x == 1"}},
		{"a mixed enum", `{"properties":{"x":{"enum":["a",1]}}}`, []string{"args.x == 'a'", "args.x == 1"}, nil},
		{"an enum with null", `{"properties":{"x":{"enum":["a",null]}}}`, []string{"args.x == null"}, nil},
		{"integer or number", `{"properties":{"x":{"type":["integer","number"]}}}`, []string{"args.x == 1.5", "args.x == 1"}, []string{"args.x == 'a'"}},
		{"string or number", `{"properties":{"x":{"type":["string","number"]}}}`, []string{"args.x == 1.5", "args.x == 'a'"}, nil},
		{"nullable", `{"properties":{"x":{"type":["integer","null"]}}}`, []string{"args.x == null", "args.x + 1 == 2", "args.x == 1.5"}, []string{"args.x == 'a'"}},
		{"only null", `{"properties":{"x":{"type":"null"},"y":{"type":["null"]}}}`, []string{"args.x == null", "args.y == null"}, []string{"args.x == 'a'"}},
		{"nullable list", `{"properties":{"x":{"type":["array","null"]}}}`, []string{"args.x == null", "args.x.size() == 1"}, nil},
		{"anyOf", `{"properties":{"x":{"anyOf":[{"type":"string"},{"type":"integer"}]}}}`, []string{"args.x == 1", "args.x == 'a'"}, nil},
		{"a reference", `{"$defs":{"d":{"type":"string"}},"properties":{"x":{"$ref":"#/$defs/d"}}}`, []string{"args.x == 1"}, nil},
		{"true", `{"properties":{"x":true}}`, []string{"args.x == 1", "args.x.y == 2"}, nil},
		{"a list of lists", `{"properties":{"x":{"type":"array","items":{"type":"array","items":{"type":"integer"}}}}}`, []string{"args.x[0][0] == 1"}, []string{"args.x[0] == 1", "args.x[0][0] == 'a'"}},
		{"a tuple", `{"properties":{"x":{"type":"array","prefixItems":[{"type":"string"}],"items":{"type":"integer"}}}}`, []string{"args.x[0] == 'a'"}, []string{"args.x == 1"}},
		{"a map", `{"properties":{"x":{"type":"object","additionalProperties":{"type":"integer"}}}}`, []string{"args.x.any == 1", "args.x['a b'] == 1", "has(args.x.y)"}, []string{"args.x.any == 'a'"}},
		{"a list of objects", `{"properties":{"x":{"type":"array","items":{"type":"object","additionalProperties":false,"properties":{"id":{"type":"integer"}}}}}}`, []string{"args.x.exists(i, i.id == 1)", "args.x[0].id == 1"}, []string{"args.x.exists(i, i.di == 1)", "args.x.exists(i, i.id == 'a')"}},
		{"patterns leave an object open", `{"additionalProperties":false,"properties":{"x":{"type":"string"}},"patternProperties":{"^y":{}}}`, []string{"args.x == 'a'", "has(args.y1) && args.y1 == 2"}, []string{"args.y1 == 2"}},
		{"additional arguments of one type", `{"additionalProperties":{"type":"string"},"properties":{"x":{"type":"string"}}}`, []string{"has(args.y) && args.y == 'a'"}, []string{"args.y == 'a'"}},
		{"names that are no words", `{"additionalProperties":false,"properties":{"content-type":{"type":"string"},"in":{"type":"string"}}}`, []string{"args.`content-type` == 'a'", "args.`in` == 'a'"}, []string{"args.`content-typ` == 'a'"}},
		{"a type that is unknown", `{"properties":{"x":{"type":"tuple"}}}`, []string{"args.x == 1"}, nil},
		{"very deep", deepSchema(40), []string{"args" + deepPath(40) + " == 'a'", "args" + deepPath(10) + " == null"}, []string{"args" + deepPath(5) + ".y == 1"}},
	}
	e := newEnv(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tool := Tool{Name: "t", Schema: json.RawMessage(tt.schema)}
			for _, expr := range tt.right {
				if p, diags := e.Compile(denying(expr), tool); p == nil {
					t.Errorf("%s: %v", expr, diags)
				}
			}
			for _, expr := range tt.wrong {
				if p, _ := e.Compile(denying(expr), tool); p != nil {
					t.Errorf("%s was accepted", expr)
				}
			}
		})
	}
}

func deepSchema(n int) string {
	s := `{"type":"string"}`
	for range n {
		s = `{"type":"object","additionalProperties":false,"properties":{"x":` + s + `}}`
	}
	return s
}

func deepPath(n int) string {
	s := ""
	for range n {
		s += ".x"
	}
	return s
}

func TestDecide_openSchema(t *testing.T) {
	tool := Tool{Name: "t", Schema: json.RawMessage(`{"type":"object","properties":{"x":{"type":"string"}}}`)}
	p, diags := newEnv(t).Compile(denying("has(args.force) && args.force == true"), tool)
	if p == nil {
		t.Fatal(diags)
	}
	in := refundInput()
	in.Args = map[string]any{"force": true}
	if d := p.Decide(t.Context(), in); d.Outcome != Deny {
		t.Errorf("an argument outside of the schema was not denied: %v", d.Outcome)
	}
	in.Args = map[string]any{}
	if d := p.Decide(t.Context(), in); d.Outcome != Allow {
		t.Errorf("got %v", d.Outcome)
	}
	if d := p.Partial(t.Context(), in); d.Outcome != Unknown {
		t.Errorf("got %v", d.Outcome)
	}
}

func TestEnv_concurrentUse(t *testing.T) {
	e := newEnv(t)
	shared := mustCompile(t, e, allowing("args.amounts.all(a, a <= 5) && now.getHours('Europe/Berlin') == 23"))
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			in := refundInput()
			for j := range 20 {
				tool := refund()
				tool.Schema = json.RawMessage(fmt.Sprintf(`{"type":"object","additionalProperties":false,"properties":{"x%d":{"type":"number"}}}`, j))
				text := diag.WholeFile("p.cel", fmt.Sprintf("args.x%d * 2 == %d", j, i))
				p, diags := e.Compile(Source{Name: "p", Deny: &text}, tool)
				if p == nil {
					t.Error(diags)
					return
				}
				own := in
				own.Args = map[string]any{fmt.Sprintf("x%d", j): float64(i) / 2}
				if d := p.Decide(t.Context(), own); d.Outcome != Deny {
					t.Errorf("own policy: %+v", d)
				}
				if d := shared.Decide(t.Context(), in); d.Outcome != Allow {
					t.Errorf("shared policy: %+v", d)
				}
				if d := shared.Partial(t.Context(), in); d.Outcome != Unknown {
					t.Errorf("shared policy, in part: %+v", d)
				}
			}
		})
	}
	wg.Wait()
}

// Validators match keywords by case. If policies did not, they would prune has() of an argument
// that callers can still send.
func TestSchema_keywordsAreCaseSensitive(t *testing.T) {
	env, err := NewEnv(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	deny := diag.WholeFile("p.hcl", "has(args.x) && args.x == 'bad'")
	for _, schema := range []string{
		`{"type":"object","properties":{"y":{"type":"string"}},"AdditionalProperties":false}`,
		`{"type":"object","properties":{"y":{"type":"string"}},"additionalProperties":true,"additionalproperties":false}`,
	} {
		policy, problems := env.Compile(
			Source{Name: "cap", Deny: &deny, Reason: "x is bad"},
			Tool{Name: "t", Schema: json.RawMessage(schema)},
		)
		if problems.HasErrors() {
			t.Fatalf("%s: %v", schema, problems)
		}
		decision := policy.Decide(t.Context(), Input{
			Caller: identity.Caller{Principal: identity.Anonymous()}, Args: map[string]any{"x": "bad"}, Now: time.Unix(0, 0),
		})
		if decision.Outcome != Deny || decision.Reason != "x is bad" {
			t.Errorf("%s: %v %q", schema, decision.Outcome, decision.Reason)
		}
	}
}
