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

// TestAllMistakesOfABodyAreTold holds testdata/mistakes.txtar, in which what is
// told follows each body.
func TestAllMistakesOfABodyAreTold(t *testing.T) {
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

// large returns a statement with as much space behind it as makes a body that
// is compiled on trial first.
func large(statements string) string { return statements + strings.Repeat(" ", maxUnproven) }

func codes(list diag.List) (codes []string) {
	for _, d := range list {
		codes = append(codes, d.Code)
	}
	return codes
}

func TestWhatIsNotLookedForIsAnnounced(t *testing.T) {
	for _, c := range []struct {
		name, body string
		told       int
	}{
		{"more bytes than may be compiled again", strings.Repeat("log.info(1 +);\n", 2000), 2},
		{"more mistakes than are told", strings.Repeat("log.info(;\n", 60), 0},
		{"a large body whose tokens show what is wrong", "vars.typo;" + strings.Repeat(" ", maxThorough), 1},
	} {
		_, list := Compile(tool(c.body))
		unchecked := 0
		for _, code := range codes(list) {
			if code == "script-unchecked" {
				unchecked++
			}
		}
		if unchecked != 1 || len(list)-unchecked < c.told {
			t.Errorf("%s: %d mistakes and %d announcements are told", c.name, len(list)-unchecked, unchecked)
		}
	}
}

func TestABodyWithMistakesIsTriedOnceAsItIs(t *testing.T) {
	src := tool(large("const a = ;\nconst b = (;\nconst c = vars.typo;\n"))
	var tried []string
	src.Trial = func(given Source) error {
		tried = append(tried, given.Text.Body())
		return nil
	}
	_, list := Compile(src)
	if diff := cmp.Diff([]string{src.Text.Body()}, tried); diff != "" {
		t.Errorf("-want +tried:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"script-syntax", "script-syntax", "unknown-variable"}, codes(list)); diff != "" {
		t.Errorf("-want +told:\n%s", diff)
	}
	src.Trial = func(Source) error { return errors.New("it did not survive") }
	_, list = Compile(src)
	if diff := cmp.Diff([]string{"script-too-costly", "script-syntax", "unknown-variable"}, codes(list)); diff != "" {
		t.Errorf("a body that does not survive its trial (-want +told):\n%s", diff)
	}
}

func TestEachFileIsReadOnceHoweverOftenTheBodyIsCompiled(t *testing.T) {
	src := tool("import a from './a.js';\nconst b = ;\nreturn a +;")
	var read []string
	src.Import = func(name string) ([]byte, error) {
		read = append(read, name)
		return []byte("export default 1;\nlet c = ;\nlet d = ;\n"), nil
	}
	_, list := Compile(src)
	if diff := cmp.Diff([]string{"a.js"}, read); diff != "" || len(list) != 4 {
		t.Errorf("told %v; -want +read:\n%s", list, diff)
	}
}
