package checks_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// habits are turns of phrase that make a reader translate. One of them is no mistake; many on a
// page are. Each pattern has the plain form beside it.
var habits = []struct{ pattern, plain string }{
	{`\b(?:nobody|somebody|everybody|no one|whoever)\b`, "name who: the caller, the operator, a client"},
	{`\b(?:told|tells?|telling)\b`, "report, return, log"},
	{`\b(?:whose|(?:of|by|in|to|from|on|with|for) which|of whom)\b`, "two sentences, or repeat the noun"},
	{`\bbec(?:ome|omes|ame|oming) of\b`, "what happens to"},
	{`\bin (?:the|its|their) place\b`, "instead of"},
	{`\b(?:is|are|was|were) to (?:be|have|do|go|come|run|end|stay|keep|make|take|serve|read|write)\b`, "must, or the verb in the present"},
	{`\b(?:have|has|had) (?:it|them|the \w+|a \w+|all|each|what) (?:be|do|go|come|run|end|take|give|know|wait)\b`, "makes, lets"},
	{`\b(?:of|to|by|for|with|from|on|in|than|and|or) (?:what|who|whom) (?:is|are|was|were|has|have|it|they|a|an|the)\b`, "name the thing"},
	{`\b(?:those|that) of\b`, "repeat the noun"},
	{`\b(?:begun|begins?|began)\b`, "start"},
	{`\bof (?:its|their|our|his) own\b|\bof (?:ours|theirs)\b`, "its, their"},
	{`\bas (?:it|they) (?:is|are|was|were|stands?|comes?)\b`, "say the state"},
	{`\b(?:let go|go on|goes on|went on|going on)\b`, "continue, release"},
	{`\bfor want of\b|\bspeaks? of\b|\btaken for\b|\bheld to\b`, "without, describe, mistaken for, must follow"},
	{`\bthere is none\b|\bthere are none\b|\bof none\b`, "is missing, does not exist"},
}

// maxHabits is how many habits 10,000 words may have. log/slog, net/http and go/types have 12.
const maxHabits = 40

// prose is a line of text for people, and where it stands.
type prose struct{ place, text string }

// TestWords_comments counts habits in the comments and the names of tests of all Go files.
func TestWords_comments(t *testing.T) {
	var lines []prose
	for _, file := range goFiles(t) {
		fset := token.NewFileSet()
		parsed, err := parser.ParseFile(fset, file, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, group := range parsed.Comments {
			for _, comment := range group.List {
				for i, text := range strings.Split(comment.Text, "\n") {
					lines = append(lines, prose{fmt.Sprintf("%s:%d", file, fset.Position(comment.Pos()).Line+i), strings.Trim(text, "/* \t")})
				}
			}
		}
		for _, declared := range parsed.Decls {
			if f, ok := declared.(*ast.FuncDecl); ok && strings.HasPrefix(f.Name.Name, "Test") {
				words := regexp.MustCompile(`[A-Z][a-z]+|[a-z]+|[A-Z]+|\d+`).FindAllString(f.Name.Name, -1)
				lines = append(lines, prose{fset.Position(f.Pos()).String(), strings.Join(words, " ")})
			}
		}
	}
	countHabits(t, lines)
}

// TestWords_manuals counts habits in README.md, CONTRIBUTING.md and docs without docs/project.
func TestWords_manuals(t *testing.T) {
	var lines []prose
	for _, page := range pages(t) {
		if strings.HasPrefix(page, "docs/project/") {
			continue
		}
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		blank := func(code string) string { return strings.Repeat("\n", strings.Count(code, "\n")) }
		for i, line := range strings.Split(fence.ReplaceAllStringFunc(string(text), blank), "\n") {
			lines = append(lines, prose{fmt.Sprintf("%s:%d", page, i+1), line})
		}
	}
	countHabits(t, lines)
}

// countHabits fails with all places when there are more than maxHabits in 10,000 words.
func countHabits(t *testing.T, lines []prose) {
	t.Helper()
	words, found := 0, []string{}
	for _, line := range lines {
		words += len(strings.Fields(line.text))
	}
	patterns := make([]string, len(habits))
	for i, habit := range habits {
		patterns[i] = "(" + habit.pattern + ")"
	}
	any := regexp.MustCompile("(?i)" + strings.Join(patterns, "|"))
	for _, line := range lines {
		for _, match := range any.FindAllStringSubmatch(line.text, -1) {
			which := slices.IndexFunc(match[1:], func(group string) bool { return group != "" })
			found = append(found, fmt.Sprintf("%s: %q (%s): %s", line.place, match[0], habits[which].plain, line.text))
		}
	}
	if words < 10000 {
		t.Fatalf("only %d words", words)
	}
	if density := 10000 * len(found) / words; density > maxHabits {
		slices.Sort(found)
		t.Errorf("%d habits in 10,000 words, of which %d are allowed; write plainly at:\n%s", density, maxHabits, strings.Join(found, "\n"))
	} else {
		t.Logf("%d habits in 10,000 words", density)
	}
}
