package scripting

import "testing"

func TestUncaughtErrorsOfAsksHaveDetails(t *testing.T) {
	for _, c := range []struct{ body, want, details string }{
		{`throw new CapabilityError("no model", { required: { sampling: {} } })`, "failure CapabilityError: no model", `{"requiredCapabilities":{"sampling":{}}}`},
		{`throw new CapabilityError("no model")`, "failure CapabilityError: no model", `{"requiredCapabilities":{}}`},
		{`const e = new CapabilityError("x", { required: {} }); e.required = 5; throw e`, "failure CapabilityError: x", `{"requiredCapabilities":{}}`},
		{`const e = new CapabilityError("x"); e.required = { toJSON() { throw 1 } }; throw e`, "failure Thrown: an exception whose message cannot be read", ``},
		{`throw new AskDenied("no", { reason: "declined" })`, "failure AskDenied: no", `{"reason":"declined"}`},
		{`throw new AskDenied("no")`, "failure AskDenied: no", ``},
		{`await Promise.reject(new AskDenied("late", { reason: "cancelled" }))`, "failure AskDenied: late", `{"reason":"cancelled"}`},
	} {
		out := runBody(t, c.body, `{}`)
		if shown(out) != c.want || string(out.Failure.Details) != c.details {
			t.Errorf("%s: got %s with %s, want %s with %s", c.body, shown(out), out.Failure.Details, c.want, c.details)
		}
	}
}

func TestErrorsOfAsksAreErrors(t *testing.T) {
	body := `const a = new AskDenied("a", { reason: "declined" }), c = new CapabilityError("c", { required: { roots: {} } });
		return [a, c].map(e => [e instanceof Error, e.name, String(e), Object.keys(e)]).concat(a instanceof CapabilityError, a instanceof AskDenied)`
	want := `[[true,"AskDenied","AskDenied: a",["reason"]],[true,"CapabilityError","CapabilityError: c",["required"]],false,true]`
	if got := shown(runBody(t, body, `{}`)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
