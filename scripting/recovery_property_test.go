package scripting

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/diag"
)

// shipped returns the bodies of all tools and examples, and the files that
// they import, compiled for what they use.
func shipped(t *testing.T) (bodies []Source) {
	t.Helper()
	heredoc := regexp.MustCompile(`(?s)<<-?(JS|TS)\n(.*?)\n\s*(?:JS|TS)\n`)
	for _, root := range []string{"../tools.d", "../examples"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".hcl" {
				return err
			}
			data, err := os.ReadFile(path)
			for _, found := range heredoc.FindAllStringSubmatch(string(data), -1) {
				if src, ok := suited(found[2], found[1] == "TS", filepath.Dir(path)); ok {
					bodies = append(bodies, src)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(bodies) < 20 {
		t.Fatalf("only %d bodies compile as they are", len(bodies))
	}
	return bodies
}

// suited returns the source of a body with all grants and variables that it
// uses, for the first kind of definition for which it compiles.
func suited(body string, typed bool, folder string) (Source, bool) {
	src := Source{Name: "t", Text: inFile(body), Import: func(name string) ([]byte, error) { return os.ReadFile(filepath.Join(folder, name)) }}
	for _, asked := range []string{"ask", "elicit", "sample", "roots"} {
		src.Objects = append(src.Objects, Object{"ask", asked})
	}
	for _, found := range regexp.MustCompile(`\bhttp\.(\w+)`).FindAllStringSubmatch(body, -1) {
		src.Objects = append(src.Objects, Object{"http", found[1]})
	}
	vars := map[string]string{}
	for _, found := range regexp.MustCompile(`\bvars\.(\w+)`).FindAllStringSubmatch(body, -1) {
		vars[found[1]] = ""
	}
	src.Vars, _ = json.Marshal(vars)
	if typed {
		src.Language = TS
	}
	for _, src.Kind = range allKinds() {
		if _, list := Compile(src); !list.HasErrors() {
			return src, true
		}
	}
	return src, false
}

// breakages are ways to break a statement that stands on one line.
func breakages() map[string]func(string) string {
	bare := func(s string) string { return strings.TrimRight(s, ";") }
	return map[string]func(string) string{
		"a missing operand":  func(s string) string { return bare(s) + " +;" },
		"two operands":       func(s string) string { return bare(s) + " 1 2;" },
		"a wrong operator":   func(s string) string { return bare(s) + " = = 1;" },
		"a bracket too many": func(s string) string { return bare(s) + ");" },
		"a missing bracket":  func(s string) string { return bare(s) + " + f(1;" },
		"an open string":     func(s string) string { return bare(s) + " + 'abc;" },
		"a bad number":       func(s string) string { return bare(s) + " + 1a;" },
		"a wrong bracket":    func(s string) string { return bare(s) + " + [1);" },
	}
}

// TestEachBrokenStatementIsToldOnceAndNoOther breaks random statements of the
// shipped bodies in random ways.
func TestEachBrokenStatementIsToldOnceAndNoOther(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	rounds := 20
	if testing.Short() || raceDetector {
		rounds = 2
	}
	for i, src := range shipped(t) {
		for round := range rounds {
			body, broken, how := broken(src, random, 1+round%4)
			if len(broken) == 0 {
				continue
			}
			wrong := src
			wrong.Text = inFile(body)
			_, list := Compile(wrong)
			var lines []int
			for _, d := range list {
				if d.Severity == diag.Error {
					lines = append(lines, d.Range.Start.Line)
				}
			}
			if diff := cmp.Diff(broken, lines); diff != "" {
				t.Errorf("body %d, broken by %v (-broken +told lines):\n%s\n%s\n%v", i, how, diff, numberedLines(body), list)
			}
		}
	}
}

func numberedLines(body string) string {
	var b strings.Builder
	for i, line := range strings.Split(body, "\n") {
		fmt.Fprintf(&b, "%3d %s\n", i+5, line)
	}
	return b.String()
}

// broken breaks at most n statements of a body, and returns their lines.
func broken(src Source, random *rand.Rand, n int) (body string, lines []int, how []string) {
	body = src.Text.Body()
	c := cutUp(body, src.Language)
	var places []piece
	for _, p := range c.pieces {
		if p.fill == ";" && !strings.Contains(body[p.start:p.end], "\n") && beginsLine(body, p.start) && endsLine(body, p.end) && !strings.ContainsAny(body[p.start:p.end], "{`") && !declaresOnly(body[p.start:p.end]) {
			places = append(places, p)
		}
	}
	random.Shuffle(len(places), func(i, j int) { places[i], places[j] = places[j], places[i] })
	places = places[:min(n, len(places))]
	slices.SortFunc(places, func(a, b piece) int { return b.start - a.start })
	ways := breakages()
	names := make([]string, 0, len(ways))
	for name := range ways {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, p := range places {
		name := names[random.IntN(len(names))]
		body = body[:p.start] + ways[name](body[p.start:p.end]) + body[p.end:]
		lines = append(lines, src.Text.Pos(p.start).Line)
		how = append(how, name)
	}
	slices.Reverse(lines)
	return body, lines, how
}

func endsLine(body string, end int) bool {
	return strings.TrimSpace(lineAt(body, end)) == ""
}

// declaresOnly reports whether nothing can be added to a statement.
func declaresOnly(statement string) bool {
	for _, word := range []string{"import", "type ", "break", "continue", "return;", "debugger"} {
		if strings.HasPrefix(statement, word) {
			return true
		}
	}
	return statement == "return"
}
