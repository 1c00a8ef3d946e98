package compiler

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/diag"
)

func TestImports_removed(t *testing.T) {
	for _, c := range []struct {
		code string
		want []string // removed imports
	}{
		{`import x from "y"`, []string{`import x from "y"`}},
		{"import 'y';f()", []string{"import 'y';"}},
		{"import {\n  a,\n  b as c,\n} from \"y\"\nf()", []string{"import {\n  a,\n  b as c,\n} from \"y\""}},
		{"import * as y from 'y'; import d, { e } from 'z'\n", []string{"import * as y from 'y';", "import d, { e } from 'z'"}},
		{"import { default as d, \"a-b\" as e } from 'y'", []string{"import { default as d, \"a-b\" as e } from 'y'"}},
		{`import data from "./d.json" with { type: "json" }`, []string{`import data from "./d.json" with { type: "json" }`}},
		{"import type { A } from 'y'", []string{"import type { A } from 'y'"}},
		{"import fs = require('fs');", []string{"import fs = require('fs');"}},
		{"const fs = require('fs')\nlet { a, b: c } = require(\"x\"), d = require('d');\nf()", []string{"const fs = require('fs')", "let { a, b: c } = require(\"x\"), d = require('d');"}},
		{"import os", []string{"import os"}},
		{"import os, sys\nimport numpy as np\nimport os.path\nimport a.b as c, d", []string{"import os, sys", "import numpy as np", "import os.path", "import a.b as c, d"}},
		{"from tools import search_web\nfrom x import (a,\n b as c,\n)\nfrom . import y\nfrom ..p.q import z as w, v\nfrom m import *", []string{
			"from tools import search_web", "from x import (a,\n b as c,\n)", "from . import y", "from ..p.q import z as w, v", "from m import *",
		}},
		{"import os\nfrom tools import a\nimport x\nfrom 'y'", []string{"import os", "from tools import a", "import x\nfrom 'y'"}},
		{"f(); import os; g()", []string{"import os;"}},
		{"function f() {\n  import os\n}", []string{"import os"}},
		{"import os # comment", []string{"import os # comment"}},
		{"import os as x # it's y\nf()", []string{"import os as x # it's y"}},
		{"import os; # c\nf()", []string{"import os; # c"}},
		{"import os;f() # c", []string{"import os;"}},
		{"import os#c\nimport sys\nf()", []string{"import os#c", "import sys"}},
		{"from x import a # \"c\nf()", []string{"from x import a # \"c"}},
		{"from x import ( # first\n  a, # don't\n  b as c,\n  # `last\n) # e\nf()", []string{"from x import ( # first\n  a, # don't\n  b as c,\n  # `last\n) # e"}},
		{"from x import a, \\\n  b\nimport os, \\\r\n  sys\nf()", []string{"from x import a, \\\n  b", "import os, \\\r\n  sys"}},
		{"from . import a # b\nfrom .c import d\nfrom ... import e", []string{"from . import a # b", "from .c import d", "from ... import e"}},
		{"import a.b as c, d.e as f", []string{"import a.b as c, d.e as f"}},
		{"from __future__ import annotations", []string{"from __future__ import annotations"}},
		{"import type A from 'y'\nimport { type B, C } from 'y'\nimport type * as D from 'z'", []string{"import type A from 'y'", "import { type B, C } from 'y'", "import type * as D from 'z'"}},
		{"import defer * as ns from 'x'\nimport source x from 'y'", []string{"import defer * as ns from 'x'", "import source x from 'y'"}},
		{"import 'x' as y", []string{"import 'x' as y"}},
		{"if (a) { b(() => { import os }) }", []string{"import os"}},
		{"try { import os } catch {}", []string{"import os"}},
		{"import('os')\nawait import(\"x\");f()", []string{"import('os')", "await import(\"x\");"}},
		{"const os = await import('os'), { a, b: c } = await import(\"fs\");f()", []string{"const os = await import('os'), { a, b: c } = await import(\"fs\");"}},
		{"const m = await import(`./${name}.js`)\nlet n = import(a + '.js')", []string{"const m = await import(`./${name}.js`)", "let n = import(a + '.js')"}},
		{"const a = require('a'), b = await import('b')", []string{"const a = require('a'), b = await import('b')"}},
		{"import('a').then(m => m.f())", []string{"import('a')"}},
		{"import('a')\n  .then(m => m.f())", []string{"import('a')"}},
		{"const x =\n  await import('a')", []string{"const x =\n  await import('a')"}},
		{"x =\n  await import('a')", []string{"import('a')"}},
		{"const x = (await import('a')).default", []string{"import('a')"}},
		{"const [a, b] = await Promise.all([import('a'), import(b)])", []string{"import('a')", "import(b)"}},
		{"`${await import('x')} import('y')`", []string{"import('x')"}},
		{"if (a)\n  await import('x')\nelse\n  import('y')", []string{"await import('x')", "import('y')"}},
		{"return\nimport('x')", []string{"import('x')"}},
		{"f(import(await get_name()))\nconst m = await import(name())", []string{"import", "import"}},
		{"import(\n  'a'\n)\nf(import(\n'a'))", []string{"import(\n  'a'\n)", "import(\n'a')"}},
		{"let a: import('fs').Stats", []string{"import('fs')"}},
		{"f(import.meta.url)\nimport.meta.env", []string{"import.meta", "import.meta"}},
		{"require('x')\nawait f()", []string{"require('x')"}},
		{"const fs = require('fs')\n  .promises", []string{"require('fs')"}},
		{"a.import('x')\nb?.import(\"y\")\nclass C { import(x) { return x } }\nconst o = { import(x) { return x } }", nil},
		{"# import os\n", nil},
		{"class A {\n  #from = 1\n  #import = 2\n}", nil},
		{"const from = 1\nfrom\n(f())", nil},
		{"const s = 'a\\\nimport os\\\n'", nil},
		{"// import os as x\n/*\nfrom x import (a,\n b)\nimport('os')\n*/\n`\nimport('os')\nimport os # x\n${a}\nfrom x import (a, b)\n`", nil},
		{"\"import('os')\"\n'await import(\"x\")';\n/import('os')/", nil},
		{"// import os\n/* import os\nimport x from 'y' */\n\"import os\"\n'import x'\n`\nimport os\nfrom a import b\n`\n/import os/", nil},
		{"`${a}\nimport os\n`", nil},
		{"x = `\nconst fs = require('fs')\n`", nil},
		{"await import('x')\nimport.meta\nimport('y')", []string{"await import('x')", "import.meta", "import('y')"}},
		{"const fs = require('fs').promises\nconst g = require(name)\nf(require('x'))\nconst h = require('h') + 1", []string{"require('fs')", "require(name)", "require('x')", "require('h')"}},
		{"f(require(await name()))", []string{"require"}},
		{"typeof require === 'undefined' ? 1 : require('x')", []string{"require('x')"}},
		{"const require = (a) => a\nf(require(1))", nil},
		{"function require(a) { return a }\nf(require(1))", nil},
		{"const f = (require) => g(require(1))", nil},
		{"class C { require(a) { return a } }\na.require('x')\nf(require(), require(a, b), require(...a))", nil},
		{"interface C { require(a: string): void }\n// f(require('x'))\n\"f(require('x'))\"", nil},
		{"import\nos", []string{"import"}},
		{"import os sys", []string{"import os sys"}},
		{"import os as", []string{"import os as"}},
		{"from = 5\nfrom.import\nfrom", nil},
		{"a.import\nb.from", nil},
		{"({ import: 1, from: 2 })", nil},
		{"import { a from 'y'", nil},
		{"from x import", []string{"from x import"}},
		{"from x import (a, b", nil},
	} {
		got, found := removeImports(c.code)
		var removed []string
		want := c.code
		for _, m := range found.removed {
			text := c.code[m.Start:m.End]
			removed = append(removed, text)
			want = want[:m.Start] + emptied(text, m.instead) + want[m.End:]
		}
		if diff := cmp.Diff(c.want, removed); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.code, diff)
		}
		if got != want {
			t.Errorf("%q becomes %q, want %q", c.code, got, want)
		}
	}
}

func TestImports_warning(t *testing.T) {
	text := diag.WholeFile("code", "let a = 1\n  from tools import (search_web,\n    read_file)\nawait search_web({})\nconst b = ;")
	src := codeOf("")
	src.Text = text
	_, list := Compile(src)
	var got []string
	for _, d := range list {
		got = append(got, d.String())
	}
	want := []string{
		"code:2:3: warning: import statements are not needed: removed line 2: from tools import (search_web, read_file); all tools are available, and nothing else can be imported",
		"code:5:11: error: unexpected token ;; a value is missing between = and ;",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// FuzzImports checks that no other byte changes, and no line moves.
func FuzzImports(f *testing.F) {
	for _, seed := range []string{
		"import os\nfrom x import (a,\n b)\nimport {a} from 'y';", "const x = require('y')\n`${import os}`", "from . import a\nimport a, b as c", "import \"y\" with {", "/*", "import ü from 'ß'",
		"import os # it's\nfrom x import (a, # b\n c) # d", "import a, \\\n b", "const a = await import(`${import(b())}`)", "import.meta.x;import(\n)", "f(import(import(a)), (import('x')", "f(require(require(a)), (require('x')", "f(require(\nb(`${require(a)}`)))", "}${import(`",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, found := removeImports(text)
		if len(got) != len(text) || strings.Count(got, "\n") != strings.Count(text, "\n") {
			t.Fatalf("%q becomes %q", text, got)
		}
		from := 0
		for _, m := range found.removed {
			if m.Start < from || m.End <= m.Start || m.End > len(text) {
				t.Fatalf("%q: the removed %v", text, found.removed)
			}
			if got[from:m.Start] != text[from:m.Start] || strings.Trim(strings.TrimPrefix(got[m.Start:m.End], m.instead), " \r\n") != "" {
				t.Fatalf("%q becomes %q", text, got)
			}
			from = m.End
		}
		if got[from:] != text[from:] {
			t.Fatalf("%q becomes %q", text, got)
		}
	})
}

func TestCode_blockInsteadOfObject(t *testing.T) {
	const why = "this is a block of statements, not an object; " + asObject
	for _, c := range []struct {
		code string
		want []string
	}{
		{"{ a: 1 }", []string{"code:1:1: error: " + why}},
		{"const a = 1\n{ a }", []string{"code:2:1: error: " + why}},
		{"const a = 1, b = 2;\n{ a, b };", []string{"code:2:1: error: " + why}},
		{"const a: number = 1\n{ a }", []string{"code:2:1: error: " + why}},
		{"{ a: 1, b: 2 }", []string{"code:1:10: error: unexpected token; " + asObject}},
		{"const a = 1\n{ a, b: await crm.list() }", []string{"code:2:7: error: unexpected token; " + asObject}},
		{"{ crm.list() }", nil},
		{"{ const a = 1; a }", nil},
		{"if (true) { a }\nconst a = 1", nil},
		{"class A { a }", nil},
		{"for (;;) { break }", nil},
	} {
		_, problems := Compile(codeOf(c.code))
		var got []string
		for _, p := range problems {
			got = append(got, p.String())
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", c.code, diff)
		}
	}
}

func TestFence_warning(t *testing.T) {
	_, list := Compile(codeOf("\n```js\nimport x from 'y'\n1\n```"))
	var got strings.Builder
	for _, d := range list {
		got.WriteString(d.Code + " " + d.String() + "\n")
	}
	want := "fence-removed code:2:1: warning: code needs no Markdown fence: removed the fence around it; send the program alone\n" +
		"import-removed code:3:1: warning: import statements are not needed: removed line 3: import x from 'y'; all tools are available, and nothing else can be imported\n"
	if got.String() != want {
		t.Errorf("got\n%swant\n%s", got.String(), want)
	}
}

func TestFence_notAroundProgram(t *testing.T) {
	for _, code := range []string{
		"```js\n1 + 1", "1 + 1\n```", "Here it is:\n```js\n1\n```", "```js\n1\n```\nThat is all.", "```sql\nselect 1\n```", "~~~js\n1", "~~~~\n1\n~~~", "```js\n1\n~~~",
		"", "```", "``````", "```js```", "\n\n", "~~~", "`", "`\n`", "~~~\n",
		"\v\n0", "\f\n```js\n1\n```", "\u00a0\n1",
	} {
		if f := fenced(code); f != nil {
			t.Errorf("%q has the fence %v", code, f)
		}
	}
}
