package scripting

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/diag"
)

// formatDiagnostics formats diagnostics, with the underlined text.
func formatDiagnostics(src Source, list diag.List) (lines []string) {
	for _, d := range list {
		where := d.Range.String()
		if d.Range.File == src.Text.File() {
			body, first := src.Text.Body(), src.Text.Pos(0).Byte
			where += fmt.Sprintf(" %q", body[d.Range.Start.Byte-first:d.Range.End.Byte-first])
		}
		lines = append(lines, fmt.Sprintf("%s: %s: %s", where, d.Severity, d.Summary))
	}
	return lines
}

// importing returns an import function for files.
func importing(files map[string]string) func(string) ([]byte, error) {
	return func(name string) ([]byte, error) {
		if text, ok := files[name]; ok {
			return []byte(text), nil
		}
		return nil, fs.ErrNotExist
	}
}

func TestHook_event(t *testing.T) {
	src := tool(`return [event.tool, typeof input, Object.isFrozen(event.error)]`)
	src.Kind = Hook
	p := compiled(t, src)
	if got := shown(runWith(t, call(p, `{"tool":"t","error":{"code":"X"}}`), &fakeHost{})); got != `["t","undefined",true]` {
		t.Errorf("got %s", got)
	}
	src.Text = inFile("return input.a")
	if _, list := Compile(src); !list.HasErrors() {
		t.Error("input was accepted in a hook")
	}
}

// The engine takes exponential time, or forever, for these if it evaluates constants before the
// script runs.
func TestCompile_noConstantFolding(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{"return " + strings.Repeat("1 && ", 300) + "2", `2`},
		{"return " + strings.Repeat("null ?? ", 300) + "2", `2`},
		{"return " + strings.Repeat("(", 100) + "0" + strings.Repeat(" || 0)", 100) + " || 2", `2`},
		{"return " + strings.Repeat("1 + ", 300) + "2", `302`},
		{"return " + strings.Repeat("- ", 300) + "2", `2`},
		{"if (input.never) return 9n ** 9n ** 9n ** 9n; return 1", `1`},
		{"return [2 ** 3 ** 2, -1 - -2, !!1 && ~~2.5, 'a' + 1 + 2, 1 + 1 === 2 ? 'y' : 'n', typeof 1 + 2n, ('a' in { a: 1 })]", `[512,1,2,"a12","y","number2",true]`},
	} {
		if got := shown(runScript(t, c.body, `{}`)); got != c.want {
			t.Errorf("%.60s: got %s, want %s", c.body, got, c.want)
		}
	}
}

// TestBuiltins_allKnown checks that a script may read every global.
func TestBuiltins_allKnown(t *testing.T) {
	list := func(kind Kind) string {
		src := tool("return Object.getOwnPropertyNames(globalThis).join()")
		src.Kind = kind
		return shown(runWith(t, call(compiled(t, src), `{}`), &fakeHost{}))
	}
	for _, kind := range []Kind{Tool, Hook, Resource, Prompt, Complete} {
		for name := range strings.SplitSeq(strings.Trim(list(kind), `"`), ",") {
			src := tool("return " + name)
			src.Kind = kind
			if _, problems := Compile(src); name != "eval" && problems.HasErrors() {
				t.Errorf("%s in %v: %v", name, kind, problems)
			}
		}
	}
}
