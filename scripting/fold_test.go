package scripting

import (
	"strings"
	"testing"
)

// Each of these takes the engine exponential time, or for ever, when it may
// compute constants before the body runs.
func TestNothingIsComputedBeforeTheBodyRuns(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{"return " + strings.Repeat("1 && ", 300) + "2", `2`},
		{"return " + strings.Repeat("null ?? ", 300) + "2", `2`},
		{"return " + strings.Repeat("(", 100) + "0" + strings.Repeat(" || 0)", 100) + " || 2", `2`},
		{"return " + strings.Repeat("1 + ", 300) + "2", `302`},
		{"return " + strings.Repeat("- ", 300) + "2", `2`},
		{"if (input.never) return 9n ** 9n ** 9n ** 9n; return 1", `1`},
		{"return [2 ** 3 ** 2, -1 - -2, !!1 && ~~2.5, 'a' + 1 + 2, 1 + 1 === 2 ? 'y' : 'n', typeof 1 + 2n, ('a' in { a: 1 })]", `[512,1,2,"a12","y","number2",true]`},
	} {
		if got := shown(runBody(t, c.body, `{}`)); got != c.want {
			t.Errorf("%.60s: got %s, want %s", c.body, got, c.want)
		}
	}
}

func TestEnumsCannotGrowTheProgram(t *testing.T) {
	for _, body := range []string{
		"enum E { A = 'x', B = A + A }",
		"enum E { A = 'x', B = `${A}${A}` }",
	} {
		src := tool(body)
		src.Language = TS
		if _, list := Compile(src); len(list) != 1 || list[0].Summary != "members of an enum cannot be added up or made of templates" {
			t.Errorf("%s: %v", body, list)
		}
	}
}
