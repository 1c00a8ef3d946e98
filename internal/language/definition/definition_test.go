package definition

import (
	"strings"
	"testing"

	"github.com/mcpd/mcpd/diag"
)

func TestFolder_uriRoundTrip(t *testing.T) {
	f := Folder{URIPrefix: "docs://h/", Glob: []string{"**"}}
	for name, uri := range map[string]string{
		"a.md": "docs://h/a.md", "x/ä b+%.md": "docs://h/x/%C3%A4%20b%2B%25.md", "q?#.md": "docs://h/q%3F%23.md",
	} {
		if got := f.URI(name); got != uri {
			t.Errorf("URI(%q) = %s", name, got)
		}
		if got, ok := f.PathOf(uri); got != name || !ok {
			t.Errorf("PathOf(%q) = %q", uri, got)
		}
	}
	for _, uri := range []string{"docs://h/../a.md", "docs://h/%2e%2e/a.md", "docs://h/", "docs://h//a.md", "docs://h/a%2", "docs://i/a.md", "docs://h/./a.md", "docs://h/%2Fetc/passwd", "docs://h/a%00b"} {
		if name, ok := f.PathOf(uri); ok {
			t.Errorf("PathOf(%q) = %q", uri, name)
		}
	}
}

func TestMatchGlob_bounded(t *testing.T) {
	asked := 0
	stars, name := strings.Repeat("*a", 200)+"b", strings.Repeat("a", 400)
	if matchRun(len(stars), len(name), func(i int) bool { return stars[i] == '*' }, func(i, j int) bool { asked++; return stars[i] == name[j] }) {
		t.Error("matched")
	}
	if asked > len(stars)*len(name) {
		t.Errorf("fits was called %d times", asked)
	}
	for pattern, names := range map[string][]string{
		"**":      {"a", "a/b", "a/b/c"},
		"a/**":    {"a/b", "a/b/c", "a"},
		"**/a/**": {"a", "x/a", "x/a/y/z"},
		"*é?":     {"éx", "aéx"},
	} {
		for _, name := range names {
			if !matchGlob(pattern, name) {
				t.Errorf("%s does not match %s", pattern, name)
			}
		}
	}
	for pattern, name := range map[string]string{"*": "a/b", "a/*/b": "a/b", "**/a": "a/b", "?": "", "a*": "b"} {
		if matchGlob(pattern, name) {
			t.Errorf("%s matches %s", pattern, name)
		}
	}
}

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
