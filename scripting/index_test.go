package scripting_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/scripting"
)

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
