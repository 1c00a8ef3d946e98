package toolprompt

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/js/esbuild"
	"github.com/mcpd/mcpd/scripting"
)

var update = flag.Bool("update", false, "write what is printed into the golden files")

// holdGolden compares a text with a golden file in testdata.
func holdGolden(t *testing.T, name, got string) {
	t.Helper()
	path := "testdata/" + name
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// mistakes returns the TypeScript errors in a text.
func mistakes(text string) string {
	_, list := scripting.Compile(scripting.Source{Name: "declarations", Kind: scripting.Tool, Language: scripting.TS, Transpiler: esbuild.New(), Text: diag.WholeFile("declarations.ts", text)})
	if !list.HasErrors() {
		return ""
	}
	var b strings.Builder
	for _, d := range list {
		b.WriteString(d.Summary + ": " + d.Detail + "\n")
	}
	return b.String()
}
