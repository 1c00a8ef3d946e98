package scripting

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// modular returns the source of a tool that has a module with two functions.
func modular(body string) Source {
	src := tool(body)
	src.Objects = append(src.Objects, Object{"modules", "ledger"}, Object{"modules.ledger", "balance"}, Object{"modules.ledger", "post"}, Object{"modules", "bare"})
	return src
}

func TestAFunctionOfAModuleIsAskedOfTheHost(t *testing.T) {
	for _, c := range []struct{ body, answer, call, want string }{
		{`return await modules.ledger.balance({ account: "ä", n: [1] })`, `{"cents":7}`, `module {"module":"ledger","function":"balance","arguments":{"account":"ä","n":[1]}}`, `{"cents":7}`},
		{`return await modules["ledger"]["po" + "st"]()`, `null`, `module {"module":"ledger","function":"post"}`, `null`},
		{`return await modules.ledger.balance()`, `no JSON`, `module {"module":"ledger","function":"balance"}`, `failure Thrown: the host's answer cannot be read`},
		{`const { balance } = modules.ledger; return await balance({})`, `1`, `module {"module":"ledger","function":"balance","arguments":{}}`, `1`},
	} {
		host := &fakeHost{answer: func(context.Context, string, []byte) ([]byte, error) { return []byte(c.answer), nil }}
		got := shown(runWith(t, call(compiled(t, modular(c.body)), `{}`), host))
		if diff := cmp.Diff([]string{c.call}, host.calls()); diff != "" || got != c.want {
			t.Errorf("%s: got %s, want %s (-want +got):\n%s", c.body, got, c.want, diff)
		}
	}
}

func TestWhatAModuleHasIsWhatWasRegistered(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{`const m = modules, k = "led" + (input.no ?? "ger"); return [Object.keys(m), Object.getOwnPropertyNames(m[k]).sort(), Object.getOwnPropertyNames(m.bare), typeof m.other]`, `[["ledger","bare"],["balance","post"],[],"undefined"]`},
		{`try { modules["led" + (input.no ?? "ger")] = 1 } catch (e) { return e.name }`, `"TypeError"`},
		{`try { modules.ledger.balance(7) } catch (e) { return e.message }`, `"modules.ledger.balance: the arguments must be an object, such as { name: value }"`},
	} {
		if got := shown(runWith(t, call(compiled(t, modular(c.body)), `{}`), &fakeHost{})); got != c.want {
			t.Errorf("%s: got %s, want %s", c.body, got, c.want)
		}
	}
}

func TestModulesAndFunctionsThatAreNotThereAreTold(t *testing.T) {
	for _, c := range []struct {
		body string
		want []string
	}{
		{`return modules.legder.balance()`, []string{`tools.d/t.hcl:5:16 "legder": error: modules.legder is not granted`, `did you mean "ledger"? add module "legder" {} to the allow block`}},
		{`return modules.ledger.balances()`, []string{`tools.d/t.hcl:5:23 "balances": warning: modules.ledger has no member "balances"`, `did you mean "balance"? there is balance, post`}},
		{`return modules.ledger.balance().cents`, []string{`tools.d/t.hcl:5:33 "cents": warning: a promise has no member "cents"`, `did you forget await? write (await modules.NAME.FUNCTION(args)).cents`}},
	} {
		_, problems := Compile(modular(c.body))
		got := told(modular(c.body), problems)
		if len(problems) == 1 {
			got = append(got, problems[0].Detail)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.body, diff)
		}
	}
}
