package policylang

import "testing"

func TestAPolicyReadsTheseParts(t *testing.T) {
	e := newEnv(t)
	for expr, want := range map[string]Parts{
		"args.amount > 3":                             PartArgs,
		"has(args.nope) && args.nope > 3":             0,
		"principal.id == 'ada'":                       PartPrincipal,
		"agent.verified && source.ip == ''":           PartAgent | PartSource,
		"tool.read_only || vars.stage == 'prod'":      0,
		"now.getHours() > 3":                          0,
		"call.via == 'tool' && call.depth > 0":        0,
		"call.id == 'x'":                              0,
		"call.parent == 'x'":                          PartParent,
		"call.depth > 0 && call.parent != ''":         PartParent,
		"dyn(call) == dyn(call)":                      PartParent,
		"[1].exists(x, x == 1 && call.parent != 'y')": PartParent,
	} {
		p, diags := e.Compile(denying(expr), smallRefund())
		if p == nil {
			t.Errorf("%s: %v", expr, diags)
			continue
		}
		if got := p.Reads(); got != want {
			t.Errorf("%s reads %v, want %v", expr, got, want)
		}
	}
}

func TestAPolicyIsSureOfWhatItDoesNotRead(t *testing.T) {
	e := newEnv(t)
	for _, test := range []struct {
		when, deny string
		unknown    Parts
		want       Outcome
		value      Value
	}{
		{"", "principal.id == 'ada'", PartArgs | PartAgent | PartSource | PartParent, Deny, True},
		{"", "principal.id == 'bob'", PartArgs, Allow, False},
		{"", "principal.id == 'ada'", PartPrincipal, Unknown, Open},
		{"", "args.amount > 3 && principal.id == 'bob'", PartArgs, Allow, False},
		{"", "args.amount > 3", PartArgs, Unknown, Open},
		{"agent.verified", "true", PartAgent, Unknown, NotAsked},
		{"principal.id == 'bob'", "agent.verified", PartAgent, NotConcerned, NotAsked},
		{"", "principal.claims.nope == 1", 0, Deny, Failed},
	} {
		src := denying(test.deny)
		if test.when != "" {
			src.When = inFile(test.when)
		}
		in := refundInput()
		in.Unknown = test.unknown
		d := mustCompile(t, e, src).Decide(t.Context(), in)
		if d.Outcome != test.want || d.Verdict != test.value {
			t.Errorf("%s, %s without %s: %v by %v", test.when, test.deny, test.unknown, d.Outcome, d.Verdict)
		}
	}
}

func TestAReasonThatNeedsWhatIsNotKnownIsTheGenericOne(t *testing.T) {
	src := denying("true")
	src.Reason, src.ReasonExpr = "", inFile("'not for ' + principal.id")
	in := refundInput()
	in.Unknown = PartPrincipal
	if d := mustCompile(t, newEnv(t), src).Decide(t.Context(), in); d.Outcome != Deny || d.Reason != GenericReason {
		t.Errorf("got %+v", d)
	}
}
