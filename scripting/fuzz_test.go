package scripting

import (
	"context"
	"testing"
	"time"

	"github.com/mcpd/mcpd/diag"
)

// FuzzCompile checks that no script crashes or stalls the compiler, that all ranges are in its
// file, and that accepted scripts can be run.
func FuzzCompile(f *testing.F) {
	for _, body := range []string{
		busyScript, smallScript, "}); evil(); (function(){", "return `a${b}c` / 2", "import a from './a.js'", "async function* g() { yield 1 }",
		"for await (const x of y);", "const { a: { b = 1 }, ...c } = vars;", "class A extends B { static #x = 1; get y() { return this.#x } }",
		"label: for (;;) { continue label }", "a ? (b) : c => d", "enum E { A }", "x = /(?<a>[)])\\p{L}/u", "let a\u2028= 1\r\n\xff",
	} {
		f.Add(body, false)
		f.Add(body, true)
	}
	f.Fuzz(func(t *testing.T, body string, typed bool) {
		src := tool(body)
		src.Import = importing(map[string]string{"a.js": "export default 1"})
		if typed {
			src.Language = TS
		}
		p, list := Compile(src)
		if (p == nil) != list.HasErrors() {
			t.Fatalf("program %v with %v", p != nil, list)
		}
		last := src.Text.Pos(len(body))
		for _, d := range list {
			if d.Range.File == src.Text.File() && !inside(d.Range, src.Text.Pos(0), last) {
				t.Fatalf("%s: range %+v outside the script, which ends at %+v", d, d.Range, last)
			}
		}
		if p == nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		defer cancel()
		out, err := Inline().Run(ctx, call(p, `{}`), &fakeHost{})
		if err != nil {
			t.Fatal(err)
		}
		if (out.Result == nil) == (out.Failure == nil) {
			t.Fatalf("outcome %+v", out)
		}
	})
}

func inside(r diag.Range, first, last diag.Pos) bool {
	return r.Start.Byte >= first.Byte && r.Start.Byte <= r.End.Byte && r.End.Byte <= last.Byte
}
