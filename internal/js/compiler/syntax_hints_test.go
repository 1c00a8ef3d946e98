package compiler

import (
	"strings"
	"testing"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/scripting/source"
)

// TestSyntaxHints has errors of people who write in haste, or know another language better.
func TestSyntaxHints(t *testing.T) {
	for _, c := range []struct{ body, part string }{
		{"return {\n  a: 1\n  b: 2,\n}", "comma at the end of the line before it"},
		{"return { a: 1 b: 2 }", "a comma before it"},
		{"return { a: 1, b = 2 }", "name: value"},
		{"return { a: 1; b: 2 }", "separated by commas"},
		{"return [1].map(n => { a: n, b: 2 })", "(…) => ({ … })"},
		{"return [1].map((n) => {\n  a: n, b: 2\n})", "(…) => ({ … })"},
		{"return 'it's'", "or other quotes around the text"},
		{"return 'abc\n", "add the ' that ends it"},
		{"const t = \"\"\"a\nb\"\"\"", "backticks"},
		{"const f = function { return 1 }", "function name() { … }"},
		{"function (a) { return a }", "give it a name"},
		{"class { a() {} }", "class Name"},
		{"if (1) { log.info('a') };\nelse { log.info('b') }", "else must directly follow the if"},
		{"log.info((1)", "add the ) that closes it"},
		{"log.info(1))", "remove it"},
		{"[1].map((x) => { const y = await http.crm.get('/'); return y })", "write async before the function"},
		{"const class = 1", "choose another name"},
		{"let new = 2", "choose another name"},
		{"const a-b = 1", "cannot contain -"},
		{"const 1a = 1", "start with a digit"},
		{"input?.a = 1", "write if (a) { a.b = … }"},
		{"for (const x input.list) {}", "write of between"},
		{"if (1) {} elif (2) { log.info('a') }", "else if"},
		{"if (input.a and input.b) {}", "&& instead of and"},
		{"if (not input.a) {}", "! instead of not"},
		{"return input.a or 2", "|| instead of or"},
		{"# a comment\nreturn 1", "starts with //"},
		{"return f\"a {x}\"", "`text ${name}`"},
		{"return “abc”", "straight quotes"},
		{"return ‘abc’", "straight quotes"},
		{"def f(x):\n  return x", "function name(…)"},
		{"input.a := 3", "= instead of :="},
		{"const f = (x) -> x", "=> instead of ->"},
		{"if (input.a = = 1) {}", "=== without spaces"},
		{"if (input.a <> 1) {}", "!== instead of <>"},
		{"if (input.a =< 1) {}", "<= instead of =<"},
		{"if input.a == 1 { }", "in parentheses"},
		{"string s = 'a'", "const or let"},
		{"return var.stage + 'a'", "vars.NAME"},
		{"var.stage", "vars.NAME"},
		{"const x = ;", "a value is missing"},
		{"const x =\nconst y = 2;", "a value is missing"},
		{"const f = (x) => return x", "leave out return"},
		{"function f() return 1", "in braces"},
		{"switch (input.a) { case 1 { log.info('a') } }", "a colon after the case"},
		{"return 'a' 'b'", "join texts with +"},
		{"return 'a' input.b", "join texts with +"},
		{"return ${input.a}", "backticks"},
		{"return input.a ? 1;", "needs its :"},
		{"try { log.info('a') } except (e) { }", "catch (error)"},
		{"input.a. = 1", "after the dot"},
		{"<<<<<<< HEAD\nlog.info(1)", "a merge left a conflict"},
	} {
		for _, language := range []source.Language{source.JS, source.TS} {
			src := tool(c.body)
			src.Language = language
			_, list := Compile(src)
			if len(errorsOf(src, list)) != 1 || !strings.Contains(list[0].Detail, c.part) {
				t.Errorf("%v %s: %v does not say %q", language, c.body, list, c.part)
			}
		}
	}
}

func TestUndefinedName_otherLanguages(t *testing.T) {
	for name, part := range map[string]string{
		"None": "null", "nil": "null", "True": "true", "False": "false", "print": "log.info", "len": "x.length", "self": "this", "str": "String", "int": "Number",
	} {
		if _, list := Compile(tool("return " + name)); len(list) != 1 || !strings.Contains(list[0].Detail, part) {
			t.Errorf("%s: %v does not say %q", name, list, part)
		}
	}
}

func TestSyntaxError_advice(t *testing.T) {
	for body, part := range map[string]string{
		`const x = ;`:                                   "a value is missing",
		`let a = 1; let a = 2;`:                         "another name",
		`const r = /(/;`:                                "backslash",
		`const r = /a**/;`:                              "backslash",
		`const r = /)/;`:                                "",
		`with (input) {}`:                               "before each",
		`class A { #x; } new A().#y;`:                   "in the class",
		`for (;;) { continue far; }`:                    "label",
		`break;`:                                        "a loop",
		`const x; return x;`:                            "let",
		`return { a: 1,, b: 2 };`:                       "",
		`const f = () => { await x(); };`:               "async",
		`try { f() }`:                                   "catch",
		`1 = input.a;`:                                  "===",
		`if (input.a) let b = 1;`:                       "",
		`return input.a ?? 1 || 2;`:                     "parentheses",
		`return -1 ** 2;`:                               "parentheses",
		`function f(...a, b) {}`:                        "",
		`class A { constructor() {} constructor() {} }`: "",
		`return 1__0;`:                                  "",
		`throw
		1;`: "line of throw",
		`const a = 1; a + ;`: "",
	} {
		for _, language := range []source.Language{source.JS, source.TS} {
			src := tool(body)
			src.Language = language
			_, list := Compile(src)
			if !list.HasErrors() {
				continue
			}
			for _, d := range list {
				if d.Detail == "" {
					t.Errorf("%s: %s: there is no advice", body, d.Summary)
				}
			}
			if detail := list[0].Detail; language == source.JS && !strings.Contains(detail, part) {
				t.Errorf("%s: %s: %q does not say %q", body, list[0].Summary, detail, part)
			}
		}
	}
}

func TestImportError_advice(t *testing.T) {
	for path, part := range map[string]string{
		"lodash": "./file.js", "./no.js": "make the file", "../no.js": "into the tools folder", "./a": "whole name", "./a.js": "export it there",
	} {
		src := tool(`import { b } from "` + path + `"; return b;`)
		src.Import = importing(map[string]string{"a.js": "export const a = 1;"})
		_, list := Compile(src)
		if len(list) != 1 || !strings.Contains(list[0].Detail, part) {
			t.Errorf("%s: %v does not say %q", path, list, part)
		}
	}
}

// detailOf returns the advice of the first diagnostic for a name.
func detailOf(list diag.List, name string) string {
	for _, d := range list {
		if d.Summary == name+" is not defined" {
			return d.Detail
		}
	}
	return "nothing"
}

func TestUndefinedName_nearName(t *testing.T) {
	for _, c := range []struct{ name, body, undefined, want string }{
		{"a local before a host object", "const total = input.a; return totl", "totl", `did you mean "total"?`},
		{"a local that is further than a host object", "let total = 1; total += 1; return tomal", "tomal", `did you mean "total"?`},
		{"a parameter", "const f = (config) => confg; return f(1)", "confg", `did you mean "config"?`},
		{"a function", "function compute() { return 1 } return compte()", "compte", `did you mean "compute"?`},
		{"a name taken apart", "const { csvs } = input.a; return csvz", "csvz", `did you mean "csvs"?`},
		{"a variable of a loop", "for (const row of input.a) { log.info(rows) }", "rows", `did you mean "row"?`},
		{"what was caught", "try { f() } catch (failure) { log.info(failre) } function f() {}", "failre", `did you mean "failure"?`},
		{"a local of another function", "function f() { const tomb = 1; return tomb } return [f(), toml1]", "toml1", `did you mean "toml"?`},
		{"a local of another block", "if (input.a) { const tomb = 1; log.info(tomb) } return toml1", "toml1", `did you mean "toml"?`},
		{"an input by its name alone", "return customer_id", "customer_id", "write input.customer_id"},
		{"an input before a host object", "return cvs", "cvs", `did you mean "input.cves"?`},
		{"an input that is nearly named", "return custmer_id", "custmer_id", `did you mean "input.customer_id"?`},
		{"a host object", "return consle", "consle", `did you mean "console"?`},
		{"an assignment", "totl = 1; return totl", "totl", "declare it with let or const"},
		{"an assignment to a near name", "let total = 1; totl = 2; return total", "totl", `did you mean "total"? Else declare it with let or const`},
		{"a sum", "totl += 1; return totl", "totl", "declare it with let or const"},
		{"a step", "totl++; return 1", "totl", "declare it with let or const"},
		{"a pattern", "[totl] = [1]; return totl", "totl", "declare it with let or const"},
		{"an assignment to an input's name", "customer_id = 1; return 1", "customer_id", "declare it with let or const"},
		{"an object that is assigned a member", "consle.x = 1; return 1", "consle", `did you mean "console"?`},
		{"nothing near", "return whatever", "whatever", "declare it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			src := tool(c.body)
			src.Inputs = []string{"a", "customer_id", "cves"}
			for _, language := range []source.Language{source.JS, source.TS} {
				src.Language = language
				_, list := Compile(src)
				if got := detailOf(list, c.undefined); got != c.want {
					t.Errorf("%v: got %s, want %s", language, got, c.want)
				}
			}
		})
	}
}

// TestUndefinedName_otherHosts checks the advice for names of Node and browsers, and that none of
// them is a global.
func TestUndefinedName_otherHosts(t *testing.T) {
	for name, want := range map[string]string{
		"Intl": "numbers.format", "fetch": "http.NAME.get", "XMLHttpRequest": "http.NAME.get", "axios": "http.NAME.get", "WebSocket": "http.NAME.get", "EventSource": "http.NAME.get",
		"Headers": "http.NAME", "Request": "http.NAME", "Response": "http.NAME", "FormData": "http.NAME",
		"require": `import { name } from "./file.js"`, "importScripts": `import { name } from "./file.js"`, "module": "return", "exports": "return",
		"process": "env.NAME", "Deno": "env.NAME", "Bun": "env.NAME", "Buffer": "Uint8Array", "Blob": "Uint8Array", "File": "Uint8Array", "FileReader": "Uint8Array",
		"__dirname": "fs.NAME", "__filename": "fs.NAME", "window": "no browser", "document": "no browser", "navigator": "no browser", "location": "no browser", "global": "globalThis",
		"localStorage": "kv.NAME", "sessionStorage": "kv.NAME", "indexedDB": "kv.NAME", "setImmediate": "setTimeout", "clearImmediate": "clearTimeout",
		"requestAnimationFrame": "setTimeout", "performance": "Date.now()", "confirm": "elicit", "prompt": "elicit", "alert": "log.info",
		"Worker": "Promise.all", "WebAssembly": "exec.NAME", "moment": "dates", "dayjs": "dates",
	} {
		_, list := Compile(tool("return " + name + ".x"))
		if got := detailOf(list, name); !strings.Contains(got, want) || !list.HasErrors() {
			t.Errorf("%s: %q does not name %q", name, got, want)
		}
		if _, list := Compile(tool("const " + name + " = {}; return [" + name + ".x, typeof " + name + "]")); list.HasErrors() {
			t.Errorf("%s cannot be declared: %v", name, list)
		}
	}
	for _, name := range []string{"URL", "URLSearchParams", "TextEncoder", "TextDecoder", "structuredClone", "setTimeout", "setInterval", "crypto", "atob", "btoa", "queueMicrotask", "AbortController", "globalThis", "console"} {
		if _, list := Compile(tool("return " + name)); len(list) > 0 {
			t.Errorf("%s: %v", name, list)
		}
	}
}

func TestToLocaleString_warns(t *testing.T) {
	for body, want := range map[string]string{
		"return input.total.toLocaleString('de-DE')":           "toLocaleString ignores locales",
		"return new Date().toLocaleDateString('en-US')":        "toLocaleDateString ignores locales",
		"return new Date().toLocaleTimeString()":               "toLocaleTimeString ignores locales",
		"const f = { toLocaleString: () => 1 }; return [f, 1]": "",
		"return numbers.format(1234.5)":                        "",
	} {
		_, list := Compile(tool(body))
		if want == "" {
			if len(list) > 0 {
				t.Errorf("%s: %v", body, list)
			}
			continue
		}
		if len(list) != 1 || list[0].Severity != diag.Warning || !strings.HasPrefix(list[0].Summary, want) || !strings.Contains(list[0].Detail, "numbers.format") || !strings.Contains(list[0].Detail, "dates.format") {
			t.Errorf("%s: %v", body, list)
		}
	}
}
