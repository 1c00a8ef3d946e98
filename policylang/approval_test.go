package policylang

import "testing"

// TestAnApprovalIsWantedOrNot: what it needs and has not got denies, and before the
// arguments are known it is sure of what they cannot change.
func TestAnApprovalIsWantedOrNot(t *testing.T) {
	for _, test := range []struct {
		when, approval   string
		decided, partial Outcome
	}{
		{"", "args.amount > 10", Consent, Unknown},
		{"", "args.amount > 100", Allow, Unknown},
		{"", "tool.destructive || principal.id == 'ada'", Consent, Consent},
		{"", "principal.id == 'eve'", Allow, Allow},
		{"principal.id == 'eve'", "args.amount > 10", NotConcerned, NotConcerned},
		{"", "principal.claims.level == 3", Deny, Deny},
		{"principal.claims.level == 3", "args.amount > 10", Deny, Deny},
	} {
		src := Source{Name: "p", Approval: inFile(test.approval), Reason: "It costs"}
		if test.when != "" {
			src.When = inFile(test.when)
		}
		p, problems := newEnv(t).Compile(src, refund())
		if p == nil {
			t.Fatalf("%s: %v", test.approval, problems)
		}
		got := p.Decide(t.Context(), refundInput())
		if partial := p.Partial(t.Context(), refundInput()).Outcome; got.Outcome != test.decided || partial != test.partial {
			t.Errorf("%s: %v, before the arguments are known %v", test.approval, got.Outcome, partial)
		}
		if got.Outcome == Consent && got.Reason != "It costs" {
			t.Errorf("%s: for the reason %q", test.approval, got.Reason)
		}
	}
}

// TestAnApprovalThatIsNeverWantedIsLikelyNotMeant, and one that always is may be.
func TestAnApprovalThatIsNeverWantedIsLikelyNotMeant(t *testing.T) {
	for approval, want := range map[string]int{"true": 0, "false": 1} {
		if _, problems := newEnv(t).Compile(Source{Name: "p", Approval: inFile(approval), Reason: "It costs"}, refund()); len(problems) != want {
			t.Errorf("%s: %v", approval, problems)
		}
	}
}
