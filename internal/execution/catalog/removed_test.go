package catalog

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/mcpd/mcpd/policylang"
)

func TestRememberRemoved_bounded(t *testing.T) {
	var text strings.Builder
	for i := range 1500 {
		fmt.Fprintf(&text, "resource \"r%d\" {\n  uri  = \"x:%[1]d\"\n  text = \"\"\n}\n", i)
	}
	build := func(text string) *Catalog {
		built := New(Options{Tools: fstest.MapFS{"r.hcl": {Mode: 0o644, Data: []byte(text)}}}).Build(Change{All: true}, nil)
		if built.Problems.HasErrors() {
			t.Fatal(built.Problems)
		}
		return built.Base.Catalog
	}
	before, after := build(text.String()), build("")
	after.RememberRemoved(before)
	known := 0
	for i := range 1500 {
		if _, ok := after.Removed(t.Context(), Resources, fmt.Sprintf("x:%d", i), policylang.Input{}); ok {
			known++
		}
	}
	if known != maxRemoved {
		t.Errorf("%d items are remembered", known)
	}
}
