package compiler

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/scripting/source"
)

// fileOf returns the source of a tool with its script in a file.
func fileOf(name, text string) source.Source {
	src := tool("")
	src.Path, src.Text = name, diag.WholeFile("tools.d/"+name, text)
	if strings.HasSuffix(name, ".ts") {
		src.Language = source.TS
	}
	src.Inputs = []string{"name", "limit"}
	src.Import = importing(map[string]string{"lib.js": "export const twice = (n) => 2 * n; export const f = (o) => o.log"})
	return src
}

func TestModule_diagnostics(t *testing.T) {
	for _, c := range []struct {
		name, file, text string
		want             []string
	}{
		{"a function", "t.js", "export default async function (input, ctx) {\n  return (await ctx.http.crm.get(`/${input.name}`)).text();\n}", nil},
		{"a named function", "t.js", "export default function run(input) { return input.name; }", nil},
		{"an arrow function", "t.js", "export default(input) => input.name;", nil},
		{"two lines", "t.js", "export // it\n  default async (input) => { return input.name; }", nil},
		{"imports", "t.js", "import { twice } from './lib.js';\nconst four = twice(2);\nexport default (input) => four + input.limit;", nil},
		{"types", "t.ts", "import type { T } from '../.mcpd/types';\ninterface I { name: string }\nexport default (async (input: I, ctx: T['ctx']): Promise<string> => ctx.call.id + input.name) satisfies Function;", nil},
		{"exported types", "t.ts", "export interface I { name: string }\nexport type T<X> = X | I;\nexport /* a */ declare const y: number;\nexport default (input: T<I>): string => input.name;\nexport type From = I", nil},
		{"overload signatures", "t.ts", "export default function (input: { name: string }): { a: string };\nexport default function run<T>(input: T): number\nexport default async function run(input: any) { return input.name; }", nil},
		{"destructuring", "t.js", "export default async ({ name, limit = 10 }, { log, call }) => { log.info(name); return call.id + limit; }", nil},
		{"keys with other names", "t.js", "export default async ({ name: n }, { http: web }) => (await web.crm.get(n)).text();", nil},
		{"a recursive function", "t.js", "export default function walk(input, ctx) { return input.nodes ? walk(input.nodes, ctx) : ctx.call.id; }", nil},
		{"a context that is passed on", "t.js", "import { f } from './lib.js';\nexport default (input, ctx) => f(ctx);", nil},
		{"a context that gets a member", "t.js", "export default (input, ctx) => { ctx.rest = input.limit; return ctx.rest; }", nil},
		{"a variable with the name of a member", "t.js", "export default async (input, ctx) => { const log = ctx.log; log.info(input.name); return 1; }", nil},
		{"parameters with the names of globals", "t.js", "export default (log, http) => http\n  .call\n  .id + log.name;", nil},
		{"an input with the name of a member", "t.js", "export default (call, ctx) => ctx.call.id + call.name;", nil},
		{"a top-level await", "t.js", "const n = await Promise.resolve(1);\nexport default () => n;", nil},

		{"an unknown input", "t.js", "export default (input) => {\n  return input.nmae;\n};", []string{`tools.d/t.js:2:16 "nmae": error: there is no input "nmae"`}},
		{"an unknown input by another name", "t.js", "export default (args) => args.nmae;", []string{`tools.d/t.js:1:31 "nmae": error: there is no input "nmae"`}},
		{"an unknown input in TypeScript", "t.ts", "type I = { name: string };\nexport default function (input: I) {\n  return (input as any).nmae + input.nmae;\n}", []string{`tools.d/t.ts:3:25 "nmae": error: there is no input "nmae"`, `tools.d/t.ts:3:38 "nmae": error: there is no input "nmae"`}},
		{"an unknown input after types", "t.ts", "export type T = { name: string }; export default function run(input: T): string; export default function run(input: any) { return input.nmae; }", []string{`tools.d/t.ts:1:137 "nmae": error: there is no input "nmae"`}},
		{"two functions", "t.ts", "export default function run(input: object) { return 1; }\nexport default function run(input: object) { return 2; }", []string{`tools.d/t.ts:1:16 "function": error: the module has two default exports`}},
		{"two functions in JavaScript", "t.js", "export default function run(input) { return 1; }\nexport default function run(input) { return 2; }", []string{`tools.d/t.js:2:1 "export": error: a module exports only its default`}},
		{"only signatures", "t.ts", "export default function run(input: object): number;", []string{`tools.d/t.ts:1:51 ";": error: expected "{" but found ";"`}},
		{"exported types in JavaScript", "t.js", "export interface I { name: string }\nexport default () => 1;", []string{`tools.d/t.js:1:1 "export": error: a module exports only its default`}},
		{"a list of exported types", "t.ts", "type I = 1;\nexport type { I };\nexport default () => 1;", []string{`tools.d/t.ts:2:1 "export": error: a module exports only its default`}},
		{"an exported enum", "t.ts", "export enum E { A }\nexport default () => 1;", []string{`tools.d/t.ts:1:1 "export": error: a module exports only its default`}},
		{"only types", "t.ts", "export interface I { name: string }", []string{`tools.d/t.ts:1:1 "export": error: the module has no default export`}},
		{"a return of the author", "t.js", "if (vars.x) $mcpd$();\nexport default () => 1;\nreturn $mcpd$();", []string{`tools.d/t.js:3:1 "return": error: $mcpd$ is reserved`}},
		{"a last return of the author", "t.js", "export default () => 1;\nreturn $mcpd$();", []string{`tools.d/t.js:2:1 "return": error: $mcpd$ is reserved`}},
		{"a function that calls itself by the reserved name", "t.js", "export default (input, ctx) => \\u0024mcpd$(ctx, input);", []string{`tools.d/t.js:1:16 "(": error: $mcpd$ is reserved`}},
		{"an unknown input in a pattern", "t.js", "export default ({ nmae }) => nmae;", []string{`tools.d/t.js:1:19 "nmae": error: there is no input "nmae"`}},
		{"an absent grant", "t.js", "export default (input, ctx) =>\n  ctx.kv.notes.get('a');", []string{`tools.d/t.js:2:7 "kv": error: kv is not defined`}},
		{"an absent grant in a pattern", "t.js", "export default (input, { kv }) =>\n  kv.notes.get('a');", []string{`tools.d/t.js:2:3 "kv": error: kv is not defined`}},
		{"an unknown grant", "t.js", "export default (input, ctx) =>\n  ctx?.http.crn.get('a');", []string{`tools.d/t.js:2:13 "crn": error: http.crn is not granted`}},
		{"an unknown grant in TypeScript", "t.ts", "const x: number = 1;\nexport default (input: object, ctx: any) =>\n  ctx.http.crn.get('a');", []string{`tools.d/t.ts:3:12 "crn": error: http.crn is not granted`}},
		{"an unknown grant after a pattern", "t.js", "export default (input, { http }) =>\n  http.crn.get('a');", []string{`tools.d/t.js:2:8 "crn": error: http.crn is not granted`}},
		{"an unknown member of the context", "t.js", "export default (input, ctx) => ctx.htpp.crm.get('a');", []string{`tools.d/t.js:1:36 "htpp": error: the context has no member "htpp"`}},
		{"an unknown member as a key", "t.js", "export default (input, ctx) => ctx['htpp'].crm.get('a');", []string{`tools.d/t.js:1:36 "'htpp'": error: the context has no member "htpp"`}},
		{"an unknown grant by another name", "t.js", "export default (input, { http: web }) =>\n  web.crn.get('a');", []string{`tools.d/t.js:2:7 "crn": error: http.crn is not granted`}},
		{"an object by another name in an object", "t.js", "import { f } from './lib.js';\nexport default (args, { http: web }) => f({ web, args });", nil},
		{"an unknown member by another name", "t.js", "export default (input, { fetch: get }) => get('a');", []string{`tools.d/t.js:1:26 "fetch": error: the context has no member "fetch"`}},
		{"an unknown member in a pattern", "t.js", "export default (input, { fetch }) => fetch('a');", []string{`tools.d/t.js:1:26 "fetch": error: the context has no member "fetch"`}},
		{"a promise without await", "t.js", "export default (input, ctx) => ctx.http.crm.get('/x').text();", []string{`tools.d/t.js:1:55 "text": warning: a promise has no member "text"`}},
		{"a value that is dropped", "t.js", "export default (input) => {\n  input.name;\n};", []string{`tools.d/t.js:2:3 "input.name": warning: the value of the last line is dropped, and the script returns nothing`}},
		{"an undefined name", "t.js", "export default () => inptu.name;", []string{`tools.d/t.js:1:22 "inptu": error: inptu is not defined`}},
		{"a parameter outside of its function", "t.js", "const f = () => ctx.log;\nexport default (input, ctx) => f();", []string{`tools.d/t.js:1:17 "ctx": error: ctx is not defined`}},
		{"a syntax error", "t.js", "export default (input) => {\n  return input +;\n};", []string{`tools.d/t.js:2:17 ";": error: unexpected token ;`}},
		{"a syntax error in TypeScript", "t.ts", "export default (input: object) => {\n  return input +;\n};", []string{`tools.d/t.ts:2:17 ";": error: unexpected ";"`}},
		{"an end inside of the function", "t.js", "export default (input) => {\n  return 1;", []string{`tools.d/t.js:1:27 "{": error: this { is never closed`}},
		{"nothing after default", "t.js", "export default", []string{`tools.d/t.js:1:14 "t": error: the script ends unexpectedly`}},
		{"a statement that returns", "t.js", "if (vars) return 1;\nexport default () => 2;", []string{`tools.d/t.js:1:5 "vars": error: the module returns a value outside of its function`}},
		{"no default export", "t.js", "export const a = 1;", []string{`tools.d/t.js:1:1 "export": error: the module has no default export`}},
		{"a list of exports", "t.js", "function run() {}\nexport { run as default };", []string{`tools.d/t.js:2:1 "export": error: the module has no default export`}},
		{"other exports", "t.js", "export default () => 1;\nexport const a = 1;", []string{`tools.d/t.js:2:1 "export": error: a module exports only its default`}},
		{"no function", "t.js", "export default 42;", []string{`tools.d/t.js:1:16 "42": error: the default export is not a function`}},
		{"a name", "t.js", "const run = () => 1;\nexport default run;", []string{`tools.d/t.js:2:16 "run": error: the default export is not a function`}},
		{"an object", "t.js", "export default {\n  run() {} };", []string{`tools.d/t.js:1:16 "{": error: the default export is not a function`}},
		{"a class", "t.js", "export default class {}", []string{`tools.d/t.js:1:16 "class": error: the default export is not a function`}},
		{"a generator", "t.js", "export default function* () {}", []string{`tools.d/t.js:1:16 "function": error: the default export is not a function`}},
		{"an async generator after a comment", "t.js", "export default (/* all */ async function /**/ * () {});", []string{`tools.d/t.js:1:1 "export default": error: the default export is not a function`}},
		{"an async generator", "t.js", "export default async function* () {}", []string{`tools.d/t.js:1:1 "export default": error: the default export is not a function`}},
		{"a list of expressions", "t.js", "export default () => 1, b = 2;", []string{`tools.d/t.js:1:1 "export": error: the default export is not a function`}},
		{"a call after the function", "t.js", "export default function () { return 1; }\n(2);", []string{`tools.d/t.js:1:16 "function": error: the default export is not a function`}},
		{"three parameters", "t.js", "export default (input, ctx, more) => 1;", []string{`tools.d/t.js:1:16 "(": error: the default export has more than two parameters`}},
		{"other parameters", "t.js", "export default (input, ...more) => 1;", []string{`tools.d/t.js:1:16 "(": error: the default export has more than two parameters`}},
		{"a function that others call", "t.js", "const early = run({});\nexport default function run() { return early; }", []string{`tools.d/t.js:1:1 "const": error: run is the default export, which only mcpd calls`}},
		{"types in JavaScript", "t.js", "export default (input: { name: string }) => input.name;", []string{`tools.d/t.js:1:22 ":": error: unexpected token`}},
	} {
		src := fileOf(c.file, c.text)
		_, list := Compile(src)
		if diff := cmp.Diff(c.want, formatDiagnostics(src, list)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// A file with one function lacks only export default.
func TestModule_uncalledFunction(t *testing.T) {
	for _, text := range []string{"async function run(input) { return input.name; }", "(input) => input.name"} {
		if _, list := Compile(fileOf("t.js", text)); len(list) != 1 || list[0].Detail != "write export default before the function" {
			t.Errorf("%s: %v", text, list)
		}
	}
}

// Syntax of the engine needs no transpiler.
func TestModule_withoutTranspiler(t *testing.T) {
	src := fileOf("t.js", "export default () => 1;")
	src.Transpiler = nil
	if p, list := Compile(src); p == nil || len(list) > 0 {
		t.Errorf("got %v", list)
	}
	src.Text, src.Path = diag.WholeFile("tools.d/t.hcl", "export default () => 1;"), "t.hcl"
	if _, list := Compile(src); len(list) != 1 || list[0].Summary != "a script exports nothing" {
		t.Errorf("got %v", list)
	}
}

// Checks of large scripts read their tokens.
func TestModule_large(t *testing.T) {
	filler := strings.Repeat("// "+strings.Repeat("x", 97)+"\n", 200)
	for _, c := range []struct {
		text string
		want []string
	}{
		{"export default (input, ctx) => ctx.call.id;", nil},
		{"export default (fetch, http) => http.call.id + fetch.name;", nil},
		{"export default (input, ctx) => fetch('a');", []string{`tools.d/t.js:201:32 "fetch": error: fetch is not defined`}},
	} {
		src := fileOf("t.js", filler+c.text)
		_, list := Compile(src)
		if diff := cmp.Diff(c.want, formatDiagnostics(src, list)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.text, diff)
		}
	}
}

// A module uses the members of the context that it names, or all of them.
func TestModule_globals(t *testing.T) {
	const all = "call agent log http vars content progress"
	for _, c := range []struct{ text, used, unused string }{
		{"export default () => 1;", "", "input " + all},
		{"export default (input, ctx) => 1;", "", "input " + all},
		{"export default (input, ctx) => ctx.log.info(input.name);", "input log", "http call agent"},
		{"export default (args, c) => c.log.info(args.name);", "input log", "http call agent"},
		{"export default (input, { log }) => log.info(1);", "log", "input http call agent"},
		{"export default (input, ctx) => { const agent = ctx.agent; return agent; }", "agent", "input call"},
		{"export default (input, ctx) => ctx\n // the caller\n .agent.model", "agent", "input"},
		{"export default (input, ctx) => ctx['ag'.concat('ent')].model", all, "input"},
		{"export default (input, ctx) => { const { agent } = ctx; return agent }", all, "input"},
		{"export default (input, { http: web }) => web.crm.get(input.name);", "input http", "call agent log"},
		{"export default (input, { 'log': l }) => l.info(1);", "log", "input http call agent"},
		{"export default (input, { log: call, call: log }) => log.id + call", all, "input"},
		{"export default (input, { log: l }) => { l = 1; return l }", all, "input"},
		{"export default (input, { log: l }) => ((l) => l)(1)", "log", "input"},
		{"export default (input, { log: { info } }) => info('')", all, "input"},
		{"export default (input, { ['lo'.concat('g')]: l }) => l.info('')", all, "input"},
		{"export default (input, { log: l = 1 }) => l.info('')", all, "input"},
		{"export default (input, ctx) => ctx['log'].info(ctx /* x */ ['call'].id)", "log call", "input"},
		{"export default (input, ctx) => ctx['log'].info(ctx\n?.[ 'call' ].id)", "log call", "input http agent"},
		{"export default (input, ctx) => (ctx)['log'].info(1)", "log", "input"},
		{"export default (input, ctx) => { ctx['log'] = 1; return ctx['log'] }", all, "input"},
		{"export default (input, ctx) => ctx['hasOwnProperty']('agent')", all, "input"},
		{"export default (input, { ...rest }) => rest", all, "input"},
		{"export default (input, ctx = {}) => ctx.log", "input " + all, ""},
		{"export default (input, ctx) => ((c) => c.log.info(c.call.id))(ctx);", all, "input"},
		{"export default (input, ctx) => ((ctx) => ctx.log)(ctx);", all, "input"},
		{"export default (input, ctx) => { let x; x = ctx; return x.agent }", all, "input"},
		{"export default (input, ctx) => JSON.stringify({ ctx })", all, "input"},
		{"export default (input, ctx) => { for (const k in ctx) return k }", all, "input"},
		{"export default (input, ctx) => ctx.hasOwnProperty('agent')", all, "input"},
		{"export default function () { return arguments[1]; }", "input " + all, ""},
		{"export default function f(input, ctx) { return f(input, ctx); }", "input " + all, ""},
		{"import { f } from './lib.js';\nexport default (input, ctx) => f(ctx);", all, "input"},
		{"export default async (input, ctx) => { for await (const x of []) ctx.log.info(x); }", "log", "input call"},
		{"export default async (input, ctx) => { class A { #x = ctx.log; y = () => #x in this } return new A() }", "log", "input call"},
		{"export default (input, ctx) => ctx.log.info(call.id);", "log call", "input agent"},
	} {
		for _, name := range []string{"t.js", "t.ts"} {
			p, list := Compile(fileOf(name, c.text))
			if p == nil {
				t.Errorf("%s: %v", c.text, list)
				continue
			}
			for name := range strings.FieldsSeq(c.used) {
				if !p.CanUse(name) {
					t.Errorf("%s: %s is missing", c.text, name)
				}
			}
			for name := range strings.FieldsSeq(c.unused) {
				if p.CanUse(name) {
					t.Errorf("%s: %s is installed", c.text, name)
				}
			}
		}
	}
}

// A context that is passed on reaches all grants; otherwise only those that it names are reached.
func TestModule_reaches(t *testing.T) {
	for _, c := range []struct {
		text  string
		reach bool
	}{
		{"export default (input, ctx) => ctx.log.info('')", false},
		{"export default (input, ctx) => ctx.elicit({})", true},
		{"export default (input, { elicit: ask }) => [{ ask }]", true},
		{"export default (input, ctx) => [ctx['elicit']]", true},
		{"export default (input, ctx) => ctx['log'].info('')", false},
		{"export default (input, { elicit }) => elicit({})", true},
		{"export default (input, ctx) => ctx['eli' + 'cit']({})", true},
		{"export default function () { return arguments }", true},
	} {
		src := fileOf("t.js", c.text)
		ask := source.Object{Kind: "ask", Name: "elicit"}
		src.Objects = append(src.Objects, ask)
		p, list := Compile(src)
		if p == nil || p.Reaches(ask) != c.reach {
			t.Errorf("%s: reaches %v, want %v: %v", c.text, !c.reach, c.reach, list)
		}
	}
}

// White space in place of the context leaves the copy valid.
func TestModule_analyzable(t *testing.T) {
	for _, expression := range []string{
		"ctx\n?.\nlog", "(ctx).log", "delete ctx.log", "ctx.log++", "ctx /* x */ .log", "`${ctx.log}${`${ctx.call.id}`}`", "new ctx.log()", "(() => { return ctx\n.log })()",
		"(() => { for (ctx.log of []); return 1 })()", "({ log: ctx.log, [ctx.call.id]: ctx?.['log'] })", "ctx.log`x`", "class extends ctx.log {}", "[...ctx.log, ctx.call?.id]",
	} {
		for _, name := range []string{"t.js", "t.ts"} {
			if p, list := Compile(fileOf(name, "export default async (input, ctx) => "+expression+";")); p == nil || !p.CanUse("log") {
				t.Errorf("%s: %v", expression, list)
			}
		}
	}
}
