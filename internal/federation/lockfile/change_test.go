package lockfile_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/mcpd/mcpd/internal/federation/lockfile"
)

var update = flag.Bool("update", false, "write the goldens anew")

// golden compares what was made with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	name = filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got)\n%s", name, diff)
	}
}

// TestDiffs shows the change between the entries old.json and new.json, of which one may be
// missing, of each archive of testdata/diff.
func TestDiffs(t *testing.T) {
	archives, err := filepath.Glob("testdata/diff/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatal("no archives", err)
	}
	for _, name := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			lock := new(lockfile.Lock).Pin("github")
			var listed []lockfile.Tool
			for _, f := range archive.Files {
				switch f.Name {
				case "old.json":
					lock = lock.Pin("github", tool(t, string(f.Data)))
				case "new.json":
					listed = append(listed, tool(t, string(f.Data)))
				}
			}
			var got bytes.Buffer
			for _, c := range lock.Check("github", listed, lockfile.FirstUse).Changes {
				fmt.Fprintf(&got, "%s %s %q\n%s", c.Kind, c.Upstream, c.Name, c.Diff())
			}
			checkShown(t, got.String())
			files := archive.Files[:len(archive.Files)-1]
			want := archive.Files[len(files)]
			if want.Name != "want" {
				t.Fatal("the last file of the archive is to be want")
			}
			if *update {
				archive.Files = append(files, txtar.File{Name: "want", Data: got.Bytes()})
				if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(want.Data), got.String()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// checkShown fails for a text with a character that a terminal obeys, or that shows nothing.
func checkShown(t *testing.T, text string) {
	t.Helper()
	if !utf8.ValidString(text) {
		t.Fatalf("%q is not UTF-8", text)
	}
	for _, r := range text {
		if r != '\n' && !unicode.IsPrint(r) || unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point, unicode.Bidi_Control) {
			t.Fatalf("%U is shown as it is in\n%q", r, text)
		}
	}
}

// described returns a tool with a description.
func described(t *testing.T, description string) lockfile.Tool {
	t.Helper()
	return tool(t, fmt.Sprintf(`{"name":"a","description":%s}`, mustJSON(t, description)))
}

func TestADiffThatIsCutSaysHowMuchIsNotShown(t *testing.T) {
	for _, row := range []struct{ sentences, left int }{{1995, 0}, {1996, 0}, {1997, 1}, {10_000, 8004}} {
		text := strings.Repeat("No. ", row.sentences-1) + "Yes."
		c := lockfile.Change{Kind: lockfile.Added, Upstream: "github", Name: "a", New: described(t, text)}
		shown := c.Diff()
		last := shown[strings.LastIndex(strings.TrimSuffix(shown, "\n"), "\n")+1:]
		want := "+}\n"
		if row.left > 0 {
			want = fmt.Sprintf("… and %d more lines, which are not shown: who accepts the change accepts them unseen\n", row.left)
		}
		if c.Whole() != (row.left == 0) {
			t.Errorf("%d sentences: whole is %t", row.sentences, c.Whole())
		}
		if diff := cmp.Diff(want, last); diff != "" {
			t.Errorf("the end of %d sentences (-want +got)\n%s", row.sentences, diff)
		}
	}
}

func TestNumbersOfAnyLengthAreCut(t *testing.T) {
	number := func(last string) lockfile.Tool {
		return tool(t, `{"name":"a","inputSchema":{"minimum":0.`+strings.Repeat("7", 200_000)+last+`}}`)
	}
	c := lockfile.Change{Kind: lockfile.Changed, Upstream: "github", Name: "a", Old: number("1"), New: number("2")}
	shown := c.Diff()
	if strings.Count(shown, "… and 199619 more bytes\n") != 2 || len(shown) > 2000 || c.Whole() {
		t.Errorf("it shows\n%.3000s", shown)
	}
}

func TestLinesOfADiffAreBoundedWhateverTheTextsAre(t *testing.T) {
	for _, piece := range []string{"x", " ", "\n", ". ", "é", "\u202e", "\U000e0041", "\u0301", "漢", "\\", "a ", "\t"} {
		text := strings.Repeat(piece, 3000)
		entry := fmt.Sprintf(`{"name":"a","description":%s,"inputSchema":{%s:{%s:[%s]}}}`, mustJSON(t, text), mustJSON(t, text), mustJSON(t, text), mustJSON(t, text))
		c := lockfile.Change{Kind: lockfile.Added, Upstream: "github", Name: "a", New: tool(t, entry)}
		for line := range strings.Lines(c.Diff()) {
			if n := utf8.RuneCountInString(line); n > 220 {
				t.Errorf("%q: a line has %d characters", piece, n)
			}
		}
		checkShown(t, c.Diff())
	}
}
