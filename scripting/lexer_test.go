package scripting

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// lexed returns the tokens of a text, with those that hide others marked.
func lexed(src string, language Language) (tokens []string, err *lexError) {
	l := lexer{src: src, ts: language == TS}
	for {
		t := l.next()
		if t.kind == tokenEnd {
			return tokens, l.err
		}
		tokens = append(tokens, src[t.start:t.end])
	}
}

func TestTextsAreCutAsTheParsersCutThem(t *testing.T) {
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
		tokens, err := lexed(c.src, JS)
		if diff := cmp.Diff(c.want, strings.Join(tokens, "|")); diff != "" || err != nil {
			t.Errorf("%q: %v (-want +got):\n%s", c.src, err, diff)
		}
	}
}

func TestTypeScriptIsCutItsOwnWay(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{"a! / 2", "a|!|/|2"},
		{"x = !/y/", "x|=|!|/y/"},
		{"A<B<C>>", "A|<|B|<|C|>|>"},
	} {
		tokens, err := lexed(c.src, TS)
		if diff := cmp.Diff(c.want, strings.Join(tokens, "|")); diff != "" || err != nil {
			t.Errorf("%q: %v (-want +got):\n%s", c.src, err, diff)
		}
	}
}

func TestWhatOnlyAParserCouldTellIsRefused(t *testing.T) {
	for _, src := range []string{"if (a) /x/.y()", "a = {} / 2", "function f() {} /x/", "await /x/", "yield /x/", "for (a of /x/)"} {
		if _, err := lexed(src, JS); err == nil || err.summary != "it is not clear whether this / begins a regular expression" {
			t.Errorf("%q: %v", src, err)
		}
	}
}

// ordinary is text of the kind that people write, which no bound may refuse.
func TestOrdinaryCodeIsNotRefused(t *testing.T) {
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
		for _, language := range []Language{JS, TS} {
			src := tool(body)
			src.Language = language
			if _, list := Compile(src); list.HasErrors() {
				t.Errorf("%s: %v", name, list)
			}
		}
	}
}
