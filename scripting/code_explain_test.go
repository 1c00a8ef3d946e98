package scripting

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

// goldens compares what is made of each file of an archive with what stands in it
// behind ===, or writes it there.
func goldens(t *testing.T, path string, made func(text string) string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	archive := txtar.Parse(data)
	for i := range archive.Files {
		f := &archive.Files[i]
		text, want, _ := strings.Cut(string(f.Data), "\n===\n")
		text = strings.TrimSuffix(text, "\n")
		got := made(text)
		if *update {
			f.Data = []byte(text + "\n===\n" + got + "\n")
		} else if diff := cmp.Diff(strings.TrimSuffix(want, "\n"), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", f.Name, diff)
		}
	}
	if *update {
		if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWhatAgentsAreToldOfTheirMistakes(t *testing.T) {
	goldens(t, "testdata/explained.txtar", func(code string) string {
		p, list := Compile(codeOf(code))
		if p == nil {
			return Explain(codeOf(code).Text, list)
		}
		out := runWith(t, call(p, ``), toolHost())
		if out.Failure == nil {
			return shown(out)
		}
		return out.Failure.Explain()
	})
}

func TestExplanationsAreBounded(t *testing.T) {
	code := strings.Repeat("True\n", 30)
	_, list := Compile(codeOf(code))
	text := Explain(codeOf(code).Text, list)
	if n := strings.Count(text, "undefined-name at"); n > maxExplained {
		t.Errorf("%d are told", n)
	}
	var many []string
	for i := range 30 {
		many = append(many, "tools.a"+strings.Repeat("b", i)+"()")
	}
	code = strings.Join(many, "\n")
	_, list = Compile(codeOf(code))
	text = Explain(codeOf(code).Text, list)
	if diff := cmp.Diff([]int{10, 1}, []int{strings.Count(text, "unknown-tool at"), strings.Count(text, "and 20 more")}); diff != "" {
		t.Errorf("(-want +got):\n%s\n%s", diff, text)
	}
}
