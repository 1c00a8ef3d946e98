package compiler

import (
	"regexp"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/scripting/source"
)

// severities returns the severity and the summary of each diagnostic of a
// script.
func severities(src source.Source) string {
	_, list := Compile(src)
	var all []string
	for _, d := range list {
		all = append(all, d.Severity.String()+": "+d.Summary)
	}
	return strings.Join(all, "; ")
}

func TestUnknownInput_severity(t *testing.T) {
	const isError, isWarning = `error: there is no input "nmae"`, `warning: there is no input "nmae"`
	for _, row := range []struct{ name, body, want string }{
		{"read", "return input.nmae", isError},
		{"with a bracket", `return input["nmae"]`, isError},
		{"taken apart", "const { nmae } = input; return nmae", isError},
		{"optional", "return input.nmae?.length", isError},
		{"optional input", "return input?.nmae", isError},
		{"with a default", `return input.nmae ?? "x"`, isError},
		{"in a function", "const f = () => input.nmae; return f()", isError},
		{"beside a whole input", "log.info(JSON.stringify(input)); return { input, n: input.nmae, ...input }", isError},
		{"declared", "return input.name", ""},
		{"made by the script", "input.nmae = 1; return input.nmae", ""},
		{"what objects have", "return input.hasOwnProperty('name')", ""},
		{"asked for", "return 'nmae' in input", ""},
		{"computed", "const key = 'nmae'; return input[key]", ""},
		{"another input", "const f = (input) => input.nmae; return f({ nmae: 1 })", ""},
		{"assigned", "input = { nmae: 1 }; return input.nmae", isWarning},
		{"extended", "Object.assign(input, { nmae: 1 }); return input.nmae", isWarning},
		{"extended by a key", "const key = 'nmae'; input[key] = 1; return input.nmae", isWarning},
		{"known by another name", "const o = input; o.nmae = 1; return input.nmae", isWarning},
		{"read by another name", "const o = input; return o.name + input.nmae", isError},
		{"read by a let", "let o = input; return o?.['name'] + input.nmae", isError},
		{"taken apart by another name", "const o = input; const { name } = o; return name + input.nmae", isError},
		{"logged by another name", "const o = input; log.info('got', o); return o.name + input.nmae", isError},
		{"another name that nothing uses", "const o = input; return input.nmae", isError},
		{"another name, key", "const o = input, k = 'nmae'; o[k] = 1; return input.nmae", isWarning},
		{"another name, compound", "const o = input; o.nmae ??= 1; return input.nmae", isWarning},
		{"another name, step", "const o = input; o.nmae++; return input.nmae", isWarning},
		{"another name, delete", "const o = input; delete o.name; return input.nmae", isWarning},
		{"another name, pattern", "const o = input; [o.nmae] = [1]; return input.nmae", isWarning},
		{"another name, pattern of members", "const o = input; ({ a: o.nmae } = { a: 1 }); return input.nmae", isWarning},
		{"another name, loop", "const o = input; for (o.nmae of [1]) {} return input.nmae", isWarning},
		{"another name, Object.assign", "const o = input; Object.assign(o, { nmae: 1 }); return input.nmae", isWarning},
		{"another name, defineProperty", "const o = input; Object.defineProperty(o, 'nmae', { value: 1 }); return input.nmae", isWarning},
		{"another name, function", "const o = input, f = (x) => { x.nmae = 1 }; f(o); return input.nmae", isWarning},
		{"another name, constructor", "class A { constructor(x) { x.nmae = 1 } } const o = input; new A(o); return input.nmae", isWarning},
		{"another name, member", "const o = input, box = {}; box.o = o; box.o.nmae = 1; return input.nmae", isWarning},
		{"another name, object", "const o = input, box = { o }; box.o.nmae = 1; return input.nmae", isWarning},
		{"another name, list", "const o = input; for (const x of [o]) { x.nmae = 1 } return input.nmae", isWarning},
		{"another name, returned", "const o = input, f = () => o; f().nmae = 1; return input.nmae", isWarning},
		{"another name of another name", "const o = input, p = o; p.nmae = 1; return input.nmae", isWarning},
		{"another name, reassigned", "let o = input; o = o.x ?? o; return input.nmae", isWarning},
		{"another name, default", "const f = (o = input) => { o.nmae = 1 }; f(); return input.nmae", isWarning},
		{"two names in two blocks", "{ const o = input; o.name } { const o = {}; o.nmae = 1 } return input.nmae", isWarning},
		{"handed to a function", "const fill = (o) => { o.nmae = 1 }; fill(input); return input.nmae", isWarning},
	} {
		for _, language := range []source.Language{source.JS, source.TS} {
			src := tool(row.body)
			src.Inputs, src.Language = []string{"name"}, language
			if got := severities(src); got != row.want {
				t.Errorf("%s in %v: %s, want %s", row.name, language, got, row.want)
			}
			src.Path = map[source.Language]string{source.JS: "t.js", source.TS: "t.ts"}[language]
			src.Text = diag.WholeFile("tools.d/"+src.Path, "export default async (args) => { "+regexp.MustCompile(`\binput\b`).ReplaceAllString(row.body, "args")+"\n}")
			if got := severities(src); got != row.want {
				t.Errorf("%s in a module in %v: %s, want %s", row.name, language, got, row.want)
			}
		}
	}
}

func TestUnknownInput_sharedFile(t *testing.T) {
	src := tool("import { size } from './size.js'; return size()")
	src.Inputs = []string{"name"}
	src.Import = importing(map[string]string{"size.js": "export const size = () => input.limit ?? 10"})
	if got, want := severities(src), `warning: there is no input "limit"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestUndefinedName_severity(t *testing.T) {
	const isError, isWarning = "error: totl is not defined", "warning: totl is not defined"
	for _, row := range []struct{ name, body, want string }{
		{"read", "const total = 1; return totl", isError},
		{"called", "return totl()", isError},
		{"assigned", "totl = 1; return 2", isError},
		{"as a member of an object", "return { totl }", isError},
		{"in a template", "return `${totl}`", isError},
		{"in a branch", "if (input.name) { return totl } return 1", isError},
		{"in a function that nothing calls", "const f = () => totl; return 1", isError},
		{"the object of a member", "return totl?.x", isError},
		{"asked for", "return typeof totl === 'undefined' ? 1 : totl", ""},
		{"var behind it", "totl = 1; var totl; return totl", ""},
		{"function behind it", "return totl(); function totl() { return 1 }", ""},
		{"catch parameter", "try { throw new Error('x') } catch (totl) { return totl.message }", ""},
		{"catch pattern", "try { throw new Error('x') } catch ({ message: totl }) { return totl }", ""},
		{"parameter with a default", "const f = (a, totl = a) => totl; return f(1)", ""},
		{"class", "class totl {} return new totl() instanceof totl", ""},
		{"taken apart", "const { name: totl, ...rest } = input; return [totl, rest]", ""},
		{"array pattern", "const [, totl = 1] = [1]; return totl", ""},
		{"loop", "for (const totl of [1]) { log.info(totl) } return 1", ""},
		{"label", "totl: for (;;) { break totl } return 1", ""},
		{"member", "return input.name.totl", ""},
		{"key", "return { totl: 1 }", ""},
		{"named function", "return (function totl(n) { return n ? totl(n - 1) : 0 })(1)", ""},
		{"defined on globalThis", "globalThis.totl = 1; return totl", isWarning},
		{"code of an agent", "", ""},
	} {
		src := tool(row.body)
		src.Inputs = []string{"name"}
		if row.body == "" {
			src, row.want = source.Source{Name: "t", Kind: source.Code, Text: diag.WholeFile("t.js", "totl")}, isWarning
		}
		if got := severities(src); got != row.want {
			t.Errorf("%s: %s, want %s", row.name, got, row.want)
		}
	}
}

func TestNoReturn_severity(t *testing.T) {
	const dropped, nothing = ": the value of the last line is dropped, and the script returns nothing", ": the script returns nothing"
	for _, row := range []struct {
		name, body string
		must       bool
		want       string
	}{
		{"identifier", "const total = 1;\ntotal", false, dropped},
		{"object", "({ total: 1 });", false, dropped},
		{"template", "`total ${input.name}`", false, dropped},
		{"sum", "input.name + 1", false, dropped},
		{"member", "const r = await http.crm.get('/x'); r.status", false, dropped},
		{"pure call", "input.name.split(',').map((n) => n.trim()).join()", false, dropped},
		{"JSON", "JSON.stringify({ a: 1 })", false, dropped},
		{"content", "content.text('a')", false, dropped},
		{"return without a value", "if (!input.name) return;\ninput.name", false, dropped},
		{"return of an inner function", "const f = () => { return 1 }; f()", false, dropped},
		{"outputs and no return", "const total = 1; log.info(total)", true, nothing},
		{"outputs and a request", "await http.crm.post('/x', {})", true, nothing},
		{"outputs and an inner return", "[1].forEach((x) => { return x }); for (const x of [1]) log.info(x)", true, nothing},
		{"outputs and a dropped value", "({ total: 1 })", true, dropped},
		{"returns", "return 1", true, ""},
		{"returns in a branch", "if (input.name) { return { a: 1 } }\nlog.info('x')", true, ""},
		{"throws", "throw new ToolError('no')", true, ""},
		{"throws within", "const fail = () => { throw new Error('x') }; fail()", true, ""},
		{"request", "await http.crm.post('/x', {})", false, nothing},
		{"log", "log.info('x')", false, nothing},
		{"log and a call", "for (const x of [1]) { log.info(x) }\n[1].forEach((x) => log.info(x))", false, nothing},
		{"short circuit", "input.name && log.info('x')", false, nothing},
		{"empty", "", false, nothing},
		{"comment", "// nothing", false, nothing},
		{"declaration", "const a = 1;", false, nothing},
		{"declarations", "const a = input.name; const sum = a + 1;", false, nothing},
		{"declaration of several", "let a, b = input.name", false, nothing},
		{"declaration of a pure call", "const parts = input.name.split(',')", false, nothing},
		{"declaration without a value", "let a;", false, nothing},
		{"declaration with a log", "const a = [1].map((x) => log.info(x))", false, nothing},
		{"declaration with a request", "const r = await http.crm.post('/x', {})", false, nothing},
		{"declaration behind a request", "await http.crm.post('/x', {}); const a = 1", false, nothing},
		{"declaration that waits", "const a = await new Promise(() => {})", false, nothing},
		{"declaration that throws", "const f = () => { throw new Error('x') }; const a = f()", false, ""},
		{"outputs and a declaration", "const a = 1;", true, nothing},
		{"outputs and an if", "const total = 1; if (input.name) { log.info(total) }", true, nothing},
		{"outputs and an else", "if (input.name) log.info('a'); else log.info('b')", true, nothing},
		{"outputs and a loop", "for (const x of [1]) { log.info(x) }", true, nothing},
		{"outputs and a while", "while (input.name) { log.info('x') }", true, nothing},
		{"outputs and a try", "try { log.info('x') } catch { log.info('y') }", true, nothing},
		{"outputs and a switch", "switch (input.name) { case 'a': log.info('x') }", true, nothing},
		{"if", "if (input.name) { log.info('x') }", false, nothing},
		{"assignment", "input.name = 1", false, nothing},
		{"wait", "await new Promise(() => {})", false, nothing},
		{"timer", "setTimeout(() => {}, 1)", false, nothing},
		{"throws within, without outputs", "const fail = () => { throw new Error('x') }; fail()", false, ""},
		{"return that ends early", "if (!input.name) return; log.info('x')", false, ""},
		{"outputs and a return without a value", "if (!input.name) return; log.info('x')", true, nothing},
		{"outputs and nothing", "// nothing", true, nothing},
	} {
		for _, language := range []source.Language{source.JS, source.TS} {
			src := tool(row.body)
			src.Inputs, src.Language, src.MustReturn = []string{"name"}, language, row.must
			want := row.want
			if want != "" {
				want = map[bool]string{false: "warning", true: "error"}[row.must] + want
			}
			if got := severities(src); got != want {
				t.Errorf("%s in %v: %s, want %s", row.name, language, got, want)
			}
			src.Path = map[source.Language]string{source.JS: "t.js", source.TS: "t.ts"}[language]
			src.Text = diag.WholeFile("tools.d/"+src.Path, "export default async (input) => { "+row.body+"\n}")
			if got := severities(src); got != want {
				t.Errorf("%s in a module in %v: %s, want %s", row.name, language, got, want)
			}
		}
	}
	src := tool("const total = 1;\ntotal")
	if _, list := Compile(src); len(list) != 1 || formatDiagnostics(src, list)[0] != `tools.d/t.hcl:6:1 "total": warning`+dropped || list[0].Severity != diag.Warning {
		t.Errorf("reported %v", formatDiagnostics(src, list))
	}
	hook := tool("event.tool")
	hook.Kind = source.Hook
	if got := severities(hook); got != "" {
		t.Errorf("a hook: %s", got)
	}
}
