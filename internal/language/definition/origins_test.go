package definition

import (
	"testing"

	"github.com/mcpd/mcpd/diag"
)

func TestOrigins_At(t *testing.T) {
	at := func(line int) diag.Range { return diag.Range{File: "a.hcl", Start: diag.Pos{Line: line}} }
	origins := Origins{{"/b", at(1)}, {"/a", at(2)}, {"/b", at(3)}, {"/a/c", at(4)}}
	origins.Sort()
	for pointer, want := range map[string]int{"/a": 2, "/b": 3, "/a/c": 4} {
		if where, ok := origins.At(pointer); !ok || where != at(want) {
			t.Errorf("%s is at %v, %t, want line %d", pointer, where, ok, want)
		}
	}
	if where, ok := origins.At("/c"); ok {
		t.Errorf("/c is at %v, want no position", where)
	}
	if len(origins) != 3 {
		t.Errorf("%d origins, want 3", len(origins))
	}
}
