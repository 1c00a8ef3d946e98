package scripting_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/scripting"
)

// TestTheAnalysisReachesEveryPlaceThatCodeCanStandIn puts a misspelled variable
// everywhere: what the analysis does not reach, it neither checks nor provides
// with globals.
func TestTheAnalysisReachesEveryPlaceThatCodeCanStandIn(t *testing.T) {
	for _, body := range []string{
		"switch (1) { case X: break; }", "switch (1) { case 1: return X; }", "switch (1) { default: return X; }", "switch (X) {}",
		"try { X } catch { }", "try { } catch (e) { X }", "try { } catch ({ a = X }) { }", "try { } finally { X }",
		"if (X) {} else {}", "if (1) X; else {}", "if (1) {} else X;", "for (X;;) {}", "for (;X;) {}", "for (;;X) {}", "for (;;) { X }",
		"for (let i = X;;) {}", "for (const a of X) {}", "for (const a in X) {}", "for (const { a = X } of []) {}", "for (input[X] of []) {}", "for (const a of []) X;",
		"while (X) {}", "while (0) X;", "do X; while (0)", "do {} while (X)", "label: X;", "{ X }", "throw X;", "return X;",
		"let a = X;", "const { a = X } = {};", "const { [X]: a } = {};", "const [a = X] = [];", "var { ...b } = X;",
		"function f() { X }", "function f(a = X) {}", "(() => X);", "((a = X) => 1);", "(async () => { X });", "(function* () { yield X; });", "(async () => { await X; });",
		"class A { static x = X }", "class A { x = X }", "class A { [X]() {} }", "class A { m() { X } }", "class A { static { X } }", "class A extends X {}", "class A { #p = X }", "class A { get a() { return X } }",
		"({ a: X });", "({ [X]: 1 });", "({ ...X });", "({ m() { X } });", "({ get a() { return X } });", "[X];", "[...X];",
		"`${X}`;", "X`a`;", "f`${X}`;", "f(X);", "f(...X);", "new X();", "new F(X);", "X.y;", "a[X];", "a?.[X];", "a?.b(X);", "X?.y;", "!X;", "typeof X;", "-X;", "X++;", "a = X;", "a += X;",
		"1 + X;", "X && 1;", "1 ?? X;", "X ? 1 : 2;", "1 ? X : 2;", "1 ? 2 : X;", "1, X;", "(X);", "delete X.y;", "void X;", "X in {};", "X instanceof Y;",
	} {
		text := strings.ReplaceAll("let a, f, F, Y; { "+body+" }", "X", "vars.stgae")
		_, problems := scripting.Compile(scripting.Source{
			Name: "t", Text: diag.WholeFile("t.js", text), Vars: []byte(`{"stage":"dev"}`),
		})
		found := false
		for _, p := range problems {
			found = found || p.Severity == diag.Error && strings.Contains(p.Summary+p.Detail, "stage")
		}
		if !found {
			t.Errorf("%s: the analysis does not reach the X: %v", body, problems)
		}
	}
}

// Members named by array indexes come in ascending order, whichever order they
// were sent in. They are also defined in it: goja takes time quadratic in their
// number otherwise, in a loop that nothing interrupts.
func TestIndexNamesAreShownInAscendingOrder(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"z":0,"01":1,"4294967295":2`)
	for i := 20_000; i >= 0; i-- {
		fmt.Fprintf(&b, `,"%d":%d`, i, i)
	}
	b.WriteString("}")
	program, problems := scripting.Compile(scripting.Source{Name: "t", Text: diag.WholeFile("t.js", `
		const keys = Object.keys(input);
		return [keys.length, keys[0], keys[1], keys[20000], keys.slice(20001).join()].join(" ");`)})
	if problems.HasErrors() {
		t.Fatal(problems)
	}
	outcome, err := scripting.Inline().Run(t.Context(), scripting.Call{Program: program, Input: []byte(b.String())}, nil)
	if err != nil || outcome.Result == nil {
		t.Fatalf("%v %+v", err, outcome.Failure)
	}
	if got, want := string(outcome.Result.JSON), `"20004 0 1 20000 z,01,4294967295"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
