package hclfile

import (
	"slices"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/diag"
)

// TestOneBrokenStringIsLeftOutOnce: what a mistake adds to what is left out
// does not grow with the mistakes before it.
func TestOneBrokenStringIsLeftOutOnce(t *testing.T) {
	text := `{"tool": {"a": {"title": "` + strings.Repeat(`\q`, 1000) + `"}}}`
	f := &File{path: "x.hcl.json", kind: ToolsKind, source: text, places: newPlaces(text)}
	_, problems, ok := f.mendJSON()
	if len(f.left.unread) > len(text) || len(problems) > maxDiagnostics+2 || ok {
		t.Errorf("%d bytes left out of %d, %d diagnostics, mended: %t", len(f.left.unread), len(text), len(problems), ok)
	}
}

func TestAByteOrderMarkMayBeginJSON(t *testing.T) {
	src := Source{Path: "x.hcl.json", Bytes: []byte(byteOrderMark + `{"tool": {"a": {"run": "return 1", "titel": "x"}}}`)}
	problems := toolProblems(src)
	if len(problems) != 1 || problems[0].Code == "syntax" {
		t.Fatal(told(problems))
	}
	if at := problems[0].Range.Start; at.Byte != 38 || at.Line != 1 {
		t.Errorf("the mistake is told at %+v", at)
	}
}

// TestMistakesOfJSONAreToldWithWhatToDo has what people write who think of
// another language.
func TestMistakesOfJSONAreToldWithWhatToDo(t *testing.T) {
	for text, want := range map[string]string{
		`tool "a" {`:       "JSON object",
		`{"tool" = {}}`:    "colon",
		`{tool: {}}`:       "double quotes",
		`{"locals": True}`: "small letters",
	} {
		_, problems := Parse(Source{Path: "x.hcl.json", Bytes: []byte(text)}, ToolsKind)
		if !slices.ContainsFunc(problems, func(d diag.Diagnostic) bool { return d.Severity == diag.Error && strings.Contains(d.Detail, want) }) {
			t.Errorf("%s: %v", text, problems)
		}
	}
}
