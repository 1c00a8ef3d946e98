package hclfile

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
)

// mutations break the line of an argument. They return it unchanged where they
// do not apply.
var mutations = map[string]func(line string) string{
	"no equals sign": func(line string) string { return strings.Replace(line, " = ", " ", 1) },
	"colon":          func(line string) string { return strings.Replace(line, " = ", ": ", 1) },
	"sign in front": func(line string) string {
		text := strings.TrimLeft(line, " ")
		return line[:len(line)-len(text)] + "? " + text
	},
	"sign behind": func(line string) string { return strings.Replace(line, " = ", " = ? ", 1) },
	"open quote": func(line string) string {
		if strings.HasSuffix(line, `"`) && !strings.HasSuffix(line, `""`) {
			return line[:len(line)-1]
		}
		return line
	},
	"open bracket": func(line string) string {
		if strings.HasSuffix(line, "]") && strings.Count(line, "[") == 1 {
			return line[:len(line)-1]
		}
		return line
	},
	"two on a line": func(line string) string {
		if strings.HasSuffix(line, `"`) || strings.HasSuffix(line, "true") {
			return line + ` title = "x"`
		}
		return line
	},
	"semicolon": func(line string) string {
		if strings.HasSuffix(line, `"`) {
			return line + ";"
		}
		return line
	},
}

// argumentLines returns the numbers of the lines on which arguments begin, from 0.
func argumentLines(f *File, body *hclsyntax.Body) []int {
	var lines []int
	for _, attr := range body.Attributes {
		lines = append(lines, f.rng(attr.NameRange).Start.Line-1)
	}
	for _, b := range body.Blocks {
		lines = append(lines, argumentLines(f, b.Body)...)
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// TestEachBrokenLineIsToldAndNoOther breaks some lines of files without
// mistakes: each of them is told once, and nothing else is.
func TestEachBrokenLineIsToldAndNoOther(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: one goroutine works here alone")
	}
	broken, seeds := 0, uint64(5)
	if testing.Short() {
		seeds = 1
	}
	for name, text := range validFiles(t) {
		file, _ := Parse(Source{Path: name, Bytes: text}, kindOf(name))
		candidates := argumentLines(file, file.body)
		for mutation, mutate := range mutations {
			for seed := range seeds {
				random := rand.New(rand.NewPCG(seed, uint64(len(text))))
				lines := strings.Split(string(text), "\n")
				var want []string
				for range 1 + seed%5 {
					n := candidates[random.IntN(len(candidates))]
					if was := lines[n]; !slices.Contains(want, fmt.Sprint(n+1)) {
						if lines[n] = mutate(was); lines[n] != was {
							want = append(want, fmt.Sprint(n+1))
						}
					}
				}
				slices.Sort(want)
				src := Source{Path: name, Bytes: []byte(strings.Join(lines, "\n"))}
				broken += len(want)
				if diff := cmp.Diff(want, errorLines(t, src)); diff != "" {
					t.Fatalf("%s, %s:\n%s\n%s\n%s", name, mutation, diff, strings.Join(problemsOf(t, src), "\n"), marked(src.Bytes, want))
				}
			}
		}
	}
	if broken < 200*int(seeds) {
		t.Errorf("only %d lines were broken", broken)
	}
}

// errorLines returns the lines of all errors, sorted as texts.
func errorLines(t *testing.T, src Source) []string {
	var lines []string
	for _, p := range allProblems(t, src) {
		if p.Severity == diag.Error {
			lines = append(lines, fmt.Sprint(p.Range.Start.Line))
		}
	}
	slices.Sort(lines)
	return lines
}

func problemsOf(t *testing.T, src Source) []string { return told(allProblems(t, src)) }

// allProblems reads a file as one of its kind.
func allProblems(t *testing.T, src Source) diag.List {
	t.Helper()
	file, problems := Parse(src, kindOf(src.Path))
	if file == nil {
		return problems
	}
	_, more := read(file)
	return append(problems, more...).Sort()
}

// marked returns the broken lines of a text.
func marked(text []byte, numbers []string) string {
	var b strings.Builder
	for i, line := range strings.Split(string(text), "\n") {
		if slices.Contains(numbers, fmt.Sprint(i+1)) {
			fmt.Fprintf(&b, "%d: %s\n", i+1, line)
		}
	}
	return b.String()
}

// span is the lines of a block that takes several, from 0.
type span struct{ first, last int }

func blockSpans(f *File, body *hclsyntax.Body) []span {
	var spans []span
	for _, b := range body.Blocks {
		if s := (span{f.rng(b.TypeRange).Start.Line - 1, f.rng(b.CloseBraceRange).Start.Line - 1}); s.last > s.first {
			spans = append(append(spans, s), blockSpans(f, b.Body)...)
		}
	}
	return spans
}

// headings break the first or the last line of a block: told is which of them
// has the mistake then.
var headings = map[string]struct {
	last   bool
	mutate func(line string) string
	told   int
}{
	"equals sign":      {false, func(line string) string { return strings.Replace(line, " {", " = {", 1) }, 0},
	"no opening brace": {false, func(line string) string { return strings.TrimSuffix(line, " {") }, 0},
	"open label":       {false, func(line string) string { return strings.Replace(line, "\" {", " {", 1) }, 0},
	"brace below":      {false, func(line string) string { return strings.TrimSuffix(line, " {") + "\n{" }, 0},
	"no closing brace": {true, func(string) string { return "" }, -1},
	"two braces":       {true, func(line string) string { return line + "\n" + line }, 1},
	"sign":             {false, func(line string) string { return strings.Replace(line, " {", " ? {", 1) }, 0},
}

// TestEachBrokenHeadingIsToldAndNoOther breaks the first or the last line of
// one block.
func TestEachBrokenHeadingIsToldAndNoOther(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: one goroutine works here alone")
	}
	every := 3
	if testing.Short() {
		every = 12
	}
	for name, text := range validFiles(t) {
		file, _ := Parse(Source{Path: name, Bytes: text}, kindOf(name))
		for mutation, m := range headings {
			for i, s := range blockSpans(file, file.body) {
				if (i+len(mutation))%every != 0 {
					continue // each block is broken in some ways
				}
				lines := strings.Split(string(text), "\n")
				n := s.first
				if m.last {
					n = s.last
				}
				was := lines[n]
				if lines[n] = m.mutate(was); lines[n] == was {
					continue
				}
				want := n + 1 + m.told
				if m.told < 0 {
					want = s.first + 1
				}
				src := Source{Path: name, Bytes: []byte(strings.Join(lines, "\n"))}
				if diff := cmp.Diff([]string{fmt.Sprint(want)}, errorLines(t, src)); diff != "" {
					t.Errorf("%s, %s of line %d:\n%s\n%s", name, mutation, s.first+1, diff, strings.Join(problemsOf(t, src), "\n"))
				}
			}
		}
	}
}

// TestAHeredocThatIsNotClosedHidesNothingBehindItsBlock removes the end of each
// heredoc of code.
func TestAHeredocThatIsNotClosedHidesNothingBehindItsBlock(t *testing.T) {
	heredocs := 0
	for name, text := range validFiles(t) {
		file, _ := Parse(Source{Path: name, Bytes: text}, kindOf(name))
		for _, h := range file.heredocs {
			if end := bytes.IndexByte(text[h.end:], '\n'); h.raw && end >= 0 {
				heredocs++
				src := Source{Path: name, Bytes: slices.Concat(text[:h.end], text[h.end+end+1:])}
				want := []string{fmt.Sprint(file.pos(h.open).Line)}
				if diff := cmp.Diff(want, errorLines(t, src)); diff != "" {
					t.Errorf("%s: %s\n%s", name, diff, strings.Join(problemsOf(t, src), "\n"))
				}
			}
		}
	}
	if heredocs < 50 {
		t.Errorf("only %d heredocs", heredocs)
	}
}
