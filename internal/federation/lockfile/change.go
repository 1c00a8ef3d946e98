package lockfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
)

// Kind is what became of a tool.
type Kind int

// The kinds of change.
const (
	// Added is a tool that is listed, and that nobody has accepted.
	Added Kind = iota + 1
	// Changed is a tool that is listed otherwise than it was accepted.
	Changed
	// Removed is a tool that was accepted, and is not listed. It stays accepted as it was.
	Removed
)

// String returns the kind as a word, for logs and records.
func (k Kind) String() string {
	switch k {
	case Added:
		return "added"
	case Changed:
		return "changed"
	case Removed:
		return "removed"
	}
	return fmt.Sprintf("kind %d", int(k))
}

// Change is a difference between what was accepted and what is listed.
type Change struct {
	Kind           Kind
	Upstream, Name string
	// Old was accepted; it is the zero Tool for [Added].
	Old Tool
	// New is listed; it is the zero Tool for [Removed].
	New Tool
}

// The bounds of what [Change.Diff] shows.
const (
	maxDiffLines = 2000
	maxDiffLine  = 400 // characters
)

// Diff returns the change as a unified diff of the two definitions, which ends with a line
// end. It is fit for a terminal: each character of the texts shows, or is an escape, and
// lines end where sentences do. Commas at ends of lines are left out, so that only lines
// differ that say something else. What is longer than 2,000 lines is cut, as is a line of
// more than 400 characters, and says so; [Change.Whole] reports whether anything is.
//
// Letters that look alike are not told apart, and letters that are written to the left
// may stand in another order within their line.
func (c Change) Diff() string {
	var b strings.Builder
	b.WriteString("--- " + side(c.Old, "nothing accepted") + "\n")
	b.WriteString("+++ " + side(c.New, "not listed") + "\n")
	lines := c.lines()
	for _, line := range lines[:min(len(lines), maxDiffLines)] {
		b.WriteString(shortened(line) + "\n")
	}
	if left := len(lines) - maxDiffLines; left > 0 {
		fmt.Fprintf(&b, "… and %d more lines, which are not shown: who accepts the change accepts them unseen\n", left)
	}
	return b.String()
}

// Whole reports whether [Change.Diff] shows all of the change.
func (c Change) Whole() bool {
	lines := c.lines()
	return len(lines) <= maxDiffLines && !slices.ContainsFunc(lines, func(line string) bool { return shortened(line) != line })
}

// lines returns the hunks of the diff.
func (c Change) lines() []string {
	text := string(diff.Diff("", textOf(c.Old), "", textOf(c.New)))
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	return lines[min(len(lines), 3):] // without the names of the files
}

// textOf returns the lines of a definition, without commas at their ends.
func textOf(t Tool) []byte {
	lines := linesOf(t)
	for i, line := range lines {
		lines[i] = strings.TrimSuffix(line, ",") + "\n"
	}
	return []byte(strings.Join(lines, ""))
}

// side returns the head line of one side.
func side(t Tool, none string) string {
	if t == (Tool{}) {
		return none
	}
	return fmt.Sprintf("%s sha256 %s", label(t.upstream, t.name), t.Hash())
}

// shortened cuts a line, which only a number can make as long.
func shortened(line string) string {
	count := 0
	for i := range line {
		if count++; count > maxDiffLine {
			return fmt.Sprintf("%s… and %d more bytes", line[:i], len(line)-i)
		}
	}
	return line
}
