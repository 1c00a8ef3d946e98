package scripting

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/diag"
)

// typed returns the source of a TypeScript body, with as much space behind it.
func typed(body string, space int) Source {
	src := tool(body + strings.Repeat(" ", space))
	src.Language = TS
	return src
}

// mistakes are what is told of a body and refuses it.
func mistakes(src Source, list diag.List) []string {
	return told(src, slices.DeleteFunc(list, func(d diag.Diagnostic) bool { return d.Severity != diag.Error }))
}

// early returns what the tokens of a large body tell before it is lowered.
func early(body string, language Language) []string {
	src := typed(body, maxThorough)
	src.Language = language
	c := newCompilation(src, src.Text.Body(), nil)
	found, refused := inspect(c.src.Text.Body(), language)
	if refused != nil || !c.early(found) {
		return nil
	}
	return mistakes(c.src, c.list.Sort())
}

func TestTheTokensTellWhatTheTreeTells(t *testing.T) {
	for _, body := range []string{
		"vars.nope", "1;vars.nope", "{vars.nope}", "if (1) {} vars.nope", "call.id()\nvars.nope", "const a = vars.nope", "log.info(vars.nope)",
		"return vars?.nope", "fetch('x')", "const a = await fetch('x'), b = 1", "log.info(require('x'))", "return eval('x')", "return elicit('x')",
		"process.exit()", "return http.nope.get('x')", "vars.stage; vars.nope", "return Buffer.from('x'); vars.nope", "vars.stage.nope; return vars.nope",
		"function* f(a) { yield 1 }", "async function f() {}", "async function* f() { yield 1 }", "async a => { return 1 }", "() => { return 1 }",
	} {
		for _, language := range []Language{JS, TS} {
			src := typed(body, 0)
			src.Language = language
			_, list := Compile(src)
			want := mistakes(src, list)
			if diff := cmp.Diff(want, early(body, language)); diff != "" || len(want) == 0 {
				t.Errorf("%s (-tree +tokens):\n%s", body, diff)
			}
		}
	}
}

func TestTheTokensTellPrivateNamesThatNoClassDeclares(t *testing.T) {
	for _, body := range []string{
		"class A { #a = 1; b() { return this.#c } } return new A().b()", "class A { b(o) { return #a in o && o } } return new A()",
		"class A { b(o) { return o?.#a + o.#b } } return new A()",
	} {
		src := typed(body, 0)
		_, list := Compile(src)
		want := mistakes(src, list)
		if diff := cmp.Diff(want, early(body, TS)); diff != "" || len(want) == 0 {
			t.Errorf("%s (-tree +tokens):\n%s", body, diff)
		}
	}
}

func TestTheTokensTellNothingThatMayBeRight(t *testing.T) {
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
		for _, language := range []Language{JS, TS} {
			if got := early(body, language); got != nil {
				t.Errorf("%s: told %q", body, got)
			}
		}
	}
}
