package hclfile

import (
	"strings"
	"testing"
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
