package policylang

import (
	"math/rand/v2"
	"os"
	"testing"
)

func TestPartial_matchesDecide(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: one goroutine works here alone")
	}
	g := generator{rand.New(rand.NewPCG(1, 2))}
	e := newEnv(t)
	seen := map[Outcome]int{}
	tried := 1000
	if os.Getenv("MCPD_LONG") != "" {
		tried = 10_000
	}
	for range tried {
		src := denying(g.boolean(3))
		if g.IntN(2) == 0 {
			src = allowing(g.boolean(3))
		}
		if g.IntN(3) == 0 {
			src.When = inFile(g.boolean(2))
		}
		p, _ := e.Compile(src, smallRefund())
		if p == nil {
			continue // an ill-typed or too expensive choice
		}
		in := refundInput()
		g.caller(&in)
		seen[checkPartial(t, p, src, in, g)]++
	}
	t.Logf("%v", seen)
	for _, o := range []Outcome{Deny, Allow, NotApplicable, Unknown} {
		if seen[o] < 20 {
			t.Errorf("too few expressions lead to %v", o)
		}
	}
}

// checkPartial compares Partial with Decide for random arguments.
func checkPartial(t *testing.T, p *Policy, src Source, in Input, g generator) Outcome {
	t.Helper()
	in.Args = map[string]any{"status": "must not be read"}
	partial := p.Partial(t.Context(), in)
	if partial.Outcome == Unknown && !p.UsesArgs() {
		t.Errorf("%s: unknown, but no arguments are used", textOf(src))
	}
	for range 12 {
		in.Args = g.args()
		full := p.Decide(t.Context(), in)
		if full.Outcome == Unknown {
			t.Fatalf("%s: Decide does not know", textOf(src))
		}
		if partial.Outcome != Unknown && partial.Outcome != full.Outcome {
			t.Fatalf("%s:\npartial %v (%v)\ndecide  %v (%v)\nargs %v", textOf(src), partial.Outcome, partial.Err, full.Outcome, full.Err, in.Args)
		}
		if again := p.Decide(t.Context(), in); again.Outcome != full.Outcome || again.Reason != full.Reason {
			t.Fatalf("%s: %v, then %v", textOf(src), full, again)
		}
	}
	return partial.Outcome
}

func textOf(src Source) string {
	out := ""
	for _, t := range []struct {
		name string
		text interface{ Body() string }
	}{{"when", src.When}, {"allow", src.Allow}, {"deny", src.Deny}} {
		switch {
		case t.name == "when" && src.When != nil, t.name == "allow" && src.Allow != nil, t.name == "deny" && src.Deny != nil:
			out += t.name + " = " + t.text.Body() + "\n"
		}
	}
	return out
}

func TestPartial_outcomes(t *testing.T) {
	tests := []struct {
		name, when, allow, deny string
		want                    Outcome
	}{
		{name: "the caller alone decides", deny: "principal.id == 'ada'", want: Deny},
		{name: "a denial beside arguments", deny: "args.amount > 3 || principal.id == 'ada'", want: Deny},
		{name: "a conjunction that is false", deny: "principal.id == 'bob' && args.amount > 3", want: Allow},
		{name: "a conjunction that is open", deny: "principal.id == 'ada' && args.amount > 3", want: Unknown},
		{name: "an allow that cannot hold", allow: "args.amount < 3 && principal.id == 'bob'", want: Deny},
		{name: "an allow that holds", allow: "args.amount < 3 || principal.id == 'ada'", want: Allow},
		{name: "an error whatever the arguments", allow: "principal.claims.nope == args.status", want: Deny},
		{name: "an error that arguments may hide", allow: "args.amount < 3 || principal.claims.nope == 'x'", want: Unknown},
		{name: "presence is not known", deny: "has(args.note)", want: Unknown},
		{name: "presence that the schema rules out", deny: "has(args.nope)", want: Allow},
		{name: "optional selection is not known", deny: "args.?note.hasValue()", want: Unknown},
		{name: "a loop over arguments", deny: "args.tags.exists(t, t == 'x')", want: Unknown},
		{name: "a loop that looks for arguments", deny: "principal.scopes.exists(s, s == args.status)", want: Unknown},
		{name: "a loop that need not look", deny: "principal.scopes.exists(s, s == 'admin' || s == args.status)", want: Deny},
		{name: "a condition that is open over a sure denial", when: "args.amount > 3", deny: "true || args.amount > 3", want: Unknown},
		{name: "a condition that is open over a sure yes", when: "args.amount > 3", allow: "principal.id == 'ada'", want: Unknown},
		{name: "a condition that is false", when: "tool.read_only", deny: "args.amount > 3", want: NotApplicable},
		{name: "a condition that is broken", when: "principal.claims.nope == 1", deny: "args.amount > 3", want: Deny},
		{name: "a condition that holds over a sure denial", when: "!tool.read_only", deny: "principal.id == 'ada'", want: Deny},
		{name: "all arguments at once", deny: "args == args", want: Unknown},
		{name: "a choice by arguments", deny: "args.amount > 3 ? true : true", want: Unknown},
		{name: "arguments as an index", deny: "principal.scopes[args.cents] == 'x'", want: Unknown},
		{name: "arguments as a key", deny: "principal.claims[args.status] == 'x'", want: Unknown},
		{name: "arguments in a map", deny: "{'a': args.amount}.a == 1", want: Unknown},
		{name: "arguments as a pattern", deny: "principal.id.matches(args.status)", want: Unknown},
		{name: "arguments in a binding", deny: "cel.bind(a, args.status, principal.id == 'ada')", want: Deny},
	}
	e := newEnv(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			src := policySource()
			if tt.when != "" {
				src.When = inFile(tt.when)
			}
			if tt.allow != "" {
				src.Allow = inFile(tt.allow)
			} else {
				src.Deny = inFile(tt.deny)
			}
			p, diags := e.Compile(src, smallRefund())
			if p == nil {
				t.Fatal(diags)
			}
			if d := p.Partial(t.Context(), refundInput()); d.Outcome != tt.want {
				t.Errorf("got %v (%v), want %v", d.Outcome, d.Err, tt.want)
			}
		})
	}
}

func TestPartial_reasonWithUnknownArguments(t *testing.T) {
	src := denying("principal.id == 'ada'")
	src.Reason, src.ReasonExpr = "", inFile("'not for ' + args.status")
	p := mustCompile(t, newEnv(t), src)
	if d := p.Partial(t.Context(), refundInput()); d.Outcome != Deny || d.Reason != GenericReason || d.Err != nil {
		t.Errorf("got %+v", d)
	}
	src.ReasonExpr = inFile("'not for ' + principal.id")
	p = mustCompile(t, newEnv(t), src)
	if d := p.Partial(t.Context(), refundInput()); d.Reason != "not for ada" {
		t.Errorf("got %+v", d)
	}
}

func TestUsesArgs(t *testing.T) {
	tests := map[string]bool{
		"args.amount > 3":                              true,
		"has(args.note)":                               true,
		"principal.id == 'args'":                       false,
		"has(args.nope) && args.nope > 3":              false,
		"principal.scopes.exists(a, a == 'x')":         false,
		"has(args.nope) || principal.id == vars.stage": false,
	}
	e := newEnv(t)
	for expr, want := range tests {
		if got := mustCompile(t, e, denying(expr)).UsesArgs(); got != want {
			t.Errorf("%s: got %v", expr, got)
		}
	}
}

func TestPolicy_reads(t *testing.T) {
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

func TestDecide_unknownParts(t *testing.T) {
	e := newEnv(t)
	for _, test := range []struct {
		when, deny string
		unknown    Parts
		want       Outcome
		value      Value
	}{
		{"", "principal.id == 'ada'", PartArgs | PartAgent | PartSource | PartParent, Deny, True},
		{"", "principal.id == 'bob'", PartArgs, Allow, False},
		{"", "principal.id == 'ada'", PartPrincipal, Unknown, Indeterminate},
		{"", "args.amount > 3 && principal.id == 'bob'", PartArgs, Allow, False},
		{"", "args.amount > 3", PartArgs, Unknown, Indeterminate},
		{"agent.verified", "true", PartAgent, Unknown, NotEvaluated},
		{"principal.id == 'bob'", "agent.verified", PartAgent, NotApplicable, NotEvaluated},
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

func TestDecide_reasonWithUnknownParts(t *testing.T) {
	src := denying("true")
	src.Reason, src.ReasonExpr = "", inFile("'not for ' + principal.id")
	in := refundInput()
	in.Unknown = PartPrincipal
	if d := mustCompile(t, newEnv(t), src).Decide(t.Context(), in); d.Outcome != Deny || d.Reason != GenericReason {
		t.Errorf("got %+v", d)
	}
}
