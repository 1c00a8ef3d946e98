package compiler

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/js/syntax"
	"github.com/mcpd/mcpd/scripting/source"
)

func TestMembers_unknown(t *testing.T) {
	for _, c := range []struct {
		name, body string
		kind       source.Kind
		want       []string // position, summary, and advice
	}{
		{"a level of the log", "log.err('x'); return 1", source.Tool, []string{
			`tools.d/t.hcl:5:5 "err": warning: log has no member "err"`, `did you mean "error"? there is debug, info, warn, error`}},
		{"a method of console", "console.table([1]); return 1", source.Tool, []string{
			`tools.d/t.hcl:5:9 "table": warning: console has no member "table"`, `there is debug, error, info, log, trace, warn`}},
		{"content", "return content.texts('x')", source.Tool, []string{
			`tools.d/t.hcl:5:16 "texts": warning: content has no member "texts"`, `did you mean "text"? there is text, image, audio, resource, link, structured`}},
		{"crypto", "return crypto.randomUuid()", source.Tool, []string{
			`tools.d/t.hcl:5:15 "randomUuid": warning: crypto has no member "randomUuid"`, `did you mean "randomUUID"? there is randomUUID, getRandomValues, subtle`}},
		{"crypto.subtle", "return crypto.subtle.encrypt()", source.Tool, []string{
			`tools.d/t.hcl:5:22 "encrypt": warning: crypto.subtle has no member "encrypt"`, `there is digest, importKey, sign, verify`}},
		{"the agent", "return agent.id", source.Tool, []string{
			`tools.d/t.hcl:5:14 "id": warning: agent has no member "id"`, `there is agent_id, model, request_id, metadata, verified`}},
		{"the call", "const { tol } = call; return tol", source.Tool, []string{
			`tools.d/t.hcl:5:9 "tol": warning: call has no member "tol"`, `did you mean "tool"? there is id, tool, via, deadline, depth, parent`}},
		{"the event of a hook", "log.warn(event.err.code)", source.Hook, []string{
			`tools.d/t.hcl:5:16 "err": warning: event has no member "err"`,
			`did you mean "error"? there is kind, phase, tool, uri, call_id, root_id, leg, outcome, cached, via, depth, parent, parent_id, principal, agent, arguments, result, error, cancelled_by, cancel_reason, duration_ms, revision`}},
		{"a request without its grant", "return http.get('/x')", source.Tool, []string{
			`tools.d/t.hcl:5:13 "get": error: http.get is not granted`,
			`requests are made through a grant: write http.crm.get(...); granted is crm`}},
		{"a method of a grant", "return http.crm.fetch('/x')", source.Tool, []string{
			`tools.d/t.hcl:5:17 "fetch": warning: http.crm has no member "fetch"`, `did you mean "patch"? there is get, post, put, patch, delete, request`}},
		{"members that exist", "log.info(call.id, agent.metadata.team, JSON.stringify({})); return crypto.subtle.digest('SHA-1', input.x)", source.Tool, nil},
		{"a member of a response", "const r = await http.crm.get('/x'); return r.ok && r.data", source.Tool, []string{
			`tools.d/t.hcl:5:54 "data": warning: a response has no member "data"`, `there is status, ok, url, headers, text, json, bytes`}},
		{"a method of headers", "const r = await http.crm.get('/x'); return r.headers.get('date') ?? r.headers.date", source.Tool, []string{
			`tools.d/t.hcl:5:54 "get": warning: the headers of a response have no method "get"`, `they are an object with names in lower case: write r.headers["content-type"]`}},
		{"headers of something else", "const r = { headers: new Map() }; return r.headers.get('date')", source.Tool, nil},
		{"a member of a form", "const r = await elicit({ message: 'a', schema: {} }); return r.ok", source.Tool, []string{
			`tools.d/t.hcl:5:64 "ok": warning: what elicit answers has no member "ok"`, `there is action, content`}},
		{"a member of what a model writes", "return (await sample({ prompt: 'a' })).text", source.Tool, []string{
			`tools.d/t.hcl:5:40 "text": warning: what sample answers has no member "text"`, `there is role, content, model, stopReason, _meta`}},
		{"a member of an answer that is taken apart", "const { contents } = await elicit({ message: 'a', schema: {} }); return contents", source.Tool, []string{
			`tools.d/t.hcl:5:9 "contents": warning: what elicit answers has no member "contents"`, `did you mean "content"? there is action, content`}},
		{"answers of many forms", "const r = await ask({ ok: elicit.form({ message: 'a', schema: {} }) }); const l = await roots(); return r.ok && l.length", source.Tool, nil},
		{"a variable that is no answer any more", "let r = await elicit({ message: 'a', schema: {} }); r = { ok: 1 }; return r.ok", source.Tool, nil},
		{"a second variable of the name", "const r = await elicit({ message: 'a', schema: {} }); return [r.content].map((r) => r.ok)", source.Tool, nil},
		{"a member that the script gives an answer", "const r = await http.crm.get('/x'); r.data = r.json(); return r.data", source.Tool, nil},
		{"a member that the script makes", "console.table = console.log; console.table(1); return 1", source.Tool, nil},
		{"an object of its own", "const log = { err() {} }; log.err(); return 1", source.Tool, nil},
		{"what every object has", "return log.toString()", source.Tool, nil},
	} {
		src := tool(c.body)
		src.Kind = c.kind
		for _, asked := range []string{"ask", "elicit", "sample", "roots"} {
			src.Objects = append(src.Objects, source.Object{Kind: "ask", Name: asked})
		}
		_, list := Compile(src)
		got := formatDiagnostics(src, list)
		if len(list) == 1 {
			got = append(got, list[0].Detail)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestTypeScript_inJavaScript(t *testing.T) {
	const advice = "it looks like TypeScript: start the script with <<TS instead of <<JS"
	padding := make([]byte, maxWithoutTrial)
	for i := range padding {
		padding[i] = ' '
	}
	for _, c := range []struct{ name, body, where, detail string }{
		{"a type", "const a = 1;\nconst x: string = 'a';", `6:8 ":"`, advice},
		{"an interface", "interface A { b: string }\nreturn 1", `5:11 "A"`, advice},
		{"a cast", "return input.x as string;", `5:16 "as"`, advice},
		{"a parameter", "const f = (a: number) => a; return f(1)", `5:13 ":"`, advice},
		{"an enum", "enum A { B }", `5:1 "enum"`, advice},
		{"a type in a large script", "const x: string = 'a';" + string(padding), `5:8 ":"`, advice},
		{"a type beside an import", "import a from './a.js'; const x: string = a;", `5:32 ":"`, advice},
		{"a mistake in both", "const x: string = ;", `5:8 ":"`, correctIt},
		{"a mistake in JavaScript", "const a = 1;\nreturn a +;", `6:11 ";"`, "a value is missing between + and ;"},
	} {
		src := tool(c.body)
		src.Import = importing(map[string]string{"a.js": "export default 1"})
		_, list := Compile(src)
		if len(list) == 0 {
			t.Errorf("%s: no error was found", c.name)
			continue
		}
		got := formatDiagnostics(src, list)[0]
		if want := "tools.d/t.hcl:" + c.where; len(got) < len(want) || got[:len(want)] != want || list[0].Detail != c.detail {
			t.Errorf("%s: got %s (%s), want %s (%s)", c.name, got, list[0].Detail, want, c.detail)
		}
	}
	src := tool("const x: string = 'a';")
	src.Path = "scripts/x.mjs"
	if _, list := Compile(src); list[0].Detail != "it looks like TypeScript: call the file .ts instead of .mjs" {
		t.Errorf("in a file: %v", list)
	}
}

func TestConcatLoop_warns(t *testing.T) {
	for _, body := range []string{
		`let s = ""; for (const x of input.list) s += x; return s`,
		`let s = ''; for (let i = 0; i < input.n; i++) { if (i > 0) s += ","; s += i } return s`,
		"let s = `#`; let i = 0; while (i++ < 5000) { s = s + '-' + i } return s",
		`let s = ""; do { s += "x" } while (s.length < input.n); return s`,
		`let s = ""; function f(list) { for (const x of list) { s += x } } f(input.list); return s`,
		`let s = ""; input.list.forEach((x) => { s += x }); return s`,
		`let s = ""; input.list.forEach(function (x) { if (x) s = s + x }); return s`,
		`async function f() { let s = ""; for (const x of await input.list) { for (const y of ["a", "b"]) s += y + x } return s } return f()`,
	} {
		p, list := Compile(tool(body))
		if p == nil || len(list) != 1 || list[0].Code != "script-slow" || list[0].Summary != "s grows in a loop, which copies all of it each time" {
			t.Errorf("%s: %v", body, list)
		}
	}
	for _, body := range []string{
		`let n = 0; for (const x of input.list) n += x; return n`,
		`for (const x of input.list) { let s = ""; s += x; log.info(s) } return 1`,
		`let s = ""; for (let i = 0; i < 10; i++) s += i; return s`,
		`let s = String(input.n); while (s.length < 8) s = "0" + s; return s`,
		`let s = "0"; while (s.length < 8) s += "0"; return s`,
		`let s = ""; for (const x of ["a", "b"]) s += x; return s`,
		`let s = ""; ["a", "b"].forEach((x) => { s += x }); return s`,
		`input.list.forEach((x) => { let s = ""; s += x; log.info(s) }); return 1`,
		`let s = ""; for (const k in input) s += k; return s`,
		`let s = ""; for (const x of input.list) s = x + 1; return s`,
		`let s = ""; s += "a"; for (const x of input.list) log.info(x); s += "b"; return s`,
		`let s = ""; for (const x of input.list) later(() => { s += x }); function later(f) { f() } return s`,
		`for (const x of input.list) { let s = 1; s += x } { let s = ""; s += "a" } return 1`,
	} {
		if _, list := Compile(tool(body)); len(list) > 0 {
			t.Errorf("%s: %v", body, list)
		}
	}
}

// typed returns a TypeScript source, padded with white space.
func typed(body string, space int) source.Source {
	src := tool(body + strings.Repeat(" ", space))
	src.Language = source.TS
	return src
}

// errorsOf returns the errors of a script.
func errorsOf(src source.Source, list diag.List) []string {
	return formatDiagnostics(src, slices.DeleteFunc(list, func(d diag.Diagnostic) bool { return d.Severity != diag.Error }))
}

// tokenErrors returns the diagnostics for the tokens of a large script, before it is lowered.
func tokenErrors(body string, language source.Language) []string {
	src := typed(body, maxFullCheck)
	src.Language = language
	c := newCompilation(src, src.Text.Body(), nil)
	found, refused := syntax.Check(c.src.Text.Body(), language == source.TS)
	if refused != nil || !c.checkTokens(found) {
		return nil
	}
	return errorsOf(c.src, c.list.Sort())
}

func TestTokens_likeTree(t *testing.T) {
	for _, body := range []string{
		"vars.nope", "1;vars.nope", "{vars.nope}", "if (1) {} vars.nope", "call.id()\nvars.nope", "const a = vars.nope", "log.info(vars.nope)",
		"return vars?.nope", "fetch('x')", "const a = await fetch('x'), b = 1", "log.info(require('x'))", "return eval('x')", "return elicit('x')",
		"process.exit()", "return http.nope.get('x')", "vars.stage; vars.nope", "return Buffer.from('x'); vars.nope", "vars.stage.nope; return vars.nope",
		"function* f(a) { yield 1 }", "async function f() {}", "async function* f() { yield 1 }", "async a => { return 1 }", "() => { return 1 }",
	} {
		for _, language := range []source.Language{source.JS, source.TS} {
			src := typed(body, 0)
			src.Language = language
			_, list := Compile(src)
			want := errorsOf(src, list)
			if diff := cmp.Diff(want, tokenErrors(body, language)); diff != "" || len(want) == 0 {
				t.Errorf("%s (-tree +tokens):\n%s", body, diff)
			}
		}
	}
}

func TestTokens_privateNames(t *testing.T) {
	for _, body := range []string{
		"class A { #a = 1; b() { return this.#c } } return new A().b()", "class A { b(o) { return #a in o && o } } return new A()",
		"class A { b(o) { return o?.#a + o.#b } } return new A()",
	} {
		src := typed(body, 0)
		_, list := Compile(src)
		want := errorsOf(src, list)
		if diff := cmp.Diff(want, tokenErrors(body, source.TS)); diff != "" || len(want) == 0 {
			t.Errorf("%s (-tree +tokens):\n%s", body, diff)
		}
	}
}

func TestTokens_noFalseErrors(t *testing.T) {
	for _, body := range []string{
		"class A { #a = 1; static #b() { return #a in A && A.#c } static get #c() { return 1 } static d() { return A?.#b() } } return A.d()",
		"return vars.stage", "vars.nope = 1; return vars.nope", "return vars.toString()", "return http.crm.get('x')",
		"const fetch = (a: string) => a; fetch('x')", "function fetch(a: string) { return a } fetch('x')", "let fetch; return fetch('x')",
		"const { fetch } = input; return fetch('x')", "const f = (fetch: any) => { return fetch('x') }; return f(1)", "try {} catch (fetch) { return fetch('x') }",
		"const a = { fetch(b: string) { return b }, require }; return a", "interface A { fetch(b: string): void; require(b: string): void }; return 1",
		"abstract class A { abstract fetch(b: string): void; fetch2(): void; require(b: string): void {} }; return new A()",
		"type A = vars.B; return 1", "let a: fetch.B | eval\n(1)", "type A<B = vars.C> = B; return 1", "let a: { b: process.C }; return a",
		"import vars = input.vars; return vars.nope", "namespace process { export const b = 1 } return process.b", "typeof fetch === 'function' && fetch('x')",
		"return typeof fetch('x')", `const f\u0065tch = (a: string) => a; fetch('x')`, "return { a: fetch => { return fetch('x') } }",
		"return a.fetch('x')", "return input.vars.nope", "log.info(`${vars.stage}`)", "type A = `${vars.B}`; return 1",
		"function f() {} return 1", "function f() {}\nf()", "async\nfunction f() {}", "() => ({})",
	} {
		for _, language := range []source.Language{source.JS, source.TS} {
			if got := tokenErrors(body, language); got != nil {
				t.Errorf("%s: reported %q", body, got)
			}
		}
	}
}

// TestAnalysis_allNodes puts a misspelled variable everywhere. Nodes that the analysis does not
// reach are neither checked nor get globals.
func TestAnalysis_allNodes(t *testing.T) {
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
		_, problems := Compile(source.Source{
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
