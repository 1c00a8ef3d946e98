package scripting

import (
	"errors"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/mcpd/mcpd/diag"
)

// TestCompile_firstSyntaxError compares the diagnostics of each body in
// testdata/mistakes.txtar with those that follow it there.
func TestCompile_firstSyntaxError(t *testing.T) {
	const golden = "testdata/mistakes.txtar"
	archive, err := txtar.ParseFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	imports := map[string]string{}
	for _, f := range archive.Files {
		if name, ok := strings.CutPrefix(f.Name, "import/"); ok {
			imports[name] = string(f.Data)
		}
	}
	for i, f := range archive.Files {
		language := map[string]Language{".js": JS, ".ts": TS}
		is, ok := language[path.Ext(f.Name)]
		if !ok || strings.HasPrefix(f.Name, "import/") {
			continue
		}
		src := tool(string(f.Data))
		src.Language, src.Import = is, importing(imports)
		_, list := Compile(src)
		got := strings.Join(told(src, list), "\n") + "\n"
		want := &archive.Files[i+1]
		if diff := cmp.Diff(string(want.Data), got); diff != "" && !*update {
			t.Errorf("%s (-want +got):\n%s", f.Name, diff)
		}
		want.Data = []byte(got)
	}
	if *update {
		if err := os.WriteFile(golden, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// codes returns the codes of diagnostics.
func codes(list diag.List) (codes []string) {
	for _, d := range list {
		codes = append(codes, d.Code)
	}
	return codes
}

func TestCompile_trial(t *testing.T) {
	space := strings.Repeat(" ", maxUnproven)
	for _, c := range []struct {
		name string
		src  Source
		err  error
		want []string
	}{
		{"a syntax error", tool("const a = ;" + space), nil, []string{"script-syntax"}},
		{"a body that fails its trial", tool("const a = ;" + space), errors.New("it did not survive"), []string{"script-too-costly"}},
		{"agent code in TypeScript", codeOf("const a: number = 1; a" + space), nil, nil},
	} {
		var tried []string
		c.src.Trial = func(given Source) error {
			tried = append(tried, given.Text.Body())
			return c.err
		}
		_, list := Compile(c.src)
		if diff := cmp.Diff(c.want, codes(list)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
		if diff := cmp.Diff([]string{c.src.Text.Body()}, tried); diff != "" {
			t.Errorf("%s (-want +tried):\n%s", c.name, diff)
		}
	}
}

// TestCompile_syntaxErrorAlone checks that nothing is said about the meaning of a
// body with a syntax error, wherever a compiler finds it.
func TestCompile_syntaxErrorAlone(t *testing.T) {
	for name, body := range map[string]string{
		"by its tokens":      "return vars.typo + 'abc",
		"by the parser":      "return vars.typo +;",
		"by the engine":      "log.info(vars.typo, nope); break;",
		"as an export":       "export const a = vars.typo; export const b = 1;",
		"two of them":        "const a = ; const b = ;",
		"a private name":     "class A { a() { return [this.#b, this.#c, vars.typo] } }",
		"in a large body":    "class A { a() { return [this.#b, this.#c, vars.typo] } }" + strings.Repeat(" ", maxThorough),
		"behind an import":   "import { x } from './good.js'; return vars.typo + x +;",
		"twice in one file":  "import x from './bad.js'; return vars.typo + x;",
		"a declaration":      "let a = 1; let a = 2; let a = 3; return vars.typo",
		"in a larger body":   "let a = 1; let a = 2; let a = 3; return vars.typo" + strings.Repeat(" ", maxUnproven),
		"a getter parameter": "return { get a(b) { return vars.typo } }",
	} {
		for _, language := range []Language{JS, TS} {
			src := tool(body)
			src.Language = language
			src.Import = importing(map[string]string{"good.js": "export const x = 1;", "bad.js": "export default 1; let a = 1; let a = 2; let a = 3;"})
			if _, list := Compile(src); len(list) != 1 || list[0].Code != "script-syntax" {
				t.Errorf("%s in %v: %v", name, language, list)
			}
		}
	}
}

func TestCompile_everyWrongImport(t *testing.T) {
	src := tool("import a from './a.js';\nimport b from './b.js';\nimport c from './c.js';\nreturn [a, b, c];")
	src.Import = importing(map[string]string{"b.js": "export default ;"})
	_, list := Compile(src)
	want := []string{
		"b.js:1:16: error: unexpected \";\"",
		"tools.d/t.hcl:5:15 \"'./a.js'\": error: there is no file a.js in the tools folder",
		"tools.d/t.hcl:7:15 \"'./c.js'\": error: there is no file c.js in the tools folder",
	}
	if diff := cmp.Diff(want, told(src, list)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
