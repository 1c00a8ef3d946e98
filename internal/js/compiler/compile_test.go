package compiler

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/scripting/source"
)

func TestCompile_ranges(t *testing.T) {
	for _, c := range []struct {
		name, body string
		want       []string
	}{
		{"a missing operand", "const a = 1;\nreturn a +;", []string{`tools.d/t.hcl:6:11 ";": error: unexpected token ;`}},
		{"behind characters of several bytes", "const ä = '€😀'; return 1 +* 2", []string{`tools.d/t.hcl:5:27 "*": error: unexpected token *`}},
		{"an unfinished script", "return 1 +", []string{`tools.d/t.hcl:5:10 "+": error: the script ends unexpectedly`}},
		{"declared twice", "let a = 1;\nlet a = 2;", []string{`tools.d/t.hcl:6:5 "a": error: identifier 'a' has already been declared`}},
		{"an open bracket", "if (x) {\n  y()\n", []string{`tools.d/t.hcl:5:8 "{": error: this { is never closed`}},
		{"a wrong bracket", "foo(]", []string{`tools.d/t.hcl:5:5 "]": error: this ] does not match the ( before it`}},
		{"an escape from the function", "}); evil(); (function(){", []string{`tools.d/t.hcl:5:1 "}": error: this } closes nothing`}},
		{"an escape from the block", "} evil(); {", []string{`tools.d/t.hcl:5:1 "}": error: this } closes nothing`}},
		{"an escape behind a comment", "return 1 // }", nil},
		{"an open string", "return 'abc\n", []string{`tools.d/t.hcl:5:8 "'abc": error: this string is never closed`}},
		{"an open template", "return `abc\n", []string{"tools.d/t.hcl:5:8 \"`\": error: this template is never closed"}},
		{"an open hole", "return `abc${1", []string{"tools.d/t.hcl:5:12 \"$\": error: this ${ is never closed"}},
		{"an open comment", "/* abc", []string{`tools.d/t.hcl:5:1 "/*": error: this comment is never closed`}},
		{"an open regular expression", "return /abc\n", []string{`tools.d/t.hcl:5:8 "/abc": error: this regular expression is never closed`}},
		{"with", "const o = {}; with (o) {}", []string{`tools.d/t.hcl:5:15 "with": error: strict mode code may not include a with statement`}},
		{"invalid UTF-8", "return 'a\xff'", []string{`tools.d/t.hcl:5:10 "\xff": error: this is not valid UTF-8`}},
		{"an unknown variable", "return vars.stgae", []string{`tools.d/t.hcl:5:13 "stgae": error: there is no variable "stgae"`}},
		{"an unknown variable by name", "return vars?.['stgae']", []string{`tools.d/t.hcl:5:15 "'stgae'": error: there is no variable "stgae"`}},
		{"an unknown variable taken apart", "const { stage, stgae: x } = vars; return [stage, x]", []string{`tools.d/t.hcl:5:16 "stgae": error: there is no variable "stgae"`}},
		{"what every object has", "return vars.hasOwnProperty('x')", nil},
		{"a variable of its own", "const vars = { x: 1 }; return vars.x", nil},
		{"an unknown grant", "return http.crn.get('x')", []string{`tools.d/t.hcl:5:13 "crn": error: http.crn is not granted`}},
		{"an unknown input", "return input.nmae", []string{`tools.d/t.hcl:5:14 "nmae": error: there is no input "nmae"`}},
		{"an undefined name", "return inptu.name", []string{`tools.d/t.hcl:5:8 "inptu": error: inptu is not defined`}},
		{"a name that is asked for", "return typeof fetch === 'function' ? fetch('x') : 1", nil},
		{"fetch", "return fetch('x')", []string{`tools.d/t.hcl:5:8 "fetch": error: fetch is not defined`}},
		{"eval", "return eval('1')", []string{`tools.d/t.hcl:5:8 "eval": error: eval is not defined`}},
		{"the event of a hook", "return event.tool", []string{`tools.d/t.hcl:5:8 "event": error: event is not defined`}},
		{"unicode classes", `return /\p{L}+/u.test("x")`, []string{`tools.d/t.hcl:5:8 "/\\p{L}+/u": warning: \p{…} never matches in this JavaScript engine`}},
		{"unicode classes of a constructor", `return [new RegExp("^\\P{Lu}", "iu"), RegExp('\\p{L}', "g")]`, []string{`tools.d/t.hcl:5:9 "new RegExp(\"^\\\\P{Lu}\", \"iu\")": warning: \p{…} never matches in this JavaScript engine`}},
		{"a constructor of its own", `class RegExp {} return new RegExp("\\p{L}", "u")`, nil},
		{"dynamic import", "return import('./a.js')", []string{`tools.d/t.hcl:5:8 "import": error: import() and import.meta do not exist here`}},
		{"import in a bracket", "if (1) { import a from './a.js' }", []string{`tools.d/t.hcl:5:10 "import": error: import is not allowed here`}},
		{"import of nothing", "import a", []string{`tools.d/t.hcl:5:1 "import": error: this import names no file`}},
		{"import of a package", "import a from 'lodash'; a()", []string{`tools.d/t.hcl:5:15 "'lodash'": error: packages cannot be imported`}},
		{"import of a missing file", "import a from './no.js'; a()", []string{`tools.d/t.hcl:5:15 "'./no.js'": error: there is no file no.js in the tools folder`}},
		{"import from outside", "import a from '../no.js'; a()", []string{`tools.d/t.hcl:5:15 "'../no.js'": error: a file outside of the tools folder cannot be imported`}},
		{"import of an image", "import a from './a.png'; a()", []string{`tools.d/t.hcl:5:15 "'./a.png'": error: only .js, .mjs, .ts, .mts and .json files can be imported, with their full name`}},
		{"a mistake in an imported file", "import a from './bad.ts'; a()", []string{`bad.ts:3:2: error: unexpected "*"`}},
		{"a bracket in an imported file", "import a from './open.js'; a()", []string{`open.js:1:16: error: this { is never closed`}},
		{"require", "return require('./a.js')", []string{`tools.d/t.hcl:5:8 "require": error: require is not defined`}},
		{"a module", "export default function (input) {\n  return 1;\n}", []string{`tools.d/t.hcl:5:1 "export": error: a script exports nothing`}},
		{"a module behind an import", "import a from './good.js';\nexport const b = a;", []string{`tools.d/t.hcl:6:1 "export": error: a script exports nothing`}},
		{"a member and a key named export", "const o = { export: 1 };\nreturn o.export", nil},
		{"an arrow function", "(input) => { return 1; }", []string{`tools.d/t.hcl:5:1 "(": error: the script is a function that nothing calls`}},
		{"an async function", "async function run(input) {\n  return await 1;\n}", []string{`tools.d/t.hcl:5:1 "async": error: the script is a function that nothing calls`}},
		{"a function expression behind an import", "import './good.js';\n(function () { return 1; })", []string{`tools.d/t.hcl:6:2 "function": error: the script is a function that nothing calls`}},
		{"a function that is called", "return (() => { log.info('x') })()", nil},
		{"a function that is called at once and returned", "return (() => { (() => 1) })()", nil},
		{"two functions", "function f() {}\nfunction g() {}", []string{`tools.d/t.hcl:6:1 "function": warning: the script returns nothing`}},
		{"an answer without await", "return http.crm.get('/x').text()", []string{`tools.d/t.hcl:5:27 "text": warning: a promise has no member "text"`}},
		{"an answer with await", "return (await http.crm.get('/x')).text()", nil},
		{"a promise that is used as one", "return http.crm.get('/x').then((r) => r.text())", nil},
		{"an object of its own named http", "const http = { crm: { get: () => 'a' } }; return http.crm.get().length", nil},
		{"several at once", "log.info(vars.a);\nreturn http.b.get(vars.c)", []string{
			`tools.d/t.hcl:5:15 "a": error: there is no variable "a"`,
			`tools.d/t.hcl:6:13 "b": error: http.b is not granted`,
			`tools.d/t.hcl:6:24 "c": error: there is no variable "c"`,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			src := tool(c.body)
			src.Inputs, src.Import = []string{"name"}, importing(map[string]string{
				"good.js": "export default 1", "bad.ts": "const n: number = 1;\nexport default\n+* 2", "open.js": "export default {",
			})
			_, list := Compile(src)
			if diff := cmp.Diff(c.want, formatDiagnostics(src, list)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestCompile_details(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{"return vars.stgae", `did you mean "stage"? variables are declared by variable blocks in mcpd.hcl`},
		{"return http.crn.get('x')", `did you mean "crm"? add http "crn" { hosts = [...] } to the allow block`},
		{"return inptu.name", `did you mean "input"?`},
		{"return args.name", `a tool's arguments are members of input; args is their name in policies`},
		{"return secret.token", `secrets are used in headers of a grant; a script can read only secrets that the operator reveals, as secrets.NAME`},
		{"return http.crm.get('/x').json()", `did you forget await? write (await http.NAME.get(url)).json`},
		{"const { status } = http.crm.get('/x');\nreturn status", `did you forget await? write { status } = await http.NAME.get(url)`},
		{"const r = http.crm.get('/x');\nreturn r.json()", `did you forget await? write r = await http.NAME.get(url)`},
		{"export const a = 1", `it is the body of a function: drop export and the function around the statements, and return the result; arguments are members of input; only a script in a file of its own can be a module`},
		{"return fetch('x')", `use http.NAME.get(url), granted by allow { http "NAME" { hosts = ["host:443"] } }`},
	} {
		_, list := Compile(tool(c.body))
		if len(list) != 1 || list[0].Detail != c.want {
			t.Errorf("%s: got %v", c.body, list)
		}
	}
}

func TestMissingAwait_variable(t *testing.T) {
	for _, body := range []string{
		"const r = http.crm.get('/x');\nreturn (await r).json()",
		"const r = http.crm.get('/x');\nreturn r.then((answer) => answer.json())",
		"let r = http.crm.get('/x');\nr = await r;\nreturn r.json()",
		"const r = http.crm.get('/x');\nreturn [await r].map((r) => r.json())",
		"const r = await http.crm.get('/x');\nreturn r.json()",
	} {
		if _, list := Compile(tool(body)); len(list) != 0 {
			t.Errorf("%s: got %v", body, list)
		}
	}
}

func TestHTTP_notGranted(t *testing.T) {
	src := tool(`return http.crm.get("x")`)
	src.Objects = nil
	_, list := Compile(src)
	if len(list) != 1 || !list.HasErrors() || !strings.Contains(list[0].Detail, `allow { http "name"`) {
		t.Errorf("got %v", list)
	}
}

func TestCompile_sizeLimit(t *testing.T) {
	_, list := Compile(tool("return 1" + strings.Repeat(" ", source.MaxScript)))
	if len(list) != 1 || list[0].Code != "script-size" {
		t.Errorf("got %v", list)
	}
}

func TestProgram_canUse(t *testing.T) {
	for _, c := range []struct {
		body string
		want []string
	}{
		{`return 1`, nil},
		{`return agent.model`, []string{"agent"}},
		{`const o = { agent: 1 }; return o.agent`, nil},
		{`const o = { call }; return o`, []string{"call"}},
		{`return globalThis["a" + "gent"]`, []string{"agent", "call", "input"}},
	} {
		p := compiled(t, tool(c.body))
		var got []string
		for _, name := range []string{"agent", "call", "input"} {
			if p.CanUse(name) {
				got = append(got, name)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.body, diff)
		}
	}
}

func TestProgram_hash(t *testing.T) {
	base := func() source.Source {
		src := tool(`import a from "./a.js"; return a`)
		src.Import = importing(map[string]string{"a.js": "export default 1"})
		return src
	}
	first := compiled(t, base()).Hash
	if compiled(t, base()).Hash != first {
		t.Error("the same source has two hashes")
	}
	for name, change := range map[string]func(*source.Source){
		"name":     func(s *source.Source) { s.Name = "u" },
		"kind":     func(s *source.Source) { s.Kind = source.Hook },
		"language": func(s *source.Source) { s.Language = source.TS },
		"body":     func(s *source.Source) { s.Text = tool(s.Text.Body() + " ").Text },
		"place":    func(s *source.Source) { s.Text = diag.WholeFile("tools.d/t.hcl", s.Text.Body()) },
		"file":     func(s *source.Source) { s.Text = diag.WholeFile("tools.d/u.hcl", s.Text.Body()) },
		"objects":  func(s *source.Source) { s.Objects = nil },
		"vars":     func(s *source.Source) { s.Vars = nil },
		"inputs":   func(s *source.Source) { s.Inputs = []string{} },
		"path":     func(s *source.Source) { s.Path = "b.js" },
		"imports":  func(s *source.Source) { s.Import = importing(map[string]string{"a.js": "export default 2"}) },
	} {
		src := base()
		change(&src)
		if compiled(t, src).Hash == first {
			t.Errorf("the hash does not cover the %s", name)
		}
	}
}

func TestEnum_limits(t *testing.T) {
	for _, body := range []string{
		"enum E { A = 'x', B = A + A }",
		"enum E { A = 'x', B = `${A}${A}` }",
	} {
		src := tool(body)
		src.Language = source.TS
		if _, list := Compile(src); len(list) != 1 || list[0].Summary != "members of an enum cannot be added up or made of templates" {
			t.Errorf("%s: %v", body, list)
		}
	}
}

// update makes the tests write their results to testdata.
var update = flag.Bool("update", false, "rewrite the golden files")

// compiled returns the program of a valid source.
func compiled(t testing.TB, src source.Source) *Program {
	t.Helper()
	p, list := Compile(src)
	if list.HasErrors() {
		t.Fatalf("compile: %v", list)
	}
	return p
}

// TestCompile_firstSyntaxError compares the diagnostics of each script in testdata/mistakes.txtar
// with those in the file.
func TestCompile_firstSyntaxError(t *testing.T) {
	const golden = "testdata/mistakes.txtar"
	archive, err := txtar.ParseFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	imports := map[string]string{}
	for _, f := range archive.Files {
		if name, ok := strings.CutPrefix(f.Name, "import/"); ok {
			imports[name] = string(f.Data)
		}
	}
	for i, f := range archive.Files {
		language := map[string]source.Language{".js": source.JS, ".ts": source.TS}
		is, ok := language[path.Ext(f.Name)]
		if !ok || strings.HasPrefix(f.Name, "import/") {
			continue
		}
		src := tool(string(f.Data))
		src.Language, src.Import = is, importing(imports)
		_, list := Compile(src)
		got := strings.Join(formatDiagnostics(src, list), "\n") + "\n"
		want := &archive.Files[i+1]
		if diff := cmp.Diff(string(want.Data), got); diff != "" && !*update {
			t.Errorf("%s (-want +got):\n%s", f.Name, diff)
		}
		want.Data = []byte(got)
	}
	if *update {
		if err := os.WriteFile(golden, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// codes returns the codes of diagnostics.
func codes(list diag.List) (codes []string) {
	for _, d := range list {
		codes = append(codes, d.Code)
	}
	return codes
}

func TestCompile_trial(t *testing.T) {
	space := strings.Repeat(" ", 4<<10)
	for _, c := range []struct {
		name string
		src  source.Source
		err  error
		want []string
	}{
		{"a syntax error", tool("const a = ;" + space), nil, []string{"script-syntax"}},
		{"a script that fails its trial", tool("const a = ;" + space), errors.New("it did not survive"), []string{"script-too-costly"}},
		{"agent code in TypeScript", codeOf("const a: number = 1; a" + space), nil, nil},
	} {
		var tried []string
		c.src.Trial = func(given source.Source) error {
			tried = append(tried, given.Text.Body())
			return c.err
		}
		_, list := Compile(c.src)
		if diff := cmp.Diff(c.want, codes(list)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
		if diff := cmp.Diff([]string{c.src.Text.Body()}, tried); diff != "" {
			t.Errorf("%s (-want +tried):\n%s", c.name, diff)
		}
	}
}

// TestCompile_syntaxErrorAlone checks that a script with a syntax error has no other diagnostics,
// for both compilers.
func TestCompile_syntaxErrorAlone(t *testing.T) {
	for name, body := range map[string]string{
		"by its tokens":      "return vars.typo + 'abc",
		"by the parser":      "return vars.typo +;",
		"by the engine":      "log.info(vars.typo, nope); break;",
		"as an export":       "export const a = vars.typo; export const b = 1;",
		"two of them":        "const a = ; const b = ;",
		"a private name":     "class A { a() { return [this.#b, this.#c, vars.typo] } }",
		"in a large script":  "class A { a() { return [this.#b, this.#c, vars.typo] } }" + strings.Repeat(" ", 16<<10),
		"behind an import":   "import { x } from './good.js'; return vars.typo + x +;",
		"twice in one file":  "import x from './bad.js'; return vars.typo + x;",
		"a declaration":      "let a = 1; let a = 2; let a = 3; return vars.typo",
		"in a larger script": "let a = 1; let a = 2; let a = 3; return vars.typo" + strings.Repeat(" ", 4<<10),
		"a getter parameter": "return { get a(b) { return vars.typo } }",
	} {
		for _, language := range []source.Language{source.JS, source.TS} {
			src := tool(body)
			src.Language = language
			src.Import = importing(map[string]string{"good.js": "export const x = 1;", "bad.js": "export default 1; let a = 1; let a = 2; let a = 3;"})
			if _, list := Compile(src); len(list) != 1 || list[0].Code != "script-syntax" {
				t.Errorf("%s in %v: %v", name, language, list)
			}
		}
	}
}

func TestCompile_everyWrongImport(t *testing.T) {
	src := tool("import a from './a.js';\nimport b from './b.js';\nimport c from './c.js';\nreturn [a, b, c];")
	src.Import = importing(map[string]string{"b.js": "export default ;"})
	_, list := Compile(src)
	want := []string{
		"b.js:1:16: error: unexpected \";\"",
		"tools.d/t.hcl:5:15 \"'./a.js'\": error: there is no file a.js in the tools folder",
		"tools.d/t.hcl:7:15 \"'./c.js'\": error: there is no file c.js in the tools folder",
	}
	if diff := cmp.Diff(want, formatDiagnostics(src, list)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Ordinary text must be below all limits.
func TestCheck_ordinaryCode(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"a long concatenation":         "return " + strings.Repeat("'line' +\n", 500) + "''",
		"many statements":              strings.Repeat("log.info('x')\n", 3000),
		"many statements, no newline":  "const a = 1, b = 2, c = 3; " + strings.Repeat("f(a, b + c); ", 3000) + "function f() {}",
		"a large table":                "return [" + strings.Repeat("{ a: 1, b: 'x', c: [1, 2] },\n", 1500) + "]",
		"a long method chain":          "return [1]" + strings.Repeat("\n  .map(x => x + 1)", 200),
		"long else-if":                 strings.Repeat("if (input.a === 1) { log.info('x') } else ", 200) + "{}",
		"callbacks in callbacks":       strings.Repeat("[1].forEach((x) => {\n", 40) + strings.Repeat("})", 40),
		"several arrows in one call":   "return [(a) => 1, (b) => 2, (c) => 3, (d) => 4, ({ e }) => 5].length",
		"a default that is a callback": "const f = (cb = (x) => x, o = { g: (y) => y }) => cb(1); return f()",
		"nested conditionals":          "const a = 1; return " + strings.Repeat("a === 0 ? (a) : ", 100) + "2",
		"many cases":                   "switch (input.a) {" + strings.Repeat("case 'x': break;\n", 500) + "}",
	} {
		for _, language := range []source.Language{source.JS, source.TS} {
			src := tool(body)
			src.Language = language
			if _, list := Compile(src); list.HasErrors() {
				t.Errorf("%s: %v", name, list)
			}
		}
	}
}

// TestPatternRanges_folded checks that the ranges of a regular expression count if the engine looks
// up the lower case of each character.
func TestPatternRanges_folded(t *testing.T) {
	for body, fits := range map[string]bool{
		`x=/(?=b)[!-\uffff]/i;`:                                         true,
		strings.Repeat(`x=/(?=b)[!-\uffff]/i;`, 100):                    false,
		strings.Repeat(`x=/(?=b)[!-\u{10ffff}]/iu;`, 10):                false,
		strings.Repeat("x=/(?=b)[!-\uffff]/i;", 100):                    false,
		strings.Repeat(`x=/(?=b)[--\uffff]/i;`, 100):                    false,
		strings.Repeat(`x=/(?=b)[\xzz-\uffff]/i;`, 100):                 false,
		strings.Repeat(`x=/(?=b)[\n-\u{00000ffff}]/iu;`, 100):           false,
		strings.Repeat(`x=/(?=b)(?i:[!-\uffff])/;`, 100):                false,
		`x=/(?=b)[` + strings.Repeat(`!-\uffff`, 100) + `]/;`:           false,
		strings.Repeat(`x=/[!-\uffff]/;`, 100):                          true,
		strings.Repeat(`x=/(?=b)[a-z0-9\u00c0-\u024f]/i;`, 1000):        true,
		strings.Repeat(`x=/(?=b)[\ud83d\ude00-\ud83d\ude4f]/iu;`, 1000): true,
		strings.Repeat(`x=/(?=b)[\u4e00-\u9fff]/i;`, 100):               true,
		`x=/` + strings.Repeat(`\u{`, 2000) + `/i;`:                     true,
	} {
		_, problems := Compile(source.Source{Name: "t", Text: diag.WholeFile("t.js", body)})
		refused := strings.Contains(fmt.Sprint(problems), "the ranges in classes")
		if refused == fits {
			t.Errorf("%.60s… of %d bytes: %.200v", body, len(body), problems)
		}
	}
}
