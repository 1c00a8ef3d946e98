package scripting

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/js/esbuild"
)

// codeOf returns the source of code with a few tools.
func codeOf(text string) Source {
	src := Source{
		Name: "run_code", Kind: Code, Text: diag.WholeFile("code", text), Transpiler: esbuild.New(),
		Members: []Member{{Group: "crm", Name: "get_customer", Tool: "crm_get_customer"}, {Group: "crm", Name: "list", Tool: "crm_list"}, {Group: "crm", Name: "gone", Tool: "crm_gone"}, {Group: "console", Name: "log", Tool: "crm_list"}},
	}
	for _, name := range []string{"search_web", "read_file", "crm_get_customer", "crm_list", "any-name", "JSON", "delete", "screenshot", "fail", "print", "crm"} {
		src.Objects = append(src.Objects, Object{Kind: "tools", Name: name})
	}
	return src
}

// toolHost is a host with tools.
func toolHost() *fakeHost {
	return &fakeHost{answer: func(_ context.Context, op string, payload []byte) ([]byte, error) {
		if op != "call" {
			return nil, nil
		}
		var call struct {
			Tool      string
			Arguments json.RawMessage
		}
		if err := json.Unmarshal(payload, &call); err != nil {
			return nil, err
		}
		switch call.Tool {
		case "search_web":
			return []byte(`[{"title":"a"},{"title":"b"},{"title":"c"},{"title":"d"},{"title":"e"}]`), nil
		case "read_file":
			return []byte(`"{...}"`), nil
		case "fail":
			return nil, &HostError{Code: "POLICY_DENIED", Message: "not today"}
		case "screenshot":
			return []byte(`[{"type":"text","text":"a page"},{"type":"image","data":"AAAA","mimeType":"image/png"}]`), nil
		}
		return json.Marshal(struct {
			Tool      string          `json:"tool"`
			Arguments json.RawMessage `json:"arguments"`
		}{call.Tool, call.Arguments})
	}}
}

// ranCode is the end of a run of code, with its effects.
type ranCode struct {
	Ended, Stdout string
	Calls         []string // of tools, sorted
}

// runCode compiles and runs code.
func runCode(t testing.TB, text string) ranCode {
	t.Helper()
	src := codeOf(text)
	p, list := Compile(src)
	if p == nil {
		first := list[0]
		for _, d := range list {
			if d.Severity == diag.Error {
				first = d
				break
			}
		}
		return ranCode{Ended: "refused: " + strings.TrimPrefix(diag.Printable(first.String()), "code:")}
	}
	return ranOf(t, p)
}

func ranOf(t testing.TB, p *Program) ranCode {
	t.Helper()
	host := toolHost()
	out := runWith(t, call(p, ``), host)
	ran := ranCode{Ended: shown(out), Stdout: out.Stdout}
	if f := out.Failure; f != nil {
		ran.Ended = "throws " + f.Name + ": " + f.Message
		if f.Kind != Thrown {
			ran.Ended = "ends by " + f.Kind.String() + ": " + f.Message
		}
	}
	for _, asked := range host.calls() {
		op, payload, _ := strings.Cut(asked, " ")
		switch op {
		case "call":
			ran.Calls = append(ran.Calls, strings.TrimPrefix(payload, `{"tool":`))
		case "console":
		default:
			t.Errorf("the host got %s", asked)
		}
	}
	slices.Sort(ran.Calls) // concurrent calls come in any order
	return ran
}

// The second example of the RFC of code mode, with calls in JavaScript.
const ofTheRFC = "// Tools are already available, just use them directly\n" +
	"results = await search_web({ query: \"Python async patterns\", max_results: 5 })\n" +
	"print(`Found ${results.length} results`)\n\n" +
	"// Read configuration\n" +
	"config = await read_file({ path: \"/workspace/config.json\" })\n" +
	"print(`Config: ${config}`)\n"

func TestCode_designExample(t *testing.T) {
	want := ranCode{"nothing", "Found 5 results\nConfig: {...}\n", []string{
		`"read_file","arguments":{"path":"/workspace/config.json"}}`, `"search_web","arguments":{"query":"Python async patterns","max_results":5}}`,
	}}
	if diff := cmp.Diff(want, runCode(t, ofTheRFC)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCode_implicitResult(t *testing.T) {
	for _, c := range []struct{ code, want string }{
		{"1 + 1", "2"},
		{"const a = 1\na", "1"},
		{"({ a: 1 })", `{"a":1}`},
		{"{ const a = 1; a }", "1"},
		{"{}", "nothing"},
		{"return 5", "5"},
		{"if (true) return 5\n6", "5"},
		{"5;;", "5"},
		{"", "nothing"},
		{"// nothing", "nothing"},
		{"const a = 1", "nothing"},
		{"if (true) { 5 }", "5"},
		{"if (false) 5\nelse if (true) { 6; }\nelse 7", "6"},
		{"if (false) { 5 }", "nothing"},
		{"try { await crm.list(); 5 } catch (e) { 6 }", "5"},
		{"try { throw 5 } catch (e) { [e] } finally { 7 }", "[5]"},
		{"try { null.x } catch { 'no' }", `"no"`},
		{"for (const a of [1, 2]) { a }", "nothing"},
		{"let n: number = 1\nif (n) { n as number } else { 2 }", "1"},
		{"'use strict'", `"use strict"`},
		{"x = 5", "5"},
		{"crm.list()", `{"tool":"crm_list","arguments":{}}`},
		{"Promise.resolve(5)", "5"},
		{"const f = async () => 5\nf()", "5"},
		{"async function main() { return 5 }\nmain()", "5"},
		{"(async () => { return 5 })()", "5"},
		{"async function* g() { yield 5 }\nlet last\nfor await (const x of g()) last = x\nlast", "5"},
		{"interface A { b: number }\nconst a: A = { b: 5 }\na.b as number", "5"},
		{"enum E { A = 5 }\nE.A", "5"},
		{"function f() { return 1 }\n(() => f)", "nothing"},
	} {
		if got := runCode(t, c.code).Ended; got != c.want {
			t.Errorf("%s: got %s, want %s", c.code, got, c.want)
		}
	}
}

func TestCode_toolNames(t *testing.T) {
	for _, c := range []struct{ code, want string }{
		{"search_web({ q: 1 })", `"search_web","arguments":{"q":1}}`},
		{"tools.search_web({ q: 1 })", `"search_web","arguments":{"q":1}}`},
		{`tools["any-name"]({ q: 1 })`, `"any-name","arguments":{"q":1}}`},
		{"crm.get_customer({ id: 1 })", `"crm_get_customer","arguments":{"id":1}}`},
		{"crm_get_customer({ id: 1 })", `"crm_get_customer","arguments":{"id":1}}`},
		{"const { list } = crm; list()", `"crm_list","arguments":{}}`},
		{"tools.JSON()", `"JSON","arguments":{}}`},
		{"tools.delete()", `"delete","arguments":{}}`},
		{"tools.print({})", `"print","arguments":{}}`},
		{"tools.crm({})", `"crm","arguments":{}}`},
		{"search_web(undefined)", `"search_web","arguments":{}}`},
		{"globalThis.search_web({})", `"search_web","arguments":{}}`},
		{"globalThis['crm'].list({})", `"crm_list","arguments":{}}`},
	} {
		ran := runCode(t, "await "+strings.Replace(c.code, "const { list } = crm; list()", "(({ list }) => list())(crm)", 1))
		if diff := cmp.Diff([]string{c.want}, ran.Calls); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", c.code, ran.Ended, diff)
		}
	}
	for _, c := range []struct{ code, want string }{
		{"[typeof JSON.parse, typeof print, typeof crm, typeof console.log]", `["function","function","object","function"]`},
		{"[tools.search_web === search_web, crm.list === tools.crm_list, search_web.name]", `[true,true,"search_web"]`},
		{"const search_web = () => 7\nsearch_web()", "7"},
		{"search_web = 7\nsearch_web", "7"},
		{"Object.keys(crm)", `["get_customer","list"]`},
	} {
		if got := runCode(t, c.code).Ended; got != c.want {
			t.Errorf("%s: got %s, want %s", c.code, got, c.want)
		}
	}
}

func TestIsCodeName(t *testing.T) {
	for name, want := range map[string]bool{
		"search_web": true, "$x": true, "a1": true, "fetch": true, "type": true, "of": true,
		"": false, "1a": false, "any-name": false, "a.b": false, "ä": false, "JSON": false, "tools": false, "print": false, "parallel": false,
		"console": false, "delete": false, "await": false, "let": false, "undefined": false, "globalThis": false, "require": false,
		"HostError": false, "arguments": false, "eval": false, "$mcpd$body$": false, "async": false,
	} {
		if got := IsCodeName(name); got != want {
			t.Errorf("%q: got %t, want %t", name, got, want)
		}
	}
}

func TestCode_toolError(t *testing.T) {
	ran := runCode(t, "try { await fail() } catch (e) { return [e.name, e.code, e.tool, e.message, e instanceof HostError, e instanceof Error] }")
	if want := `["HostError","POLICY_DENIED","fail","not today",true,true]`; ran.Ended != want {
		t.Errorf("got %s, want %s", ran.Ended, want)
	}
	p, _ := Compile(codeOf("print('before')\nawait fail({})"))
	out := runWith(t, call(p, ``), toolHost())
	if f := out.Failure; f == nil || f.Kind != Thrown || f.Code != "POLICY_DENIED" || f.Tool != "fail" || f.Name != "HostError" {
		t.Errorf("got %+v", out.Failure)
	}
	want := "HostError: not today (POLICY_DENIED of fail)\n  at 2:7\n    2 | await fail({})\n      |       ^^^^"
	if diff := cmp.Diff(want, out.Failure.Explain()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if out.Stdout != "before\n" {
		t.Errorf("stdout %q", out.Stdout)
	}
}

func TestCode_undefinedNameSuggestsTool(t *testing.T) {
	for _, c := range []struct{ code, want string }{
		{"serch_web({})", "throws ReferenceError: serch_web is not defined; did you mean search_web?"},
		{"get_customer({})", "throws ReferenceError: get_customer is not defined; did you mean crm.get_customer?"},
		{"any_name({})", `throws ReferenceError: any_name is not defined; did you mean tools["any-name"]?`},
		{"quite_other({})", "throws ReferenceError: quite_other is not defined"},
		{"try { serch_web({}) } catch (e) { return [e.name, e.message] }", `["ReferenceError","serch_web is not defined; did you mean search_web?"]`},
		{"typeof serch_web", `"undefined"`},
		{"import numpy as np\nnp.array([1])", "throws ReferenceError: np is not defined: its import was removed, and nothing can be imported"},
		{"crm.get_custmer({})", `refused: 1:5: error: crm has no tool "get_custmer"; did you mean "get_customer"?`},
		{"tools.get_customer({})", `refused: 1:7: error: tools has no tool "get_customer"; did you mean crm.get_customer?`},
		{`tools["serch_web"]({})`, `refused: 1:7: error: tools has no tool "serch_web"; did you mean "search_web"?`},
		{"const crm = { lst: () => 1 }\ncrm.lst()", "1"},
	} {
		if got := runCode(t, c.code).Ended; got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.code, got, c.want)
		}
	}
}

func TestCode_undeclaredAssignment(t *testing.T) {
	for _, c := range []struct{ code, want string }{
		{"x = 1\nx", "1"},
		{"x = 1\nx += 1\nx", "2"},
		{"[a, { b, c: d = 3 }] = [1, { b: 2 }];\n[a, b, d]", "[1,2,3]"},
		{"for (i = 0; i < 3; i++);\ni", "3"},
		{"for (k of [1, 2]);\nk", "2"},
		{"const f = () => { y = 5 }\nf()\ny", "5"},
		{"[1].map((x) => x)\nx = 5\nx", "5"},
		{"{ let x = 1; x = 2 }\nx = 3\nx", "3"},
		{"var x\nx = 5\nx", "5"},
		{"let x = 1\nx = 5\nx", "5"},
		{"{ var x = 1 }\nx = 5\nx", "5"},
		{"x += 1", "throws ReferenceError: x is not defined"},
		{"const x: number = 1\ny = x\ny", "1"},
		{"const x = 1\nx = 2", "throws TypeError: Assignment to constant variable."},
	} {
		if got := runCode(t, c.code).Ended; got != c.want {
			t.Errorf("%s: got %s, want %s", c.code, got, c.want)
		}
	}
}

func TestScript_noCodeFeatures(t *testing.T) {
	if out := runScript(t, "return typeof print + typeof parallel", `{}`); out.Stdout != "" {
		t.Errorf("printed %q", out.Stdout)
	}
	for _, body := range []string{"x = 1", "return search_web"} {
		if _, list := Compile(tool(body)); !list.HasErrors() {
			t.Errorf("%s was compiled", body)
		}
	}
	if out := runScript(t, "console.log('x')", `{}`); out.Stdout != "" {
		t.Errorf("printed %q", out.Stdout)
	}
}

func TestParallel_order(t *testing.T) {
	for _, c := range []struct{ code, want string }{
		{"parallel([])", "[]"},
		{"parallel([1, Promise.resolve(2), () => 3, async () => 4, () => Promise.resolve(5)])", "[1,2,3,4,5]"},
		{"parallel([new Promise((r) => setTimeout(() => r('late'), 2)), 'early'])", `["late","early"]`},
		{"parallel([() => crm.list({ a: 1 }), crm.list({ b: 1 })])", `[{"tool":"crm_list","arguments":{"a":1}},{"tool":"crm_list","arguments":{"b":1}}]`},
		{"parallel([, 1])", "[null,1]"},
		{"parallel([1, 2].map((n) => () => n + 1))", "[2,3]"},
		{"const [a, b] = await parallel([1, 2])\na + b", "3"},
	} {
		if got := runCode(t, c.code).Ended; got != c.want {
			t.Errorf("%s: got %s, want %s", c.code, got, c.want)
		}
	}
}

// The first failure counts, but the other calls are awaited, so that nothing continues afterwards.
func TestParallel_failsLast(t *testing.T) {
	const code = `let n = 0
const slow = () => new Promise((r) => setTimeout(() => { n++; r() }, 2))
try {
  await parallel([slow, () => { throw new Error("first") }, slow, Promise.reject(new Error("second"))])
} catch (e) {
  return [e.message, n]
}`
	if got := runCode(t, code).Ended; got != `["first",2]` {
		t.Errorf("got %s", got)
	}
}

func TestParallel_concurrent(t *testing.T) {
	var open atomic.Int32
	together := make(chan struct{})
	host := &fakeHost{answer: func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
		if open.Add(1) == 3 {
			close(together)
		}
		select {
		case <-together:
		case <-ctx.Done():
		}
		return []byte("1"), ctx.Err()
	}}
	out := runWith(t, call(compiled(t, codeOf("await parallel([crm.list(), () => crm.list(), search_web()])")), ``), host)
	if got := shown(out); got != "[1,1,1]" {
		t.Errorf("got %s", got)
	}
}

func TestCode_toolContent(t *testing.T) {
	const text, image = `{"type":"text","text":"a page"}`, `{"type":"image","data":"AAAA","mimeType":"image/png"}`
	for _, c := range []struct{ code, want string }{
		{"await screenshot()", "content [" + text + "," + image + "] "},
		{"screenshot()", "content [" + text + "," + image + "] "},
		{"(await screenshot())[1]", "content [" + image + "] "},
		{"(await screenshot()).filter((b) => b.type === 'image')", "content [" + image + "] "},
		{"const s = await screenshot();\n[...s, ...s]", "content [" + text + "," + image + "," + text + "," + image + "] "},
		{"({ title: 'x', shot: await screenshot() })", "content [" + image + `] {"title":"x","shot":[` + text + `,{"type":"image","block":0}]}`},
		{"const [, a] = await screenshot();\n({ a, b: a, n: null, u: undefined })", "content [" + image + "," + image + `] {"a":{"type":"image","block":0},"b":{"type":"image","block":1},"n":null}`},
		{"const [, a] = await screenshot();\n[1, a]", "content [" + image + `] [1,{"type":"image","block":0}]`},
		{"(await screenshot())[0].text", `"a page"`},
		{"({ deep: { shot: (await screenshot())[1] } })", `{"deep":{"shot":` + image + `}}`},
		{"({ note: (await screenshot())[0] })", `{"note":` + text + `}`},
		{"({ copy: { ...(await screenshot())[1] } })", `{"copy":` + image + `}`},
		{"[{ type: 'text', text: 'mine' }]", `[{"type":"text","text":"mine"}]`},
		{"await parallel([screenshot(), crm.list()])", "content [" + image + "] [[" + text + `,{"type":"image","block":0}],{"tool":"crm_list","arguments":{}}]`},
		{"[[await screenshot()]]", "[[[" + text + "," + image + "]]]"},
	} {
		if got := runCode(t, c.code).Ended; got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.code, got, c.want)
		}
	}
}

func TestCode_contentBlocks(t *testing.T) {
	for _, c := range []struct {
		answer string
		want   bool
	}{
		{`[{"type":"text","text":"a"}]`, true},
		{`[{"type":"audio","data":"AA","mimeType":"audio/wav"}]`, true},
		{`[{"type":"resource","resource":{"uri":"a:b","text":"c"}},{"type":"resource","resource":{"uri":"a:b","blob":"AA"}}]`, true},
		{`[{"type":"resource_link","uri":"a:b","name":"c"}]`, true},
		{`[{"type":"text","text":"a"},{"title":"b"}]`, false},
		{`[{"type":"text"}]`, false},
		{`[{"type":"image","data":"AA"}]`, false},
		{`[{"type":"resource","resource":{"uri":"a:b"}}]`, false},
		{`[{"type":"resource_link","uri":"a:b"}]`, false},
		{`[{"type":"dog","text":"a"}]`, false},
		{`[{"type":1}]`, false},
		{`[]`, false},
		{`{"type":"text","text":"a"}`, false},
		{`["text"]`, false},
	} {
		out := runWith(t, call(compiled(t, codeOf("await crm.list()")), ``), &staticHost{[]byte(c.answer)})
		if got := out.Result != nil && out.Result.Kind == Content; got != c.want {
			t.Errorf("%s: content %t", c.answer, got)
		}
	}
}

// TestImports_runAndKeepPlaces runs code with all forms of imports. None prevents the run, and
// later errors have the correct positions.
func TestImports_runAndKeepPlaces(t *testing.T) {
	for _, statement := range []string{
		"import os", "import os as x", "import os # x", "import os as x # it's `x", "import a.b as c", "from x import (a, # b\n  b)", "from x import a, \\\n  b", "import 'x';", "import type { A } from 'y'",
		"import('os')", "await import(\"os\")", "const os = await import('os')", "const { a } = await import('os'), b = require('b')", "const n = 'x', m = await import(n)",
		"await Promise.all([import('a'), import('b')])", "if (await import('x')) { }", "let os; try { os = await import('os') } catch {}", "let s: import('fs').Stats", "f = import.meta.url", "import ü from 'ß'",
		"const t = require('fs')?.readFileSync('x')", "try { require('fs').readFileSync('x') } catch {}", "let name = 'x', r = [require(name)]",
		"async function g() {\n  import os\n  return await import('ß')\n}",
	} {
		if got := runCode(t, statement+"\nawait search_web({ query: 'a' })").Ended; !strings.HasPrefix(got, `[{"title":"a"}`) {
			t.Errorf("%q: %s", statement, got)
		}
		lines := strings.Count(statement, "\n")
		for _, row := range []struct{ code, want string }{
			{statement + "\n  const b = ;", fmt.Sprintf("%d:13", lines+2)},
			{statement + "\n  nothing_there", fmt.Sprintf("%d:3", lines+2)},
		} {
			src := codeOf(row.code)
			p, list := Compile(src)
			got := ""
			for _, d := range list {
				if d.Severity == diag.Error {
					got = fmt.Sprintf("%d:%d", d.Range.Start.Line, d.Range.Start.Column)
				}
			}
			if p != nil {
				if f := runWith(t, call(p, ``), toolHost()).Failure; f != nil && len(f.Stack) > 0 {
					got = fmt.Sprintf("%d:%d", f.Stack[0].Range.Start.Line, f.Stack[0].Range.Start.Column)
				}
			}
			if got != row.want {
				t.Errorf("%q: the error is at %s, want %s", row.code, got, row.want)
			}
		}
	}
	for code, want := range map[string]string{
		"import os; const b = ;":                           "1:22",
		"import ü from 'ß'; const b = ;":                   "1:30",
		"f(import('ß')); const b = ;":                      "1:27",
		"import os; # c\nawait import('x'); ;;const b = ;": "2:32",
	} {
		_, list := Compile(codeOf(code))
		got := ""
		for _, d := range list {
			if d.Severity == diag.Error {
				got = fmt.Sprintf("%d:%d", d.Range.Start.Line, d.Range.Start.Column)
			}
		}
		if got != want {
			t.Errorf("%q: the error is at %s, want %s", code, got, want)
		}
	}
}

// FuzzCode checks that compiling terminates, and that ranges are in the code.
func FuzzCode(f *testing.F) {
	for _, seed := range []string{ofTheRFC, "search_web(a=1)", "import os\nx = 5", "async function* g() {}\n1", "const a: number = 1", "for (x of []) {}", "({a} = 1)", "print(f'x')", "\v\n0", "\u00a0\n```", "import\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		src := codeOf(text)
		p, list := Compile(src)
		if (p == nil) != list.HasErrors() {
			t.Fatalf("%q: a program %t, and %v", text, p != nil, list)
		}
		for _, d := range list {
			if start, end := d.Range.Start.Byte, d.Range.End.Byte; start < 0 || end < start || end > len(text) {
				t.Fatalf("%q: %v is at %d to %d", text, d, start, end)
			}
		}
		_ = Explain(src.Text, list)
		if p == nil {
			return
		}
		data, err := p.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		if again, err := UnmarshalProgram(data, src.Transpiler); err != nil || again.Hash() != p.Hash() {
			t.Fatalf("%q in another process: %v", text, err)
		}
	})
}

// The removed text would differ in another process, where JSON cannot have it.
func TestCode_invalidUTF8(t *testing.T) {
	for code, want := range map[string]string{
		"import\xff":                 "1:7",
		"import x from '\xff'\n1":    "1:16",
		"```\xff\n1\n```":            "1:4",
		"const a = 1 // \xff\nawait": "1:16",
	} {
		p, list := Compile(codeOf(code))
		if p != nil || len(list) != 1 || fmt.Sprintf("%d:%d", list[0].Range.Start.Line, list[0].Range.Start.Column) != want || !strings.Contains(list[0].Summary, "UTF-8") {
			t.Errorf("%q: %v, want an error at %s", code, list, want)
		}
	}
}

func TestCode_fence(t *testing.T) {
	for _, c := range []struct{ code, want string }{
		{"```js\n1 + 1\n```", "2"},
		{"\n ```javascript \r\n1 + 1\r\n```\r\n\n", "2"},
		{"~~~\nreturn 5\n~~~", "5"},
		{"````typescript\nconst n: number = 5\nn\n````", "5"},
		{"```python\nimport os\nprint(1)\n```", "nothing"},
		{"```\n`${1}`\n```", `"1"`},
		{"```js\n\n```", "nothing"},
		{"~~~js\nconst t = `\n~~~js\nx\n~~~\n`;\nt.length\n~~~", "13"},
		{"```js\nserch_web({})\n```", "throws ReferenceError: serch_web is not defined; did you mean search_web?"},
		{"```js\nconst x = ;\n```", "refused: 2:11: error: unexpected token ;; a value is missing between = and ;"},
		{"const t = `\n~~~js\nx\n~~~\n`\nt.length", "13"},
		{"'```js\\nx\\n```'", `"` + "```js\\nx\\n```" + `"`},
	} {
		if got := runCode(t, c.code).Ended; got != c.want {
			t.Errorf("%q:\ngot  %s\nwant %s", c.code, got, c.want)
		}
	}
}
