package scripting

import (
	"strings"
	"testing"
)

func TestEveryMistakeOfSyntaxComesWithAdvice(t *testing.T) {
	for body, part := range map[string]string{
		`const x = ;`:                                   "a value is missing",
		`let a = 1; let a = 2;`:                         "another name",
		`const r = /(/;`:                                "backslash",
		`const r = /a**/;`:                              "backslash",
		`const r = /)/;`:                                "",
		`with (input) {}`:                               "in front of each",
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
		for _, language := range []Language{JS, TS} {
			src := tool(body)
			src.Language = language
			_, list := Compile(src)
			if !list.HasErrors() {
				continue
			}
			for _, d := range list {
				if d.Detail == "" {
					t.Errorf("%s: %s: nothing says what to do", body, d.Summary)
				}
			}
			if detail := list[0].Detail; language == JS && !strings.Contains(detail, part) {
				t.Errorf("%s: %s: %q does not say %q", body, list[0].Summary, detail, part)
			}
		}
	}
}

func TestMistakesOfImportsComeWithAdvice(t *testing.T) {
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
