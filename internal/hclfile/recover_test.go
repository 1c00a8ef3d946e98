package hclfile

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/mcpd/mcpd/diag"
)

// validFiles returns the HCL files of the repository that have no mistakes.
func validFiles(t *testing.T) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for _, folder := range []string{"tools.d", "examples", "testdata"} {
		err := filepath.WalkDir(filepath.Join("../..", folder), func(name string, _ os.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(name, ".hcl") {
				return err
			}
			text, err := os.ReadFile(name)
			if file, problems := Parse(Source{Path: name, Bytes: text}, kindOf(name)); file != nil && len(problems) == 0 {
				if _, problems = read(file); len(problems) == 0 {
					files[name] = text
				}
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

func kindOf(name string) Kind {
	if filepath.Base(name) == "mcpd.hcl" {
		return ConfigKind
	}
	return ToolsKind
}

// read decodes a file of either kind.
func read(file *File) (any, diag.List) {
	if file.kind == ConfigKind {
		return file.DecodeConfig(VarValues{})
	}
	locals, problems := JoinLocals([]*File{file}, nil)
	said, more := file.Decode(Scope{Locals: locals, ReadFile: func(string) ([]byte, error) { return []byte(`{"type":"object"}`), nil }})
	return said, append(problems, more...)
}

// readAs returns what a file says as JSON, and all that is wrong with it.
func readAs(t *testing.T, file *File, problems diag.List) ([]byte, []string) {
	t.Helper()
	said, more := read(file)
	text, err := json.Marshal(said)
	if err != nil {
		t.Fatal(err)
	}
	return text, told(append(problems, more...))
}

func told(problems diag.List) []string {
	var lines []string
	for _, p := range problems.Sort() {
		lines = append(lines, fmt.Sprintf("%d:%d %s", p.Range.Start.Line, p.Range.Start.Column, p.Summary))
	}
	return lines
}

func TestWhatIsReadPieceByPieceIsWhatIsReadAtOnce(t *testing.T) {
	for name, text := range validFiles(t) {
		whole, problems := Parse(Source{Path: name, Bytes: text}, kindOf(name))
		want, wantTold := readAs(t, whole, problems)

		pieces := &File{path: name, kind: kindOf(name), source: string(text), places: newPlaces(string(text))}
		problems = pieces.recoverPieces(0, func(*reader, int) bool { return false })
		pieces.locals = pieces.findLocals()
		got, gotTold := readAs(t, pieces, problems)
		if diff := cmp.Diff(wantTold, gotTold); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestAllMistakesOfAFileAreTold reads each file of an archive, which is
// followed by a file of its mistakes.
func TestAllMistakesOfAFileAreTold(t *testing.T) {
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

func TestWhatIsBeyondTheBudgetIsToldToBeHidden(t *testing.T) {
	for name, text := range map[string]string{
		"x.hcl":      strings.Repeat("a = ?\n", 1000),
		"x.hcl.json": "{\"a\": [" + strings.Repeat("1,,\n", 60_000) + "1]}",
	} {
		_, problems := Parse(Source{Path: name, Bytes: []byte(text)}, ToolsKind)
		if hidden := "mistakes behind this place are not shown"; !slices.ContainsFunc(problems, func(d diag.Diagnostic) bool { return d.Summary == hidden }) {
			t.Errorf("%s: nothing says that not all is told, in %d diagnostics", name, len(problems))
		}
	}
}

// TestAMistakeBehindManyDefinitionsIsTold: what stands before it is read too.
func TestAMistakeBehindManyDefinitionsIsTold(t *testing.T) {
	text := strings.Repeat(string(smallTool(1).Bytes), 300)
	file, problems := Parse(Source{Path: "x.hcl", Bytes: []byte(text + "tool \"z\" {\n  title = .5\n  timeout = 1\n  run = \"return 1\"\n}\n")}, ToolsKind)
	if file == nil || len(problems) != 1 || problems[0].Summary != "no value stands here" {
		t.Fatal(problems)
	}
	defs, _ := file.Decode(Scope{})
	if len(defs.Tools) != 301 {
		t.Errorf("%d tools", len(defs.Tools))
	}
}

func TestALocalOfAFileThatCannotBeReadIsNotMissing(t *testing.T) {
	src := Source{Path: "x.hcl", Bytes: []byte("tool \"t\" {\n  title = local.a\n  description = local.b\n  run = \"return 1\"\n}\n")}
	file, _ := Parse(src, ToolsKind)
	locals, _ := JoinLocals([]*File{file}, nil, "locals { a = 1 }")
	_, problems := file.Decode(Scope{Locals: locals})
	if diff := cmp.Diff([]string{`3:23 there is no local value "b"`}, told(problems)); diff != "" {
		t.Error(diff)
	}
}

// TestAFileIsReadAgainAsFarAsOneThatIsAccepted: how many pieces are read does
// not grow with what no file may hold.
func TestAFileIsReadAgainAsFarAsOneThatIsAccepted(t *testing.T) {
	tool := "tool \"t\" {\n" + strings.Repeat("  input \"a\" { type = string }\n", 300) + "}\n"
	file, problems := Parse(Source{Path: "x.hcl", Bytes: []byte("tool \"z\" {\n  title = \"x\n}\n" + strings.Repeat(tool, 100))}, ToolsKind)
	if file == nil || !problems.HasErrors() {
		t.Fatal(problems)
	}
	read := 0
	for _, b := range file.body.Blocks {
		read += len(b.Body.Blocks)
	}
	if read == 0 || read > maxRecoveredIn+maxHCL/pieceShare {
		t.Errorf("%d blocks were read", read)
	}
}

// TestALocalIsNotTakenForPartOfAWord: only a whole word of what is unread may be
// a name.
func TestALocalIsNotTakenForPartOfAWord(t *testing.T) {
	src := Source{Path: "x.hcl", Bytes: []byte("tool \"t\" {\n  title = local.a\n  description = local.a-b\n  run = \"return 1\"\n}\n")}
	file, _ := Parse(src, ToolsKind)
	locals, _ := JoinLocals([]*File{file}, nil, "locals { a-b = variable }")
	_, problems := file.Decode(Scope{Locals: locals})
	if diff := cmp.Diff([]string{`2:17 there is no local value "a"`}, told(problems)); diff != "" {
		t.Error(diff)
	}
}
