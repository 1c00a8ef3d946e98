package lsp

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/language/hclfile"
)

func TestOutline_ofBrokenFiles(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"whole", "tool \"a\" {\n  title = \"x\"\n  limits {\n    memory = \"1\"\n  }\n}\n", "tool a(title, limits(memory))"},
		{"one line", `test "a" { tool = "b" }`, "test a(tool)"},
		{"missing brace", "tool \"a\" {\n  title = \"x\"\ntool \"b\" {\n}\n", "tool a(title) tool b()"},
		{"missing bracket", "policy \"a\" {\n  tools = [\"x\"\n\npolicy \"b\" {\n}\n", "policy a(tools) policy b()"},
		{"unclosed string", "tool \"a\" {\n  title = \"x\n  run = \"y\"\n}\n", "tool a(title, run)"},
		{"unclosed heredoc", "tool \"a\" {\n  run = <<JS\n    x\n}\n\ntool \"b\" {\n}\n", "tool a(run) tool b()"},
		{"heredoc with a block", "tool \"a\" {\n  run = <<JS\ntool \"x\" {\n}\nJS\n  title = \"y\"\n}\n", "tool a(run, title)"},
		{"name without value", "tool \"a\" {\n  ti\n  run = \"x\"\n}\n", "tool a(ti, run)"},
		{"comments", "# tool \"x\" {\n/* tool \"y\" {\n*/ tool \"a\" { // }\n  title = \"z\" # }\n}\n", "tool a(title)"},
		{"object", "test \"a\" {\n  input = {\n    b = { c = \"}\" }\n  }\n  expect {}\n}\n", "test a(input, expect())"},
		{"template", "tool \"a\" {\n  title = \"${f(\"}\")} {\"\n  run = \"x\"\n}\n", "tool a(title, run)"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, shape(outlineOf(test.text, hclfile.ToolsKind).root)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestOutline_ofLargeFiles completes only if its work does not grow with the square of the size.
func TestOutline_ofLargeFiles(t *testing.T) {
	var sameTag, otherTags strings.Builder
	for i := 0; sameTag.Len() < 1<<20; i++ {
		sameTag.WriteString("policy \"a\" {\ntools = <<A\n")
		fmt.Fprintf(&otherTags, "policy \"a\" {\ntools = <<A%d\n", i)
	}
	words := strings.Repeat("a ", 1<<19)
	for _, text := range []string{sameTag.String(), otherTags.String(), words} {
		file := newSource("x.hcl", "", text, &Project{})
		if want := strings.Count(text, "policy"); len(file.root.blocks) != want {
			t.Errorf("%d blocks, want %d", len(file.root.blocks), want)
		}
		(&index{unit: utf16, sources: []*source{file}}).references("tool", "b")
	}
}

// TestSource_symbolsOfLargeFiles completes only if a position does not cost the text before it.
func TestSource_symbolsOfLargeFiles(t *testing.T) {
	for _, end := range []string{"\n", " "} {
		text := strings.Repeat(`policy "a" {tools = ["b"]}`+end, 1<<15)
		file := newSource("x.hcl", "", text, &Project{})
		if got := file.symbols(utf16, file.root); len(got) == 0 {
			t.Error("no symbols")
		}
		(&index{unit: utf16, sources: []*source{file}}).references("tool", "b")
	}
}

func TestMarks_positions(t *testing.T) {
	text := "\n" + strings.Repeat("a😀é\xff\r\nb\n", 300) + strings.Repeat("é😀", 500)
	all := marksOf(text)
	if len(all) < 3 {
		t.Fatalf("%d marks", len(all))
	}
	for _, unit := range []encoding{utf16, utf8s} {
		for offset := -1; offset < len(text)+2; offset++ {
			if got, want := all.position(unit, text, offset), unit.position(text, offset); got != want {
				t.Fatalf("%s position of %d is %v, want %v", unit, offset, got, want)
			}
		}
	}
}

// shape returns the arguments and then the blocks of a block, with their names.
func shape(b *block) string {
	var inner, blocks []string
	for _, a := range b.arguments {
		inner = append(inner, a.name)
	}
	for _, deeper := range b.blocks {
		name := deeper.kind
		if title := deeper.title(); title != name {
			name += " " + title
		}
		blocks = append(blocks, name+shape(deeper))
	}
	if b.outer == nil {
		return strings.Join(blocks, " ")
	}
	return "(" + strings.Join(append(inner, blocks...), ", ") + ")"
}

// TestOutline_ofShippedFiles finds only blocks and arguments that the grammar has in files without
// mistakes.
func TestOutline_ofShippedFiles(t *testing.T) {
	files := 0
	for _, root := range []string{"../../../tools.d", "../../../examples"} {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".hcl") {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			files++
			kind := hclfile.ToolsKind
			if strings.HasPrefix(filepath.Base(path), "mcpd") {
				kind = hclfile.ConfigKind
			}
			outlineOf(string(text), kind).root.each(func(b *block) {
				if !b.allowed {
					t.Errorf("%s: no block %s in %s", path, b.kind, b.outer.title())
				}
				if b.kind == "locals" || b.kind == "module" {
					return
				}
				for _, a := range b.arguments {
					known := slices.ContainsFunc(b.grammar.Arguments(), func(g hclfile.GrammarArgument) bool { return g.Name == a.name })
					if !known || !a.hasEqual {
						t.Errorf("%s: no argument %s in %s", path, a.name, b.title())
					}
				}
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 20 {
		t.Errorf("only %d files", files)
	}
}

func TestEncoding_positions(t *testing.T) {
	const text = "a😀é\r\nb\n"
	for _, test := range []struct {
		unit   encoding
		at     position
		offset int
	}{
		{utf16, position{0, 0}, 0}, {utf16, position{0, 1}, 1}, {utf16, position{0, 3}, 5}, {utf16, position{0, 4}, 7}, {utf16, position{1, 1}, 10}, {utf16, position{2, 0}, 11},
		{utf8s, position{0, 1}, 1}, {utf8s, position{0, 5}, 5}, {utf8s, position{0, 7}, 7}, {utf8s, position{1, 0}, 9},
	} {
		if got := test.unit.offset(text, test.at); got != test.offset {
			t.Errorf("%s offset of %v is %d, want %d", test.unit, test.at, got, test.offset)
		}
		if got := test.unit.position(text, test.offset); got != test.at {
			t.Errorf("%s position of %d is %v, want %v", test.unit, test.offset, got, test.at)
		}
	}
	for _, test := range []struct {
		unit   encoding
		at     position
		offset int
	}{
		{utf16, position{0, 2}, 1}, {utf8s, position{0, 3}, 1}, // within a character
		{utf16, position{0, 99}, 7}, {utf16, position{99, 0}, len(text)}, {utf16, position{1 << 31, 1 << 31}, len(text)},
	} {
		if got := test.unit.offset(text, test.at); got != test.offset {
			t.Errorf("%s offset of %v is %d, want %d", test.unit, test.at, got, test.offset)
		}
	}
}

func TestEncoding_replacementGivesTheNewText(t *testing.T) {
	texts := []string{"", "a", "a\n", "a\nb\n", "b\n", "a\nx\nb\n", "a\nb", "\n\n", "a\n\nb\n", "x\na\nb\n", "a\nb\nb\n"}
	for _, from := range texts {
		for _, to := range texts {
			edit := utf16.replacement(from, to)
			got, err := utf16.apply(from, []contentChange{{&edit.Range, edit.NewText}}, maxDocument)
			if err != nil || got != to {
				t.Errorf("%q to %q: %+v gives %q, %v", from, to, edit, got, err)
			}
		}
	}
}

func TestEncoding_boundsChanges(t *testing.T) {
	large := strings.Repeat("a", maxDocument)
	for _, test := range []struct {
		text  string
		count int
		want  error
	}{
		{"", maxChanges, nil}, {"", maxChanges + 1, errTooManyChanges},
		{large, maxCopied / maxDocument, nil}, {large, maxCopied/maxDocument + 1, errTooManyChanges},
	} {
		changes := slices.Repeat([]contentChange{{Range: &span{}}}, test.count)
		if _, err := utf16.apply(test.text, changes, maxDocument); err != test.want {
			t.Errorf("%d changes of %d bytes: %v, want %v", test.count, len(test.text), err, test.want)
		}
	}
}

// FuzzOutline checks that offsets stay in the text and that blocks nest.
func FuzzOutline(f *testing.F) {
	for _, seed := range []string{"tool \"a\" {\n run = <<JS\n x\nJS\n}", "a = \"${\"", "}{", "x = [\n\"", "/*", "tool \"a\" {\n\ttool = { b = \"c", "<<-A\n", "a \"\\\"", "\xff{\x00}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<12 {
			return
		}
		root := outlineOf(text, hclfile.ToolsKind).root
		inside := func(what string, start, end int) {
			if start < 0 || start > end || end > len(text) {
				t.Fatalf("%s from %d to %d in %d bytes", what, start, end, len(text))
			}
		}
		file := newSource("x.hcl", "", text, &Project{})
		x := &index{unit: utf16, sources: []*source{file}}
		root.each(func(b *block) {
			inside(b.kind, b.kindStart, b.end)
			inside(b.kind+" body", b.body, b.bodyEnd)
			for _, l := range b.labels {
				inside("label", l.start, l.end)
			}
			for _, a := range b.arguments {
				inside(a.name, a.start, a.valueEnd)
			}
		})
		for offset := range len(text) + 1 {
			p := newCursor(x, file, offset)
			c := &completer{cursor: p, snippets: true, seen: map[string]bool{}}
			c.complete()
			for _, item := range c.items {
				if _, err := utf16.apply(text, []contentChange{{&item.TextEdit.Range, item.TextEdit.NewText}}, maxDocument); err != nil {
					t.Fatal(err)
				}
			}
			p.hover()
			_, start, end := p.targets()
			inside("target", start, end)
		}
	})
}
