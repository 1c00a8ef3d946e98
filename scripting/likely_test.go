package scripting

import (
	"strings"
	"testing"
)

// TestLikelyMistakesComeWithWhatToDo holds what is said of the mistakes that
// people make who write in haste, or know another language better.
func TestLikelyMistakesComeWithWhatToDo(t *testing.T) {
	for _, c := range []struct{ body, part string }{
		{"return {\n  a: 1\n  b: 2,\n}", "comma at the end of the line in front of it"},
		{"return { a: 1 b: 2 }", "a comma in front of it"},
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
		{"if (1) { log.info('a') };\nelse { log.info('b') }", "else stands right behind the if"},
		{"log.info((1)", "add the ) that closes it"},
		{"log.info(1))", "remove it"},
		{"[1].map((x) => { const y = await http.crm.get('/'); return y })", "write async in front of the function"},
		{"const class = 1", "choose another name"},
		{"let new = 2", "choose another name"},
		{"const a-b = 1", "cannot contain -"},
		{"const 1a = 1", "begin with a digit"},
		{"input?.a = 1", "write if (a) { a.b = … }"},
		{"for (const x input.list) {}", "write of between"},
		{"if (1) {} elif (2) { log.info('a') }", "else if"},
		{"if (input.a and input.b) {}", "&& instead of and"},
		{"if (not input.a) {}", "! instead of not"},
		{"return input.a or 2", "|| instead of or"},
		{"# a comment\nreturn 1", "begins with //"},
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
		{"const x = ;", "a value is missing"},
		{"const x =\nconst y = 2;", "a value is missing"},
		{"const f = (x) => return x", "leave out return"},
		{"function f() return 1", "in braces"},
		{"switch (input.a) { case 1 { log.info('a') } }", "a colon behind the case"},
		{"return 'a' 'b'", "join texts with +"},
		{"return 'a' input.b", "join texts with +"},
		{"return ${input.a}", "backticks"},
		{"return input.a ? 1;", "needs its :"},
		{"try { log.info('a') } except (e) { }", "catch (error)"},
		{"input.a. = 1", "behind the dot"},
		{"<<<<<<< HEAD\nlog.info(1)", "a merge left a conflict"},
	} {
		for _, language := range []Language{JS, TS} {
			src := tool(c.body)
			src.Language = language
			_, list := Compile(src)
			if len(mistakes(src, list)) != 1 || !strings.Contains(list[0].Detail, c.part) {
				t.Errorf("%v %s: %v does not say %q", language, c.body, list, c.part)
			}
		}
	}
}

func TestNamesOfOtherLanguagesAreKnown(t *testing.T) {
	for name, part := range map[string]string{
		"None": "null", "nil": "null", "True": "true", "False": "false", "print": "log.info", "len": "x.length", "self": "this", "str": "String", "int": "Number",
	} {
		if _, list := Compile(tool("return " + name)); len(list) != 1 || !strings.Contains(list[0].Detail, part) {
			t.Errorf("%s: %v does not say %q", name, list, part)
		}
	}
}
