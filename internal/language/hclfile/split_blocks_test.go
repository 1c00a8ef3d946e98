package hclfile

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
)

// validFiles returns the HCL files of the repository without errors.
func validFiles(t *testing.T) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for _, folder := range []string{"tools.d", "examples", "testdata"} {
		err := filepath.WalkDir(filepath.Join("../../..", folder), func(name string, _ os.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(name, ".hcl") {
				return err
			}
			text, err := os.ReadFile(name)
			if len(allProblems(t, Source{Path: name, Bytes: text})) == 0 {
				files[name] = text
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(files) < 10 {
		t.Fatalf("only %d files", len(files))
	}
	return files
}

// breaks add a syntax error to the line of an argument. They return the line unchanged if they
// do not apply.
var breaks = map[string]func(line string) string{
	"no equals sign": func(line string) string { return strings.Replace(line, " = ", " ", 1) },
	"colon":          func(line string) string { return strings.Replace(line, " = ", ": ", 1) },
	"sign behind":    func(line string) string { return strings.Replace(line, " = ", " = ? ", 1) },
	"semicolon":      func(line string) string { return line + ";" },
	"open quote": func(line string) string {
		if strings.HasSuffix(line, `"`) && !strings.HasSuffix(line, `""`) {
			return line[:len(line)-1]
		}
		return line
	},
}

// The last argument on one line of every second block is broken. Each of these blocks reports
// only that line; the other blocks report nothing.
func TestSplitBlocks_oneErrorPerBlock(t *testing.T) {
	broken := 0
	for name, text := range validFiles(t) {
		file, _ := Parse(Source{Path: name, Bytes: text}, kindOf(name))
		for mutation, mutate := range breaks {
			lines := strings.Split(string(text), "\n")
			var want []int
			for i, b := range file.body.Blocks {
				last := 0
				for _, attr := range b.Body.Attributes {
					if where := file.rng(attr.SrcRange); where.Start.Line == where.End.Line && file.rng(attr.Expr.Range()).End.Line == where.Start.Line {
						last = max(last, where.Start.Line)
					}
				}
				if i%2 > 0 || last == 0 || file.rng(b.TypeRange).Start.Line == last {
					continue
				}
				if was := lines[last-1]; !strings.Contains(was, "<<") && !strings.ContainsAny(was, "#") {
					if lines[last-1] = mutate(was); lines[last-1] != was {
						want = append(want, last)
					}
				}
			}
			slices.Sort(want)
			src := Source{Path: name, Bytes: []byte(strings.Join(lines, "\n"))}
			var got []int
			problems := allProblems(t, src)
			for _, p := range problems {
				if p.Severity == diag.Error {
					got = append(got, p.Range.Start.Line)
				}
			}
			if broken += len(want); !slices.Equal(want, got) {
				t.Errorf("%s, %s: lines %v are broken; reported: %s", name, mutation, want, strings.Join(told(problems), "\n"))
			}
		}
	}
	if broken < 200 {
		t.Errorf("only %d lines were broken", broken)
	}
}

func kindOf(name string) Kind {
	if filepath.Base(name) == "mcpd.hcl" {
		return ConfigKind
	}
	return ToolsKind
}

// read decodes a file of either kind.
func read(file *File) (any, diag.List) {
	if file.kind == ConfigKind {
		return file.DecodeConfig(definition.VarValues{})
	}
	locals, problems := JoinLocals([]*File{file}, nil, file.Incomplete())
	definitions, more := file.Decode(Scope{Incomplete: file.Incomplete(), Locals: locals, ReadFile: func(string) ([]byte, error) { return []byte(`{"type":"object"}`), nil }})
	return definitions, append(problems, more...)
}

func told(problems diag.List) []string {
	var lines []string
	for _, p := range problems.Sort() {
		lines = append(lines, fmt.Sprintf("%d:%d %s", p.Range.Start.Line, p.Range.Start.Column, p.Summary))
	}
	return lines
}

// allProblems returns the diagnostics of a file of its kind.
func allProblems(t *testing.T, src Source) diag.List {
	t.Helper()
	file, problems := Parse(src, kindOf(src.Path))
	if file == nil {
		return problems
	}
	_, more := read(file)
	return append(problems, more...).Sort()
}

// In the archive, each file is followed by a file with its expected diagnostics.
func TestParse_errors(t *testing.T) {
	const name = "testdata/mistakes.txtar"
	archive, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var written []txtar.File
	for i, f := range archive.Files {
		if strings.HasSuffix(f.Name, ".want") {
			continue
		}
		want := ""
		if i+1 < len(archive.Files) && archive.Files[i+1].Name == f.Name+".want" {
			want = string(archive.Files[i+1].Data)
		}
		src := Source{Path: f.Name, Bytes: f.Data}
		problems := allProblems(t, src)
		checkRanges(t, src, problems)
		got := strings.Join(told(problems), "\n") + "\n"
		written = append(written, f, txtar.File{Name: f.Name + ".want", Data: []byte(got)})
		if diff := cmp.Diff(want, got); diff != "" && !*update {
			t.Errorf("%s: %s", f.Name, diff)
		}
	}
	if archive.Files = written; *update {
		if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSplitBlocks_stopsAtBudget(t *testing.T) {
	for name, text := range map[string]string{
		"errors":   strings.Repeat("tool \"a\" {\n  title = ?\n}\n", 1000),
		"heredocs": strings.Repeat("tool \"a\" {\n  run = <<JS\n}\n", 20_000),
		"comments": strings.Repeat("tool \"a\" {\n/*\n", 50_000),
	} {
		_, problems := Parse(Source{Path: "x.hcl", Bytes: []byte(text)}, ToolsKind)
		if !slices.ContainsFunc(problems, func(d diag.Diagnostic) bool { return d.Code == "too-many" }) {
			t.Errorf("%s: no too-many error in %d diagnostics", name, len(problems))
		}
	}
}

func TestSplitBlocks_keepsOtherBlocks(t *testing.T) {
	text := strings.Repeat(string(smallTool(1).Bytes), 100)
	file, problems := Parse(Source{Path: "x.hcl", Bytes: []byte(text + "tool \"z\" {\n  title = .5\n  timeout = 1\n  run = \"return 1\"\n}\n" + text)}, ToolsKind)
	if file == nil || len(problems) != 1 || problems[0].Summary != "the value is missing" {
		t.Fatal(problems)
	}
	if defs, _ := file.Decode(Scope{}); len(defs.Tools) != 200 {
		t.Errorf("%d tools", len(defs.Tools))
	}
}

// The text of a heredoc has no block headings, even if other parts have errors.
func TestSplitBlocks_skipsHeredocs(t *testing.T) {
	const text = "tool \"a\" {\n  title = ?\n}\nresource \"r\" {\n  uri = \"x:r\"\n  text = <<EOT\ntool \"b\" {\n}\nEOT\n}\ntool \"c\" {\n  title = ?\n  run = <<JS\ntool \"d\" {\nJS\n}\n"
	problems := allProblems(t, Source{Path: "x.hcl", Bytes: []byte(text)})
	if diff := cmp.Diff([]string{"2:11 the value is missing", "12:11 the value is missing"}, told(problems)); diff != "" {
		t.Error(diff)
	}
}

func TestLocals_incomplete(t *testing.T) {
	file, _ := Parse(Source{Path: "x.hcl", Bytes: []byte("locals {\n  b = local.a\n}\n")}, ToolsKind)
	for incomplete, want := range map[bool][]string{true: nil, false: {`2:13 there is no local value "a"`}} {
		_, problems := JoinLocals([]*File{file}, nil, incomplete)
		if diff := cmp.Diff(want, told(problems)); diff != "" {
			t.Errorf("incomplete %t: %s", incomplete, diff)
		}
	}
}

func TestParseJSON_byteOrderMark(t *testing.T) {
	problems := toolProblems(Source{Path: "x.hcl.json", Bytes: []byte(byteOrderMark + `{"tool": {"a": {"run": "return 1", "titel": "x"}}}`)})
	if len(problems) != 1 || problems[0].Code == "syntax" {
		t.Fatal(told(problems))
	}
	if at := problems[0].Range.Start; at.Byte != 38 || at.Line != 1 {
		t.Errorf("the error is at %+v", at)
	}
}

// Typical mistakes of authors who know other languages.
func TestParseJSON_hints(t *testing.T) {
	for text, want := range map[string]string{
		`tool "a" {`:         "JSON object",
		`{"tool" = {}}`:      "colon",
		`{tool: {}}`:         "double quotes",
		`{"locals": True}`:   "lower case",
		"{\n<<<<<<< HEAD\n}": "resolve the merge conflict",
	} {
		_, problems := Parse(Source{Path: "x.hcl.json", Bytes: []byte(text)}, ToolsKind)
		if len(problems) != 1 || !strings.Contains(problems[0].Detail, want) {
			t.Errorf("%s: %v", text, problems)
		}
	}
}
