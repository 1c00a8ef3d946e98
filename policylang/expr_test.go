package policylang

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/process/cputest"
)

func TestCompileFrom_values(t *testing.T) {
	tests := []struct {
		name, expr, schema string
		want               any
	}{
		{"a claim", "principal.claims.tenant", `{"type":"string"}`, "acme"},
		{"a number", "vars.ceiling / 2", `{"type":"number"}`, 2500.0},
		{"an integer", "vars.retries + 1", `{"type":"integer"}`, int64(4)},
		{"an integer for a number", "vars.retries", `{"type":"number"}`, int64(3)},
		{"a bool", "'admin' in principal.scopes", `{"type":"boolean"}`, true},
		{"a list", "principal.scopes", `{"type":"array","items":{"type":"string"}}`, []any{"crm:read", "admin"}},
		{"a list that is made", "principal.scopes.filter(s, s != 'admin')", `{"type":"array"}`, []any{"crm:read"}},
		{"a map", "agent.metadata", `{"type":"object"}`, map[string]any{"team": "crm"}},
		{"nested claims", "principal.claims.nested", "", map[string]any{"a": 2.0, "b": 1.0}},
		{"null", "agent.model", `{"type":["string","null"]}`, nil},
		{"the time", "string(now)", `{"type":"string"}`, "2026-03-01T22:30:00Z"},
		{"a default", "has(principal.claims.region) ? principal.claims.region : 'eu'", `{"type":"string"}`, "eu"},
		{"an object that is written out", "{'tenant': principal.claims.tenant, 'depth': call.depth}", `{"type":"object","properties":{"tenant":{"type":"string"}}}`, map[string]any{"tenant": "acme", "depth": int64(0)}},
	}
	e := newEnv(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			x, diags := e.CompileFrom(*inFile(tt.expr), json.RawMessage(tt.schema))
			if x == nil {
				t.Fatal(diags)
			}
			got, err := x.Eval(t.Context(), refundInput())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

const fromSource = `an input cannot read "source"`

const wholePrincipal = `an input cannot use all of "principal" as its value`

func TestCompileFrom_wrongType(t *testing.T) {
	tests := []struct{ name, expr, schema, want string }{
		{"another type", "vars.retries", `{"type":"string"}`, "the input is a string, but this is an integer"},
		{"another type of element", "principal.scopes", `{"type":"array","items":{"type":"integer"}}`, "the input is a list of integers, but this is a list of strings"},
		{"a timestamp", "now", `{"type":"string"}`, "the input is a string, but this is a timestamp"},
		{"a fact set", "principal", `{"type":"object"}`, "the input is a map, but this is an object"},
		{"a fact set as any value", "principal", "", wholePrincipal},
		{"a fact set by its absolute name", ".principal", "", wholePrincipal},
		{"a fact set in a list", "[principal]", "", wholePrincipal},
		{"a fact set in a map", "{'p': principal}", `{"type":"object"}`, wholePrincipal},
		{"a fact set in a branch", "principal.id == 'ada' ? dyn(principal) : dyn(1)", "", wholePrincipal},
		{"another fact set", "agent", "", `an input cannot use all of "agent" as its value`},
		{"the arguments", "args.amount", `{"type":"number"}`, `there is no "args" here`},
		{"the address", "source.ip", `{"type":"string"}`, fromSource},
		{"the listener in part of an expression", "principal.id == 'ada' ? 'x' : source.listener", `{"type":"string"}`, fromSource},
		{"the listener in a branch never taken", "false ? source.listener : 'x'", `{"type":"string"}`, fromSource},
		{"the listener in a test", "has(source.listener) ? 'a' : 'b'", `{"type":"string"}`, fromSource},
		{"the listener in a macro", "principal.scopes.exists(s, s == source.listener)", `{"type":"boolean"}`, fromSource},
		{"the listener by its absolute name", ".source.listener", `{"type":"string"}`, fromSource},
		{"all that is known of the transport", "source", "", fromSource},
		{"the listener by a key", "dyn(source)['listener']", "", fromSource},
		{"a misspelt claim set", "principal.claim.tenant", "", `principal has no "claim"`},
		{"a mistake of syntax", "principal.", "", "the expression ends too early"},
	}
	e := newEnv(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			x, diags := e.CompileFrom(*inFile(tt.expr), json.RawMessage(tt.schema))
			if x != nil || !diags.HasErrors() {
				t.Fatal("no error")
			}
			if diff := cmp.Diff(tt.want, diags[0].Summary); diff != "" {
				t.Error(diff)
			}
			if got := diags[0].Range; got.File != "policies.hcl" || got.Start.Line != 3 || got.Start.Column < 12 {
				t.Errorf("at %v", got)
			}
		})
	}
}

func TestCompileFrom_errorHasRangeAndNoValues(t *testing.T) {
	tests := map[string]string{
		"principal.claims.region":      `policies.hcl:3:29: "region" is absent`,
		"dyn(now)":                     "policies.hcl:3:12: the value cannot be encoded as JSON",
		"dyn([b'x'])":                  "policies.hcl:3:12: the value cannot be encoded as JSON",
		"dyn({1: 'a'})":                "policies.hcl:3:12: the value cannot be encoded as JSON",
		"int(principal.claims.tenant)": "policies.hcl:3:12: it cannot be evaluated",
		"principal.claims[principal.claims.tenant]": "policies.hcl:3:28: a key is absent",
	}
	e := newEnv(t)
	for expr, want := range tests {
		t.Run(expr, func(t *testing.T) {
			x, diags := e.CompileFrom(*inFile(expr), nil)
			if x == nil {
				t.Fatal(diags)
			}
			_, err := x.Eval(t.Context(), refundInput())
			if err == nil {
				t.Fatal("no error")
			}
			if diff := cmp.Diff(want, err.Error()); diff != "" {
				t.Error(diff)
			}
			if strings.Contains(err.Error(), "acme") {
				t.Error("the error holds a claim")
			}
		})
	}
}

// keySource returns the key of a limit.
func keySource(expr string) KeySource {
	return KeySource{Limit: "l", Text: *inFile(expr), Range: diag.Range{File: "limits.hcl"}}
}

func TestKey_separatesCallers(t *testing.T) {
	e := newEnv(t)
	for _, test := range []struct{ expr, want string }{
		{"principal.id", "ada"},
		{"principal.id + '/' + args.status", "ada/active"},
		{"string(args.cents)", "700"},
		{"has(args.unknown) ? args.unknown : source.ip", "10.1.2.3"},
		{"principal.claims.tenant", "acme"},
		{"vars.stage", "prod"},
	} {
		t.Run(test.expr, func(t *testing.T) {
			tool := refund()
			k, diags := e.CompileKey(keySource(test.expr), &tool)
			if len(diags) > 0 {
				t.Fatal(diags)
			}
			if got, err := k.Eval(t.Context(), refundInput()); err != nil || got != test.want {
				t.Errorf("the key is %q (%v), want %q", got, err, test.want)
			}
		})
	}
}

func TestCompileKey_constantKey(t *testing.T) {
	e := newEnv(t)
	for _, test := range []struct{ expr, want string }{
		{"args.cents", "key must be a string, but this is an integer"},
		{"principal.name", `principal has no "name"`},
		{"args.statsu", `tool "refund" has no argument "statsu"`},
		{"'all'", "this is always all"},
		{"agent.agent_id", "this key depends only on an unverified agent_id"},
		{"args.note", "args.note is optional, and without it this denies the call"},
	} {
		t.Run(test.expr, func(t *testing.T) {
			tool := refund()
			_, diags := e.CompileKey(keySource(test.expr), &tool)
			if len(diags) != 1 || diags[0].Summary != test.want {
				t.Fatalf("%v, want %q", diags, test.want)
			}
			if notes := diags[0].Notes; len(notes) == 0 || notes[0].Message != `in limit "l"` {
				t.Errorf("the notes do not name the limit: %v", notes)
			}
		})
	}
}

func TestCompileKey_optionalArgument(t *testing.T) {
	tool := refund()
	_, diags := newEnv(t).CompileKey(keySource("args.note"), &tool)
	if want := "test for it first, as in has(args.note) ? args.note : ''"; len(diags) != 1 || !strings.HasPrefix(diags[0].Detail, want) {
		t.Errorf("%v, want %q", diags, want)
	}
}

func TestCompileKey_errorNamesTool(t *testing.T) {
	for expr, want := range map[string]string{
		"args.unknown": "if only some tools take it, test first: has(args.unknown) ? args.unknown : ''",
		"args.cents":   "convert it with string(...)",
	} {
		tool := refund()
		_, diags := newEnv(t).CompileKey(keySource(expr), &tool)
		if len(diags) != 1 || len(diags[0].Notes) != 2 || !strings.HasPrefix(diags[0].Notes[1].Message, `tool "refund" takes `) {
			t.Fatalf("%s: %+v", expr, diags)
		}
		if !strings.HasSuffix(diags[0].Detail, want) {
			t.Errorf("%s: the advice is %q, want %q", expr, diags[0].Detail, want)
		}
	}
}

func TestKey_errorHasNoValues(t *testing.T) {
	e := newEnv(t)
	for _, test := range []struct{ expr, want string }{
		{"principal.claims.region", `limit "l": policies.hcl:3:29: "region" is absent`},
		{"principal.claims.limit", `limit "l": policies.hcl:3:12: key is not a string but a number`},
	} {
		t.Run(test.expr, func(t *testing.T) {
			k, diags := e.CompileKey(keySource(test.expr), nil)
			if len(diags) > 0 {
				t.Fatal(diags)
			}
			got, err := k.Eval(t.Context(), refundInput())
			if err == nil || got != "" || err.Error() != test.want {
				t.Errorf("the key is %q, the error %v, want %q", got, err, test.want)
			}
		})
	}
}

func TestKey_allocations(t *testing.T) {
	if cputest.Race() {
		t.Skip("pools drop things under the race detector")
	}
	k, diags := newEnv(t).CompileKey(keySource("principal.id"), nil)
	if len(diags) > 0 {
		t.Fatal(diags)
	}
	in := refundInput()
	if got := testing.AllocsPerRun(200, func() { _, _ = k.Eval(t.Context(), in) }); got > 1 {
		t.Errorf("key: %v allocations", got)
	}
}

func TestReads(t *testing.T) {
	for expr, want := range map[string]bool{
		"principal.id": true, "principal . id == 'a'": true, ".principal.id": true, "[principal.id]": true, "(principal.id)": true,
		"x == .principal.id": true, "dyn(principal).id": true, "principal.?id": true, "true || principal.id == ''": true,
		"principal.issuer": false, "args.principal.id": false, "'principal.id'": false, "principal.claims.id": false, "f().principal.id": false,
		"// principal.id\ntrue": false, "args.id": false, "": false, "agent.agent_id == 'principal.id'": false,
	} {
		if _, got := Reads(*inFile(expr), "principal", "id"); got != want {
			t.Errorf("%s: %v, want %v", expr, got, want)
		}
	}
	if at, _ := Reads(*inFile("true && principal.id == 'a'"), "principal", "id"); at.End.Column-at.Start.Column != len("principal.id") {
		t.Errorf("got range %v", at)
	}
}
