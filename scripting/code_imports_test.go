package scripting

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/diag"
)

func TestImportStatementsAreLeftOutOfCode(t *testing.T) {
	for _, c := range []struct {
		code string
		want []string // what is left out
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
		{"import os # comment", nil},
		{"// import os\n/* import os\nimport x from 'y' */\n\"import os\"\n'import x'\n`\nimport os\nfrom a import b\n`\n/import os/", nil},
		{"`${a}\nimport os\n`", nil},
		{"x = `\nconst fs = require('fs')\n`", nil},
		{"await import('x')\nimport.meta\nimport('y')", nil},
		{"const fs = require('fs').promises\nconst g = require(name)\nf(require('x'))\nconst h = require('h') + 1", nil},
		{"import\nos", nil},
		{"import os sys", nil},
		{"from = 5\nfrom.import\nfrom", nil},
		{"a.import\nb.from", nil},
		{"({ import: 1, from: 2 })", nil},
		{"import { a from 'y'", nil},
		{"from x import", nil},
		{"from x import (a, b", nil},
	} {
		got, found := withoutImports(c.code)
		var removed []string
		want := c.code
		for _, m := range found.removed {
			text := c.code[m.start:m.end]
			removed = append(removed, text)
			want = want[:m.start] + emptied(text) + want[m.end:]
		}
		if diff := cmp.Diff(c.want, removed); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.code, diff)
		}
		if got != want {
			t.Errorf("%q becomes %q, want %q", c.code, got, want)
		}
	}
}

func TestAnImportThatIsLeftOutIsReported(t *testing.T) {
	text := diag.WholeFile("code", "let a = 1\n  from tools import (search_web,\n    read_file)\nawait search_web({})\nconst b = ;")
	src := codeOf("")
	src.Text = text
	_, list := Compile(src)
	var got []string
	for _, d := range list {
		got = append(got, d.String())
	}
	want := []string{
		"code:2:3: warning: import statements are not needed: removed line 2: from tools import (search_web, read_file); the tools are there already, and nothing else can be imported",
		"code:5:11: error: unexpected token ;; a value is missing between = and ;",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What is left out keeps its place: no other byte changes, and no line moves.
func FuzzImports(f *testing.F) {
	for _, seed := range []string{
		"import os\nfrom x import (a,\n b)\nimport {a} from 'y';", "const x = require('y')\n`${import os}`", "from . import a\nimport a, b as c", "import \"y\" with {", "/*", "import ü from 'ß'",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, found := withoutImports(text)
		if len(got) != len(text) || strings.Count(got, "\n") != strings.Count(text, "\n") {
			t.Fatalf("%q becomes %q", text, got)
		}
		from := 0
		for _, m := range found.removed {
			if m.start < from || m.end <= m.start || m.end > len(text) {
				t.Fatalf("%q: the removed %v", text, found.removed)
			}
			if got[from:m.start] != text[from:m.start] || strings.Trim(got[m.start:m.end], "; \r\n") != "" {
				t.Fatalf("%q becomes %q", text, got)
			}
			from = m.end
		}
		if got[from:] != text[from:] {
			t.Fatalf("%q becomes %q", text, got)
		}
	})
}

// Compiling code ends, whatever it is, and tells of places that are in it.
func FuzzCode(f *testing.F) {
	for _, seed := range []string{ofTheRFC, "search_web(a=1)", "import os\nx = 5", "async function* g() {}\n1", "const a: number = 1", "for (x of []) {}", "({a} = 1)", "print(f'x')"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		src := codeOf(text)
		p, list := Compile(src)
		if (p == nil) != list.HasErrors() {
			t.Fatalf("%q: a program %t, and %v", text, p != nil, list)
		}
		for _, d := range list {
			if start, end := d.Range.Start.Byte, d.Range.End.Byte; start < 0 || end < start || end > len(text) {
				t.Fatalf("%q: %v is at %d to %d", text, d, start, end)
			}
		}
		_ = Explain(src.Text, list)
		if p == nil {
			return
		}
		data, err := p.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		var again Program
		if err := again.UnmarshalBinary(data); err != nil || again.Hash() != p.Hash() {
			t.Fatalf("%q in another process: %v", text, err)
		}
	})
}
