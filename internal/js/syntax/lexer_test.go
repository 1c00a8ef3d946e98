package syntax

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// lexed returns the tokens of a text. Tokens that hide others are marked.
func lexed(src string, ts bool) (tokens []string, err *Error) {
	l := Lexer{Src: src, TypeScript: ts}
	for {
		t := l.Next()
		if t.Kind == End {
			return tokens, l.Err
		}
		tokens = append(tokens, src[t.Start:t.End])
	}
}

func TestLexer_likeParsers(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{"a / b / c", "a|/|b|/|c"},
		{"a = /b / c", "a|=|/b /|c"},
		{"(a) / b", "(|a|)|/|b"},
		{"a[0] / 2", "a|[|0|]|/|2"},
		{"a++ / 2", "a|++|/|2"},
		{"a = ++/x/.y", "a|=|++|/x/|.|y"},
		{"return /x/", "return|/x/"},
		{"a.return / x", "a|.|return|/|x"},
		{"typeof /x/", "typeof|/x/"},
		{"this / 2", "this|/|2"},
		{"f(/[/)]/, 1)", "f|(|/[/)]/|,|1|)"},
		{`x = /\//`, `x|=|/\//`},
		{"x = a /= 2", "x|=|a|/=|2"},
		{"x = /=/", "x|=|/=/"},
		{"`a`", "`a`"},
		{"`a${b}c${d}e` / 2", "`a${|b|}c${|d|}e`|/|2"},
		{"`${`${a}`}`", "`${|`${|a|}`|}`"},
		{"`\\`${1}`", "`\\`${|1|}`"},
		{"`$${1}`", "`$${|1|}`"},
		{"'a\\'b\\\nc'", "'a\\'b\\\nc'"},
		{"'a\\\r\nb'", "'a\\\r\nb'"},
		{"a// b }\nc", "a|c"},
		{"a/* } */b", "a|b"},
		{"a\u2028// x\u2029b", "a|b"},
		{"1.5e-3+0x1e+1", "1.5e-3|+|0x1e|+|1"},
		{"1..x", "1.|.|x"},
		{".5", ".5"},
		{"....5", "...|.5"},
		{"a?.5:1", "a|?|.5|:|1"},
		{"a?.b", "a|?.|b"},
		{"a??=b", "a|??=|b"},
		{"a>>>=b", "a|>>>=|b"},
		{"...a", "...|a"},
		{"#x in y", "#x|in|y"},
		{`\u{61}b = \u0061`, `\u{61}b|=|\u0061`},
		{"äÖ1 = 1", "äÖ1|=|1"},
		{"$mcpd_1", "$mcpd_1"},
	} {
		tokens, err := lexed(c.src, false)
		if diff := cmp.Diff(c.want, strings.Join(tokens, "|")); diff != "" || err != nil {
			t.Errorf("%q: %v (-want +got):\n%s", c.src, err, diff)
		}
	}
}

func TestLexer_typeScript(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{"a! / 2", "a|!|/|2"},
		{"x = !/y/", "x|=|!|/y/"},
		{"A<B<C>>", "A|<|B|<|C|>|>"},
	} {
		tokens, err := lexed(c.src, true)
		if diff := cmp.Diff(c.want, strings.Join(tokens, "|")); diff != "" || err != nil {
			t.Errorf("%q: %v (-want +got):\n%s", c.src, err, diff)
		}
	}
}

func TestLexer_ambiguousSlash(t *testing.T) {
	for _, src := range []string{"if (a) /x/.y()", "a = {} / 2", "function f() {} /x/", "await /x/", "yield /x/", "for (a of /x/)"} {
		if _, err := lexed(src, false); err == nil || err.Summary != "it is not clear whether this / starts a regular expression" {
			t.Errorf("%q: %v", src, err)
		}
	}
}

// For each of these errors, the compilers scan the script backwards, which is quadratic.
func TestCheck_repeatedErrors(t *testing.T) {
	each := func(before, part, after string) string { return before + strings.Repeat(part, 300) + after }
	for _, c := range []struct{ name, body, want string }{
		{"constants", each("", "const a=1;", ""), "too many declarations of one name"},
		{"a list", each("let ", "a,", "b"), "too many declarations of one name"},
		{"classes", each("", "class A{}", ""), "too many declarations of one name"},
		{"async functions", each("", "async function f(){}", ""), "too many declarations of one name"},
		{"a pattern", each("let [", "a,", "]=b"), "too many declarations of one name"},
		{"a pattern of members", each("let {", "b:a,", "}=b"), "too many declarations of one name"},
		{"patterns in a pattern", each("let [", "[a],", "]=b"), "too many declarations of one name"},
		{"patterns", each("", "let [a]=b;", ""), "too many declarations of one name"},
		{"parameters", each("f=([", "a,", "])=>1"), "too many declarations of one name"},
		{"parameters of a function", each("function f({", "b:a,", "}){}"), "too many declarations of one name"},
		{"private members", each("class A{", "#a;", "}"), "too many declarations of one name"},
		{"prototypes", each("x={", "__proto__:1,", "}"), "too many declarations of one name"},
		{"imports", each("import {", "default as a,", "} from './a.js'"), "too many declarations of one name"},
		{"var below let", each("let a;", "{var a}", ""), "too many declarations of one name"},
		{"assignments", each("const a=1;", "a=2;", ""), "too many assignments to constants"},
		{"increments", each("const a=1;", "{++a}", ""), "too many assignments to constants"},
		{"labels", each("", "a:", ";"), "too many labels"},
		{"octal numbers", "return 010", "a number cannot start with 0"},
		{"octal escapes", `return '\01'`, "this is not an escape sequence"},
		{"with", each("", "with(a);", ""), "too many violations of strict mode"},
		{"delete", each("", "delete a;", ""), "too many violations of strict mode"},
		{"functions in if", each("", "if(a)function f(){}", ""), "too many violations of strict mode"},
		{"eval", each("", "eval=1;", ""), "too many violations of strict mode"},
		{"decorators", each("class A{", "@a b;", "}"), "too many decorators"},
		{"import declarations", each("", "import './a.js';", ""), "too many imports"},
		{"getters with parameters", each("", "({get a(b){}});", ""), "too many errors"},
		{"getters of classes", each("class A{", "get 'a'(b){}", "}"), "too many errors"},
		{"?? beside ||", each("", "a??b||c;", ""), "too many errors"},
		{"&& beside ??", each("", "f(a&&b??c);", ""), "too many errors"},
		{"numbers assigned to", each("", "1=1;", ""), "too many errors"},
		{"members of a namespace", each("import * as a from './a.js';", "a.b=2;", ""), "too many assignments to constants"},
		{"members of a namespace counted up", each("import * as a from './a.js';", "{a.b++}", ""), "too many assignments to constants"},
		{"a namespace", each("import * as a from './a.js';", "a=2;", ""), "too many assignments to constants"},
		{"async generators in each other", strings.Repeat("async function*f(){", 45) + strings.Repeat("}", 45), "async generators nest too deep"},
		{"for await", each("", "for await(const a of b);", ""), "too many async generators and for await loops"},
		{"for await in each other", strings.Repeat("for await(const a of b)", 25) + ";", "for await loops nest too deep"},
		{"functions in each other", strings.Repeat("function f(){", 61) + strings.Repeat("}", 61), "functions nest too deep"},
		{"licenses", each("", "/*! */", ""), "too many comments with licenses"},
		{"flags", "return /a/gg", "a flag of this regular expression is repeated"},
	} {
		for _, ts := range []bool{false, true} {
			if _, refused := Check(c.body, ts); refused == nil || refused.Summary != c.want {
				t.Errorf("%s: got %v, want %s", c.name, refused, c.want)
			}
		}
	}
}

func TestCheck_repeatedNames(t *testing.T) {
	each := func(before, part, after string) string { return before + strings.Repeat(part, 300) + after }
	for name, body := range map[string]string{
		"in functions":            each("", "{ const a = 1; let [b, c] = a; class D {} }", ""),
		"in loops":                each("", "for (var i = 0; i < 9; i++) for (const a of [i]) { a }", ""),
		"var in a callback":       each("const f = (a, b) => b(); f(i, function () {", "for (var i = 0; i < 9; i++) {}", "})"),
		"var":                     each("", "var a = 1;", ""),
		"assignments":             each("let a = 1, b;", "a = 2; b = a++;", ""),
		"another of that name":    each("const a = 1; { let a;", "a = 2;", "}"),
		"a table":                 each("const _ = 1; return [", "_,", "_]"),
		"a table of objects":      each("const a = 1; return [", "{ b: a, c: a },", "]"),
		"a large object":          each("const a = 1; return {", "a, a() {},", "}"),
		"sequences":               each("let a, f = () => 1;", "a = 1, a = f(a, a), a++;", ""),
		"arguments of a callback": each("const a = 1, f = () => 1; f([", "a,", "], () => { return 1 })"),
		"a loop over a table":     each("const a = 1; for (const b of [", "a,", "]) { b }"),
		"sums":                    each("let a = 1;", "a = a * a * a + a;", ""),
		"conditionals":            each("const a = 1;", "a ? a : a ? a : a;", ""),
		"functions":               each("", "function f() {}", ""),
		"functions in functions":  strings.Repeat("function f(a = {}) { return [", 60) + strings.Repeat("] }", 60),
		"loops of functions":      each("", "for await (const a of b) for await (const c of a);", "")[:50*30],
		"getters":                 each("", "({ get a() { return 1 }, get 'b'() {} }); { class A { get\n a(b) {} } }", "") + "let get = a => a; get(1)",
		"?? with parentheses":     each("", "(a ?? b) || c; a ?? (b && c); x = a ?? b ? c || d : e && f;", "") + each("", "x = a ?? b\n!c || d\n", ""),
		"?? beside a comma":       each("f(", "a ?? b, c || d,", ")") + each("x = [", "a ?? b, c || d,", "]"),
		"?? in cases":             "switch (a) {" + each("", "case a ?? b: c || d;", "") + "}",
		"members of parameters":   "import * as a from './a.js';" + each("function f(a) {", "a.b = 2;", "}"),
		"members of an import":    "import * as a from './a.js';" + each("", "a.b(2); x = a.b == 2; x = a.b;", ""),
		"numbers in classes":      each("class A {", "1 = 1; 'a' = 2;", "}"),
		"async generators in row": each("", "(async function* () { yield 1 });", "")[:33*150],
		"members":                 each("const o = {};", "o.eval = o.with(1); delete o.a; delete o['a'];", ""),
		"zeros":                   "return [0, 0.5, 0x10, 0e1, 0n, '\\0', '\\x41', 10]",
	} {
		for _, ts := range []bool{false, true} {
			if _, refused := Check(body, ts); refused != nil {
				t.Errorf("%s: %s", name, refused.Summary)
			}
		}
	}
	types := each("interface A {", "a: string; b(c: string): readonly string[];", "}") +
		each("const a = 1;", "f(a as string, a as string);", "") + each("", "function g(a: string): void;", "")
	if _, refused := Check(types, true); refused != nil {
		t.Error(refused.Summary)
	}
}

// TestCheck_siblingFunctions: the TypeScript compiler turns functions in a block into one
// statement.
func TestCheck_siblingFunctions(t *testing.T) {
	body := strings.Repeat("function f() { return [function () {}] }\n", maxCommas)
	for _, c := range []struct {
		body string
		ts   bool
		want string
	}{
		{body, true, ""}, {body + "function g() {}", true, "too many functions"}, {body + "function g() {}", false, ""},
	} {
		summary := ""
		if _, refused := Check(c.body, c.ts); refused != nil {
			summary = refused.Summary
		}
		if summary != c.want {
			t.Errorf("%d bytes, TypeScript %v: got %q, want %q", len(c.body), c.ts, summary, c.want)
		}
	}
}
