package policylang

import (
	"strings"
	"testing"

	"github.com/mcpd/mcpd/diag"
)

// keySource is a key as a limit in a file has it.
func keySource(expr string) KeySource {
	return KeySource{Limit: "l", Text: *inFile(expr), Range: diag.Range{File: "limits.hcl"}}
}

func TestKeysTellCallersApart(t *testing.T) {
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

func TestKeysThatTellNobodyApartAreMistakes(t *testing.T) {
	e := newEnv(t)
	for _, test := range []struct{ expr, want string }{
		{"args.cents", "key must be a string, and this is an integer"},
		{"principal.name", `principal has no "name"`},
		{"args.statsu", `tool "refund" has no argument "statsu"`},
		{"'all'", "this is always all"},
		{"agent.agent_id", "this key rests only on what the agent claims to be"},
		{"args.note", "args.note may be left out, and then this denies the call"},
	} {
		t.Run(test.expr, func(t *testing.T) {
			tool := refund()
			_, diags := e.CompileKey(keySource(test.expr), &tool)
			if len(diags) != 1 || diags[0].Summary != test.want {
				t.Fatalf("%v, want %q", diags, test.want)
			}
			if notes := diags[0].Notes; len(notes) == 0 || notes[0].Message != `in limit "l"` {
				t.Errorf("the notes are %v, and do not name the limit", notes)
			}
		})
	}
}

func TestAKeyIsAskedForBeforeItIsRead(t *testing.T) {
	tool := refund()
	_, diags := newEnv(t).CompileKey(keySource("args.note"), &tool)
	if want := "ask first, as in has(args.note) ? args.note : ''"; len(diags) != 1 || !strings.HasPrefix(diags[0].Detail, want) {
		t.Errorf("%v, want %q", diags, want)
	}
}

func TestAKeyThatDoesNotFitAToolNamesIt(t *testing.T) {
	for expr, want := range map[string]string{
		"args.unknown": "where only some take it, ask first: has(args.unknown) ? args.unknown : ''",
		"args.cents":   "turn it into one with string(...)",
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

func TestKeysThatCannotBeEvaluatedHoldNoValues(t *testing.T) {
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

func TestAKeyCostsOneAllocation(t *testing.T) {
	if raceEnabled {
		t.Skip("pools drop things under the race detector")
	}
	k, diags := newEnv(t).CompileKey(keySource("principal.id"), nil)
	if len(diags) > 0 {
		t.Fatal(diags)
	}
	in := refundInput()
	if got := testing.AllocsPerRun(200, func() { _, _ = k.Eval(t.Context(), in) }); got > 1 {
		t.Errorf("a key allocates %v times", got)
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
		t.Errorf("it is read at %v", at)
	}
}
