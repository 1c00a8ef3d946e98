package scripting

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/js/builtins"
	"github.com/mcpd/mcpd/internal/js/esbuild"
)

func TestTypeScript_runs(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{"types", `type A = { a: number }; const f = <T>(v: T): T => v; return f<number>((input as A).a)`, `2`},
		{"enums and parameter properties", `enum E { A, B } class Q { constructor(private x: number) {} get() { return this.x } } return [E.B, new Q(3).get()]`, `[1,3]`},
		{"async", `const n: number = await Promise.resolve(4); return n`, `4`},
		{"a global's name for its own variable", `const input: number = 1; return input`, `1`},
		{"non-null and division", `const a: number | null = 4; return a! / 2`, `2`},
		{"satisfies", `return ({ a: 1 } satisfies Record<string, number>)`, `{"a":1}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			src := tool(c.body)
			src.Language = TS
			if got := shown(runWith(t, call(compiled(t, src), `{"a":2}`), &fakeHost{})); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestLowering(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{"for await", `let s = 0; for await (const v of [Promise.resolve(1), 2]) s += v; return s`, `3`},
		{"async generators", `async function* g() { yield 1; yield 2 } let s = 0; for await (const v of g()) s += v; return s`, `3`},
		{"async generator methods", `const o = { async *g() { yield 5 } }; return (await o.g().next()).value`, `5`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := shown(runScript(t, c.body, `{}`)); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestImport_missingExport(t *testing.T) {
	src := tool("import { twise } from './math.js';\nreturn twise(1)")
	src.Import = importing(map[string]string{"math.js": "export const twice = (n) => 2 * n"})
	_, list := Compile(src)
	if len(list) != 1 || list[0].Summary != `no matching export in "math.js" for import "twise"` {
		t.Errorf("got %v", list)
	}
}

func TestImport_readsOnlySourceImport(t *testing.T) {
	var read []string
	src := tool("import { twice } from \"./lib/math.ts\";\nimport data from \"./data.json\" with { type: \"json\" };\nimport \"./effect.js\"\nreturn twice(data.n) + effect;")
	src.Path = "sub/t.js"
	files := importing(map[string]string{
		"sub/lib/math.ts": "import { add } from '../../add.mjs';\nexport function twice(n: number): number { return add(n, n) }",
		"add.mjs":         "export const add = (a, b) => a + b",
		"sub/data.json":   `{"n": 21}`,
		"sub/effect.js":   `globalThis.effect = 100`,
	})
	src.Import = func(name string) ([]byte, error) {
		read = append(read, name)
		return files(name)
	}
	p := compiled(t, src)
	slices.Sort(read)
	if diff := cmp.Diff([]string{"add.mjs", "sub/data.json", "sub/effect.js", "sub/lib/math.ts"}, read); diff != "" {
		t.Errorf("files read (-want +got):\n%s", diff)
	}
	if got := shown(runWith(t, call(p, `{}`), &fakeHost{})); got != `142` {
		t.Errorf("got %s", got)
	}
}

func TestImport_sizeLimit(t *testing.T) {
	src := tool("import a from './a.json'; import b from './b.json'; import c from './c.json'; return [a, b, c]")
	var read int
	src.Import = func(string) ([]byte, error) {
		read++
		return make([]byte, 256<<10+1), nil // more than the limit for imports
	}
	if _, problems := Compile(src); !problems.HasErrors() || read != 1 {
		t.Errorf("read %d files, found %v", read, problems)
	}
}

func TestStack_authorFiles(t *testing.T) {
	files := importing(map[string]string{
		"lib/deep.ts": "type N = number;\nexport function deep(n: N): N {\n  if (n > 1) throw new Error('too big');\n  return n }",
		"mid.js":      "import { deep } from './lib/deep.ts';\nexport const mid = (n) => deep(n)",
	})
	for _, c := range []struct {
		name     string
		language Language
		text     diag.Text
		want     []string
	}{
		{"verbatim", JS, inFile("function f() {\n  throw new Error('x');\n}\nf();"),
			[]string{"f tools.d/t.hcl:6:9-12", " tools.d/t.hcl:8:1-2"}},
		{"behind characters of several bytes", JS, inFile("const ä = '€'; ä.a.b"),
			[]string{" tools.d/t.hcl:5:20-21"}},
		{"a whole file", JS, diag.WholeFile("t.js", "null.x"), []string{" t.js:1:6-7"}},
		{"a stripped indent", JS, indented("function f() {", "  null.x", "}", "f()"),
			[]string{"f t.hcl:4:12-13", " t.hcl:6:5-6"}},
		{"an escape", JS, escaped("const a = ", "\n", "null.x"), []string{" t.json:3:26-27"}},
		{"async", JS, inFile("const g = async () => { await null; undefined.x };\nawait g();"),
			[]string{"g tools.d/t.hcl:5:47-48", " tools.d/t.hcl:6:7-8"}},
		{"TypeScript", TS, inFile("type A = {\n  a: number };\nconst f = (a: A): number => {\n  throw new Error('x') };\nreturn f({ a: 1 } as A)"),
			[]string{"f tools.d/t.hcl:8:9-12", " tools.d/t.hcl:9:8-9"}},
		{"imports", TS, inFile("import { mid } from './mid.js';\nconst n: number = 2;\nreturn mid(n)"),
			[]string{"deep lib/deep.ts:3:20-23", "mid mid.js:2:27-31", " tools.d/t.hcl:7:8-11"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			src := Source{Name: "t", Language: c.language, Text: c.text, Import: files, Transpiler: esbuild.New()}
			out := runWith(t, call(compiled(t, src), `{}`), &fakeHost{})
			if out.Failure == nil {
				t.Fatal(shown(out))
			}
			if diff := cmp.Diff(c.want, framesOf(out.Failure)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func framesOf(f *Failure) (lines []string) {
	for _, frame := range f.Stack {
		lines = append(lines, frame.Function+" "+frame.Range.String()+"-"+builtins.Index(int64(frame.Range.End.Column)))
	}
	return lines
}

// indented returns lines at line 3 of t.hcl, indented by four columns.
func indented(lines ...string) diag.Text {
	b := diag.TextBuilder{File: "t.hcl"}
	for i, line := range lines {
		b.Add(line+"\n", diag.Pos{Line: 3 + i, Column: 5, Byte: 50 * i})
	}
	return b.Text()
}

// escaped returns adjacent pieces on line 3 of t.json, the second of them an escape of two
// characters.
func escaped(pieces ...string) diag.Text {
	b := diag.TextBuilder{File: "t.json"}
	b.Add(pieces[0], diag.Pos{Line: 3, Column: 9, Byte: 20})
	b.Add(pieces[1], diag.Pos{Line: 3, Column: 19, Byte: 30})
	b.Add(pieces[2], diag.Pos{Line: 3, Column: 21, Byte: 32})
	return b.Text()
}

// TestStack_hiddenFromScripts: scripts see only numbers of the engine, for all kinds of errors.
func TestStack_hiddenFromScripts(t *testing.T) {
	files := importing(map[string]string{"lib/x.ts": "export function x(n: any): string {\n  try { return n.a.b } catch (e) { return e.stack }\n}"})
	for _, c := range []struct {
		language   Language
		body, want string
	}{
		{JS, "const f = () => new Error('q').stack;\nreturn f()", `^Error: q\n\tat f \(body:1:N\(N\)\)\n\tat body:1:N\(N\)\n$`},
		{JS, "try { null.x } catch (e) { return e['sta' + 'ck'] }", `^TypeError: Cannot read property 'x' of undefined\n\tat body:1:N\(N\)\n$`},
		{JS, "return await Promise.reject(new ToolError('q')).catch((e) => Object.getOwnPropertyDescriptor(e, 'stack').value)", `^ToolError: q\n\tat body:1:N\(N\)\n$`},
		{TS, "import { x } from './lib/x.ts';\nreturn x({})", `^TypeError: Cannot read property 'b' of undefined\n\tat x \(body:1:N\(N\)\)\n\tat body:1:N\(N\)\n`},
	} {
		src := tool(c.body)
		src.Language, src.Import, src.Path = c.language, files, "t.hcl"
		out := runWith(t, call(compiled(t, src), `{}`), &fakeHost{})
		if out.Result == nil {
			t.Fatal(shown(out))
		}
		var got string
		if err := json.Unmarshal(out.Result.JSON, &got); err != nil {
			t.Fatal(err)
		}
		if !regexp.MustCompile(strings.ReplaceAll(c.want, "N", `\d+`)).MatchString(got) || regexp.MustCompile(`tools\.d|\.hcl|\.ts|native:|:[02-9]\d*:`).MatchString(got) {
			t.Errorf("%s: got %q", c.body, got)
		}
	}
}

// TestStack_loggedError: the operator sees the stack of an error anywhere in the record.
func TestStack_loggedError(t *testing.T) {
	src := tool(`
const e = Error('a');
log.warn(e); log.info('m', e);
console.log('m', e, 1, new RangeError('b')); console.log({ message: 'no error' });
try { await http.crm.get('u') } catch (refused) { log.error(refused) }
console.log(1, 2, 3, 4, e);`)
	host := &fakeHost{answer: func(context.Context, string, []byte) ([]byte, error) {
		return nil, &HostError{Code: NotGranted, Message: "no such host"}
	}}
	if out := runWith(t, call(compiled(t, src), `{}`), host); out.Failure != nil {
		t.Fatal(shown(out))
	}
	const first = "at body (tools.d/t.hcl:6:11)\n  6 | const e = Error('a');\n    |           ^^^^^"
	want := []string{
		"log Error: a; " + first, "log m; " + first,
		"console m Error: a 1 RangeError: b; " + first + "\nat body (tools.d/t.hcl:8:24)\n  8 | console.log('m', e, 1, new RangeError('b')); console.log({ message: 'no error' });\n    |                        ^^^",
		`console {"message":"no error"}; `,
		"log HostError: no such host; at body (tools.d/t.hcl:9:22)\n  9 | try { await http.crm.get('u') } catch (refused) { log.error(refused) }\n    |                      ^^^",
		"console 1 2 3 4 Error: a; " + first,
	}
	var got []string
	for _, notified := range host.calls() {
		op, payload, _ := strings.Cut(notified, " ")
		var record struct{ Message, Trace string }
		if op == "http.request" {
			continue
		}
		if err := json.Unmarshal([]byte(payload), &record); err != nil {
			t.Fatal(err)
		}
		got = append(got, op+" "+record.Message+"; "+record.Trace)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestSourceMapComment_ignored(t *testing.T) {
	out := runScript(t, "return new Error('q').stack;\n//# sourceMappingURL=/etc/hostname", `{}`)
	if out.Failure != nil {
		t.Error(shown(out))
	}
}

func TestStack_wideCharacters(t *testing.T) {
	body := "const s: string[] = [\n"
	for range 200 {
		body += "  '€😀ä', // €€\n"
	}
	src := tool(body + "];\nconst wide = 'ä€😀'; null.x")
	src.Language = TS
	out := runWith(t, call(compiled(t, src), `{}`), &fakeHost{})
	if out.Failure == nil {
		t.Fatal(shown(out))
	}
	if diff := cmp.Diff([]string{" tools.d/t.hcl:207:26-27"}, framesOf(out.Failure)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
