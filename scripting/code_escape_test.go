package scripting

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

// canary is code that shows what a call before it may have changed for others.
const canary = "const a = await crm.list({ a: 1 });\n" +
	"[typeof search_web, a, ({}).polluted, Object.keys(tools).length, `${[1, 2].map((x) => x)}`, JSON.stringify({ a: 1 }), new Error('x').name, await parallel([1, () => 2])]"

// Each file of testdata/escapes holds code that tries to reach what it may not, or
// to break who reads what it makes, and behind => how each ends, what it printed and
// which tools it called. The host is never asked for anything but calls and lines,
// and the next call never sees anything of it.
func TestCodeReachesNothingButItsTools(t *testing.T) {
	files, err := filepath.Glob("testdata/escapes/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal(err, files)
	}
	next := compiled(t, codeOf(canary))
	want := ranOf(t, next)
	count := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		archive := txtar.Parse(data)
		count += len(archive.Files)
		for i := range archive.Files {
			f := &archive.Files[i]
			code, told, _ := strings.Cut(string(f.Data), "\n=> ")
			code = strings.TrimSuffix(code, "\n")
			got := escapes(t, code)
			if diff := cmp.Diff(want, ranOf(t, next)); diff != "" {
				t.Errorf("%s: the next call (-want +got):\n%s", f.Name, diff)
			}
			if *update {
				f.Data = []byte(code + "\n=> " + got + "\n")
			} else if diff := cmp.Diff(strings.TrimSuffix(told, "\n"), got); diff != "" {
				t.Errorf("%s: %s\n%s\n(-want +got):\n%s", filepath.Base(file), f.Name, code, diff)
			}
		}
		if *update {
			if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if count < 200 {
		t.Errorf("%d are too few", count)
	}
}

// escapes returns what code does, which is the same each time.
func escapes(t *testing.T, code string) string {
	t.Helper()
	p, _ := Compile(codeOf(code))
	ran := runCode(t, code)
	if p != nil {
		if diff := cmp.Diff(ran, ranOf(t, p)); diff != "" {
			t.Errorf("%s: once more (-first +second):\n%s", code, diff)
		}
	}
	text := fmt.Sprintf("%.300q", ran.Ended)
	if ran.Stdout != "" {
		text += fmt.Sprintf(", prints %.100q", ran.Stdout)
		if len(ran.Stdout) > 100 {
			text += fmt.Sprintf(" … in all %d bytes", len(ran.Stdout))
		}
	}
	if len(ran.Calls) > 0 {
		text += fmt.Sprintf(", calls %.300q", ran.Calls)
	}
	return text
}
